package browse

import (
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/page"
)

// position is a place in a listing: the filters it is made with, and the name
// and version behind which the next page begins.
type position struct {
	filters filters
	name    string
	version string
}

// form names the layout of a position, so that a later one can be told apart.
const form = "1"

// separator stands between the parts of a position; no part can hold it.
const separator = "\x00"

// bytes returns the position for the inside of a cursor.
func (p position) bytes() []byte {
	since := ""
	if !p.filters.since.IsZero() {
		since = strconv.FormatInt(p.filters.since.UnixMicro(), 10)
	}
	return []byte(strings.Join([]string{
		form, p.filters.search, since, p.filters.version, strconv.FormatBool(p.filters.deleted), p.name, p.version,
	}, separator))
}

func parsePosition(content []byte) (position, error) {
	parts := strings.Split(string(content), separator)
	if len(parts) != 7 || parts[0] != form {
		return position{}, page.Unknown()
	}
	f := filters{search: parts[1], version: parts[3], deleted: parts[4] == "true"}
	if parts[2] != "" {
		micros, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return position{}, page.Unknown()
		}
		f.since = time.UnixMicro(micros).UTC()
	}
	return position{f, parts[5], parts[6]}, nil
}

// resume returns where the page of a query begins.
func (b *Browser) resume(q Query) (position, error) {
	if q.Cursor == "" {
		f, err := parseFilters(q)
		return position{filters: f}, err
	}
	content, err := b.cursors.Open(q.Cursor)
	if err != nil {
		return position{}, err
	}
	p, err := parsePosition(content)
	if err != nil {
		return position{}, err
	}
	return p, p.filters.contradicted(q)
}
