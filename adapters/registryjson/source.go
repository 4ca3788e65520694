// Package registryjson reads and writes the contents of registries as JSON: single server
// documents, lists and whole exports. It reads them one record at a time from files, folders,
// standard input, and other registries over HTTP. It does not validate documents and does not store
// them.
package registryjson

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// Stdin is the name for which Open reads standard input.
const Stdin = "-"

// Source reads records from one or more JSON texts. It implements recordsource.Source. Only one
// goroutine may call Next.
type Source struct {
	parts       []part
	open        *openPart
	skipsBroken bool  // continue with the next part if one cannot be read
	read        int64 // bytes read so far
	size        int64 // bytes in total; -1 if unknown
}

var _ recordsource.Source = (*Source)(nil)

// part is one JSON text of a source.
type part interface {
	// displayName returns the name of the part for messages.
	displayName() string
	// openBody opens the JSON text for reading.
	openBody(ctx context.Context) (io.ReadCloser, error)
	// nextPage returns the part that a list's nextCursor leads to, or nil if there is no next page.
	nextPage(cursor string) (part, error)
}

// openPart is the part that is being read.
type openPart struct {
	part
	body    io.ReadCloser
	records *recordReader
}

// Open returns the source with a name. The name is a file, a folder, an http or https URL, or
// Stdin. From a folder, Open reads the .json files in it and in the folders below it, ordered by
// path. Open returns an error if the file or folder does not exist.
func Open(name string, stdin io.Reader) (*Source, error) {
	switch {
	case name == Stdin:
		return &Source{parts: []part{streamPart{stdin}}, size: -1, skipsBroken: true}, nil
	case isURL(name):
		first, err := newRemotePart(name, newClient(http.DefaultTransport))
		if err != nil {
			return nil, err
		}
		return &Source{parts: []part{first}, size: -1}, nil
	case strings.Contains(name, "://"):
		return nil, fault.Newf(fault.Invalid, "%s is neither a file nor an http or https URL", name)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return openFolder(name)
	}
	return &Source{parts: []part{filePart(name)}, size: info.Size(), skipsBroken: true}, nil
}

// openFolder returns the source of all .json files in a folder. It is an error if there is no .json
// file.
func openFolder(name string) (*Source, error) {
	s := &Source{skipsBroken: true}
	root := name + string(filepath.Separator) // WalkDir follows a link to a folder only with this separator
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.EqualFold(filepath.Ext(path), ".json") {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		s.parts = append(s.parts, filePart(path))
		s.size += info.Size()
		return nil
	})
	if err == nil && len(s.parts) == 0 {
		err = fmt.Errorf("folder %s contains no .json file", name)
	}
	return s, err
}

// Progress returns how many bytes were read so far, and how many there are in total, or -1 if the
// total is unknown.
func (s *Source) Progress() (read, size int64) { return s.read, s.size }

// Close closes the part that is open.
func (s *Source) Close() error {
	if s.open == nil {
		return nil
	}
	err := s.open.body.Close()
	s.open = nil
	return err
}

// Next implements recordsource.Source.
func (s *Source) Next(ctx context.Context) (recordsource.Entry, error) {
	for {
		if err := ctx.Err(); err != nil {
			return recordsource.Entry{}, err
		}
		if s.open == nil {
			if len(s.parts) == 0 {
				return recordsource.Entry{}, io.EOF
			}
			if err := s.openNextPart(ctx); err != nil {
				return s.endBrokenPart(err)
			}
		}
		raw, err := s.open.records.nextRecord()
		switch {
		case errors.Is(err, io.EOF):
			if err := s.finishPart(); err != nil {
				return recordsource.Entry{}, err
			}
		case errors.Is(err, errTooLarge):
			return recordsource.Entry{Origin: s.recordOrigin(), Unreadable: err}, nil
		case err != nil:
			return s.endBrokenPart(err)
		default:
			e := newEntry(s.recordOrigin(), raw)
			if !s.skipsBroken { // what another registry has approved is not approved here
				e.Recorded.Tools = nil
			}
			if len(e.Document) > maxRecord {
				e.Unreadable = errTooLarge
			}
			return e, nil
		}
	}
}

func (s *Source) openNextPart(ctx context.Context) error {
	p := s.parts[0]
	s.parts = s.parts[1:]
	s.open = &openPart{part: p, body: io.NopCloser(strings.NewReader(""))}
	body, err := p.openBody(ctx)
	if err != nil {
		return err
	}
	s.open.body = body
	s.open.records = newRecordReader(countingReader{body, &s.read})
	if s.skipsBroken {
		s.open.records.in.most = maxExported
	}
	return nil
}

// finishPart closes the open part after its last record. If the part is a page of a list, the next
// page becomes the next part.
func (s *Source) finishPart() error {
	next, err := s.open.nextPage(s.open.records.nextCursor)
	if next != nil {
		s.parts = append(s.parts, next)
	}
	return errors.Join(err, s.Close())
}

// endBrokenPart closes a part that cannot be read further. If the source continues with the next
// part, it returns an entry with the cause, else an error.
func (s *Source) endBrokenPart(cause error) (recordsource.Entry, error) {
	e := recordsource.Entry{Origin: s.open.displayName(), Broken: cause}
	_ = s.Close() // the part has already failed
	if !s.skipsBroken {
		return recordsource.Entry{}, fmt.Errorf("%s: %w", e.Origin, cause)
	}
	return e, nil
}

// recordOrigin returns the place of the record that was read last, for messages.
func (s *Source) recordOrigin() string {
	if !s.open.records.list {
		return s.open.displayName()
	}
	return s.open.displayName() + ", record " + strconv.Itoa(s.open.records.n)
}

// countingReader adds the number of bytes that are read to n.
type countingReader struct {
	io.Reader
	n *int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	return n, err
}

// filePart is a file.
type filePart string

func (f filePart) displayName() string { return string(f) }

func (f filePart) openBody(context.Context) (io.ReadCloser, error) { return os.Open(string(f)) }

func (filePart) nextPage(string) (part, error) { return nil, nil }

// streamPart is a reader that is already open.
type streamPart struct{ in io.Reader }

func (streamPart) displayName() string { return "standard input" }

func (s streamPart) openBody(context.Context) (io.ReadCloser, error) { return io.NopCloser(s.in), nil }

func (streamPart) nextPage(string) (part, error) { return nil, nil }
