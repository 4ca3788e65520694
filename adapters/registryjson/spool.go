package registryjson

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/mirrorsource"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// spool keeps the records of a list in a temporary file, and in memory where each of them is. The
// file has no name, so that it ends with the process. It implements mirrorsource.List.
type spool struct {
	origin string // for messages
	file   *os.File
	out    *bufio.Writer
	size   int64
	index  []spooled
	names  map[string]string // one string for all records of a server, while records are added
	next   int               // of the index
}

// spooled is a record in a spool.
type spooled struct {
	name   string // of the server; empty if the record has none
	offset int64
	length int32 // -1 for a record that was too large
	number int32 // in the list, from 1
}

// spoolBuffer is the size of the buffer for writing, in bytes.
const spoolBuffer = 256 << 10

func newSpool(origin string) (*spool, error) {
	file, err := os.CreateTemp("", "tollgate-mirror-*")
	if err != nil {
		return nil, spoolError(err)
	}
	_ = os.Remove(file.Name()) // where an open file cannot be removed, the system cleans up
	return &spool{origin: origin, file: file, out: bufio.NewWriterSize(file, spoolBuffer), names: make(map[string]string)}, nil
}

// spoolError returns the error for operators, without the name of the file.
func spoolError(err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("the list cannot be kept in a temporary file (TMPDIR): %w", err)
}

// add adds a record; nil for one that is too large.
func (s *spool) add(raw []byte) error {
	entry := spooled{offset: s.size, length: -1, number: int32(len(s.index) + 1)} //nolint:gosec // mirrorLimits.records is less
	if raw != nil {
		entry.length = int32(len(raw)) //nolint:gosec // maxRecord is less
		entry.name = s.nameOf(raw)
		if _, err := s.out.Write(raw); err != nil {
			return spoolError(err)
		}
		s.size += int64(len(raw))
	}
	s.index = append(s.index, entry)
	return nil
}

// nameOf returns the name of the server of a record; empty without a readable one.
func (s *spool) nameOf(raw []byte) string {
	e := newEntry("", raw)
	if e.Unreadable != nil {
		return ""
	}
	draft, err := registry.ParseDraft(e.Document)
	if err != nil {
		return ""
	}
	name := draft.Name()
	if known, ok := s.names[name]; ok {
		return known
	}
	s.names[name] = name
	return name
}

// finish ends the adding of records.
func (s *spool) finish() error {
	if err := s.out.Flush(); err != nil {
		return spoolError(err)
	}
	s.out, s.names = nil, nil
	slices.SortFunc(s.index, func(a, b spooled) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.number, b.number)) })
	return nil
}

// Records implements mirrorsource.List.
func (s *spool) Records() int { return len(s.index) }

// Rewind implements mirrorsource.List.
func (s *spool) Rewind() { s.next = 0 }

// Close implements mirrorsource.List.
func (s *spool) Close() error { return s.file.Close() }

var errManyVersions = errors.New("the server has too many versions, or too large ones: the others are left out")

// Next implements mirrorsource.List.
func (s *spool) Next(ctx context.Context) (mirrorsource.Server, error) {
	if err := ctx.Err(); err != nil {
		return mirrorsource.Server{}, err
	}
	if s.next == len(s.index) {
		return mirrorsource.Server{}, io.EOF
	}
	server := mirrorsource.Server{Name: s.index[s.next].name}
	bytes := 0
	for ; s.next < len(s.index) && s.index[s.next].name == server.Name; s.next++ {
		one := s.index[s.next]
		bytes += int(max(one.length, 0))
		if len(server.Entries) == mirrorsource.MaxRecords || bytes > mirrorsource.MaxBytes {
			server.Entries = append(server.Entries, recordsource.Entry{Origin: s.originOf(one), Unreadable: errManyVersions})
			s.skipServer(server.Name)
			break
		}
		e, err := s.read(one)
		if err != nil {
			return mirrorsource.Server{}, err
		}
		server.Entries = append(server.Entries, e)
	}
	return server, nil
}

// skipServer goes to the first record of the next server.
func (s *spool) skipServer(name string) {
	for s.next < len(s.index) && s.index[s.next].name == name {
		s.next++
	}
}

// read returns a record.
func (s *spool) read(one spooled) (recordsource.Entry, error) {
	if one.length < 0 {
		return recordsource.Entry{Origin: s.originOf(one), Unreadable: errTooLarge}, nil
	}
	raw := make([]byte, one.length)
	if _, err := s.file.ReadAt(raw, one.offset); err != nil {
		return recordsource.Entry{}, spoolError(err)
	}
	return newEntry(s.originOf(one), raw), nil
}

func (s *spool) originOf(one spooled) string {
	return s.origin + ", record " + strconv.Itoa(int(one.number))
}
