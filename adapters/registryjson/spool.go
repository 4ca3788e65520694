package registryjson

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
)

const (
	maxSpoolName = 255     // bytes of a name in the index; a longer name is not valid anyway
	nameChunk    = 1 << 20 // bytes of names that are allocated at once
)

// spool has the records of a list in a temporary file, and an index of their names in memory. Its
// file disappears with the process where the system allows that.
type spool struct {
	limits mirrorLimits

	file    *os.File
	isNamed bool // the file still has a name that close must remove
	out     *bufio.Writer
	size    int64

	records []spooled
	names   [][]byte // chunks of nameChunk bytes; a name is its length, in one byte, and its text
	order   []uint32 // of the records, by name and then by arrival; set by sort
}

// spooled is one record of a spool.
type spooled struct {
	offset int64
	length uint32 // 0 for a record that was too large
	name   uint32 // its chunk times nameChunk, and its offset in the chunk
}

// newSpool returns an empty spool.
func newSpool(limits mirrorLimits) (*spool, error) {
	file, err := os.CreateTemp("", "tollgate-mirror-*") // mode 0600
	if err != nil {
		return nil, &spoolError{err}
	}
	isNamed := os.Remove(file.Name()) != nil // Windows does not remove open files
	return &spool{limits: limits, file: file, isNamed: isNamed, out: bufio.NewWriterSize(file, 64<<10)}, nil
}

// count returns the number of records.
func (s *spool) count() int { return len(s.records) }

// add appends a record. Empty text is a record that was too large.
func (s *spool) add(name string, text []byte) error {
	if len(name) > maxSpoolName {
		name = ""
	}
	switch {
	case len(s.records) >= s.limits.records:
		return limitError(fmt.Sprintf("the list has more than %d records", s.limits.records))
	case s.size+int64(len(text)) > s.limits.bytes:
		return limitError(fmt.Sprintf("the list is larger than %d bytes", s.limits.bytes))
	}
	at, err := s.addName(name)
	if err != nil {
		return err
	}
	if _, err := s.out.Write(text); err != nil {
		return &spoolError{err}
	}
	s.records = append(s.records, spooled{offset: s.size, length: uint32(len(text)), name: at})
	s.size += int64(len(text))
	return nil
}

// addName returns the place of a name. The versions of a server mostly arrive one after the other,
// and share one.
func (s *spool) addName(name string) (uint32, error) {
	if n := len(s.records); n > 0 && string(s.name(n-1)) == name {
		return s.records[n-1].name, nil
	}
	last := len(s.names) - 1
	if last < 0 || len(s.names[last])+1+len(name) > nameChunk {
		if (last+2)*nameChunk > s.limits.names {
			return 0, limitError(fmt.Sprintf("the names in the list have more than %d bytes", s.limits.names))
		}
		s.names = append(s.names, make([]byte, 0, nameChunk))
		last++
	}
	at := last*nameChunk + len(s.names[last])
	s.names[last] = append(append(s.names[last], byte(len(name))), name...)
	return uint32(at), nil
}

// name returns the name of a record, which the caller must not change.
func (s *spool) name(record int) []byte {
	at := s.records[record].name
	chunk := s.names[at/nameChunk][at%nameChunk:]
	return chunk[1 : 1+int(chunk[0])]
}

// flush completes the file.
func (s *spool) flush() error {
	if err := s.out.Flush(); err != nil {
		return &spoolError{err}
	}
	return nil
}

// sort sets the order of the records.
func (s *spool) sort() {
	s.order = make([]uint32, len(s.records))
	for i := range s.order {
		s.order[i] = uint32(i)
	}
	slices.SortFunc(s.order, func(a, b uint32) int {
		if s.records[a].name != s.records[b].name {
			if c := bytes.Compare(s.name(int(a)), s.name(int(b))); c != 0 {
				return c
			}
		}
		return int(a) - int(b)
	})
}

// text returns the bytes of a record, or nil for one that was too large.
func (s *spool) text(record int) ([]byte, error) {
	r := s.records[record]
	if r.length == 0 {
		return nil, nil
	}
	text := make([]byte, r.length)
	if _, err := s.file.ReadAt(text, r.offset); err != nil {
		return nil, &spoolError{err}
	}
	return text, nil
}

// close releases the file and the memory.
func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.isNamed {
		err = os.Remove(s.file.Name())
	}
	s.file, s.out, s.records, s.names, s.order = nil, nil, nil, nil, nil
	return err
}
