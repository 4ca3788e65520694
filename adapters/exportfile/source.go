// Package exportfile reads and writes registries as JSON: server documents,
// lists and whole exports, from files, folders, standard input and over HTTP,
// one record at a time. It checks no document and stores none.
package exportfile

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

// Stdin is the name under which standard input is read.
const Stdin = "-"

// Source reads records: a recordsource.Source. Next is called by one
// goroutine.
type Source struct {
	parts   []part
	open    *openPart
	lasting bool // whether the source goes on past a part that cannot be read
	read    int64
	size    int64
}

var _ recordsource.Source = (*Source)(nil)

// part is one JSON text of a source.
type part interface {
	// name tells people which one it is.
	name() string
	open(ctx context.Context) (io.ReadCloser, error)
	// following returns the part that a list says is behind it, or nil.
	following(cursor string) (part, error)
}

type openPart struct {
	part
	body io.ReadCloser
	text *text
}

// Open returns the source of a name: a file, a folder whose .json files are
// read with those of the folders in it, by their names, an http or https URL,
// or Stdin. A file or folder that is not there is an error.
func Open(name string, stdin io.Reader) (*Source, error) {
	switch {
	case name == Stdin:
		return &Source{parts: []part{stream{stdin}}, size: -1, lasting: true}, nil
	case isURL(name):
		first, err := newRemote(name, newClient(http.DefaultTransport))
		if err != nil {
			return nil, err
		}
		return &Source{parts: []part{first}, size: -1}, nil
	case strings.Contains(name, "://"):
		return nil, fault.Newf(fault.Invalid, "", "%s is neither a file nor an http or https URL", name)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return openFolder(name)
	}
	return &Source{parts: []part{file(name)}, size: info.Size(), lasting: true}, nil
}

func openFolder(name string) (*Source, error) {
	s := &Source{lasting: true}
	root := name + string(filepath.Separator) // so that a link to a folder is followed
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.EqualFold(filepath.Ext(path), ".json") {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		s.parts = append(s.parts, file(path))
		s.size += info.Size()
		return nil
	})
	if err == nil && len(s.parts) == 0 {
		err = fmt.Errorf("there is no .json file in %s", name)
	}
	return s, err
}

// Progress returns how many bytes were read, and how many there are in all; -1
// when nobody knows.
func (s *Source) Progress() (read, size int64) { return s.read, s.size }

// Close gives up what is open.
func (s *Source) Close() error {
	if s.open == nil {
		return nil
	}
	err := s.open.body.Close()
	s.open = nil
	return err
}

// Next answers recordsource.Source.
func (s *Source) Next(ctx context.Context) (recordsource.Entry, error) {
	for {
		if err := ctx.Err(); err != nil {
			return recordsource.Entry{}, err
		}
		if s.open == nil {
			if len(s.parts) == 0 {
				return recordsource.Entry{}, io.EOF
			}
			if err := s.begin(ctx); err != nil {
				return s.broken(err)
			}
		}
		raw, err := s.open.text.next()
		switch {
		case errors.Is(err, io.EOF):
			if err := s.end(); err != nil {
				return recordsource.Entry{}, err
			}
		case errors.Is(err, errTooLarge):
			return recordsource.Entry{Origin: s.origin(), Unreadable: err}, nil
		case err != nil:
			return s.broken(err)
		default:
			return entry(s.origin(), raw), nil
		}
	}
}

// begin opens the next part.
func (s *Source) begin(ctx context.Context) error {
	p := s.parts[0]
	s.parts = s.parts[1:]
	s.open = &openPart{part: p, body: io.NopCloser(strings.NewReader(""))}
	body, err := p.open(ctx)
	if err != nil {
		return err
	}
	s.open.body = body
	s.open.text = newText(counting{body, &s.read})
	return nil
}

// end closes a part that was read to its end.
func (s *Source) end() error {
	next, err := s.open.following(s.open.text.nextCursor)
	if next != nil {
		s.parts = append(s.parts, next)
	}
	return errors.Join(err, s.Close())
}

// broken reports that the open part cannot be read any further.
func (s *Source) broken(cause error) (recordsource.Entry, error) {
	e := recordsource.Entry{Origin: s.open.name(), Broken: cause}
	_ = s.Close() // it is not read to its end anyway
	if !s.lasting {
		return recordsource.Entry{}, fmt.Errorf("%s: %w", e.Origin, cause)
	}
	return e, nil
}

// origin tells where the record stands that was read last.
func (s *Source) origin() string {
	if !s.open.text.list {
		return s.open.name()
	}
	return s.open.name() + ", record " + strconv.Itoa(s.open.text.n)
}

// counting counts what is read.
type counting struct {
	io.Reader
	n *int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	return n, err
}

// file is a part on disk.
type file string

func (f file) name() string { return string(f) }

func (f file) open(context.Context) (io.ReadCloser, error) { return os.Open(string(f)) }

func (file) following(string) (part, error) { return nil, nil }

// stream is a part that is open already.
type stream struct{ in io.Reader }

func (stream) name() string { return "standard input" }

func (s stream) open(context.Context) (io.ReadCloser, error) { return io.NopCloser(s.in), nil }

func (stream) following(string) (part, error) { return nil, nil }
