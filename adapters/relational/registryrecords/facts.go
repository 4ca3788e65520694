package registryrecords

import (
	"errors"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

var errFacts = errors.New("the column facts of a version has another form")

// parseFacts parses the column facts of a version. The migration 0004_facts describes its form.
func parseFacts(text string) (registry.Release, error) {
	f := factReader{rest: text}
	var r registry.Release
	name, status := f.readText(), f.readText()
	r.Latest = f.readNumber() == 1
	r.StatusChangedAt, r.PublishedAt, r.UpdatedAt = f.readTime(), f.readTime(), f.readTime()
	version := f.readBytes(f.readNumber())
	r.StatusMessage = f.rest
	if f.failed {
		return registry.Release{}, database.BrokenRow(errFacts)
	}
	var err error
	if r.Name, err = registry.ParseName(name); err != nil {
		return registry.Release{}, database.BrokenRow(err)
	}
	if r.Version, err = registry.ParseVersion(version); err != nil {
		return registry.Release{}, database.BrokenRow(err)
	}
	if r.Status, err = registry.ParseStatus(status); err != nil {
		return registry.Release{}, database.BrokenRow(err)
	}
	return r, nil
}

// factReader reads values from the beginning of a text.
type factReader struct {
	rest   string
	failed bool
}

func (f *factReader) readText() string {
	end := strings.IndexByte(f.rest, ' ')
	if end < 0 {
		f.failed = true
		return ""
	}
	word := f.rest[:end]
	f.rest = f.rest[end+1:]
	return word
}

// readNumber reads a decimal number. It does not use strconv, because a list has hundreds of
// numbers.
func (f *factReader) readNumber() int64 {
	word := f.readText()
	digits := strings.TrimPrefix(word, "-")
	const most = 18 // digits that fit into every int64
	if digits == "" || len(digits) > most {
		f.failed = true
		return 0
	}
	var n int64
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' {
			f.failed = true
			return 0
		}
		n = n*10 + int64(d-'0')
	}
	if len(digits) < len(word) {
		return -n
	}
	return n
}

func (f *factReader) readTime() time.Time { return time.UnixMicro(f.readNumber()).UTC() }

// readBytes returns the next n bytes.
func (f *factReader) readBytes(n int64) string {
	if f.failed || n < 0 || n > int64(len(f.rest)) {
		f.failed = true
		return ""
	}
	taken := f.rest[:n]
	f.rest = f.rest[n:]
	return taken
}
