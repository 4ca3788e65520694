package exportfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// maxRecord is the most bytes of one record, the same as of a request of the API (contract O-11).
const maxRecord = 1 << 20

var (
	errTooLarge = fmt.Errorf("the record is larger than %d bytes", maxRecord)
	errEarly    = errors.New("ends in the middle of its JSON")
)

// splitter finds where the values of a JSON text begin and end, without a
// bound on their number and without holding more than one of them. It does not
// check them: whoever reads a value does.
type splitter struct {
	in *bufio.Reader
}

func newSplitter(r io.Reader) *splitter {
	return &splitter{bufio.NewReaderSize(r, 64<<10)}
}

// byteOrderMark may stand before JSON in a file; a parser may pass over it (RFC
// 8259, 8.1).
const byteOrderMark = "\ufeff"

// begin passes over what may stand before JSON.
func (s *splitter) begin() {
	if start, err := s.in.Peek(len(byteOrderMark)); err == nil && string(start) == byteOrderMark {
		_, _ = s.in.Discard(len(byteOrderMark)) // it was just looked at
	}
}

// peek returns the next byte that is no blank, and leaves it there.
func (s *splitter) peek() (byte, error) {
	for {
		b, err := s.in.ReadByte()
		if err != nil {
			return 0, fmt.Errorf("read: %w", err)
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		}
		_ = s.in.UnreadByte() // it was just read
		return b, nil
	}
}

// expect takes the next byte that is no blank, which must be the wanted one.
func (s *splitter) expect(wanted byte) error {
	b, err := s.peek()
	switch {
	case err != nil:
		return early(err)
	case b != wanted:
		return fmt.Errorf("is not JSON: found %q instead of %q", b, wanted)
	}
	_, _ = s.in.ReadByte() // it was just looked at
	return nil
}

// value appends the next value to text. One that would make text larger than
// maxRecord is passed over, and errTooLarge.
func (s *splitter) value(text []byte) ([]byte, error) {
	first, err := s.peek()
	if err != nil {
		return text, early(err)
	}
	v := &extent{text: text}
	switch first {
	case '{', '[':
		err = v.brackets(s.in)
	case '"':
		err = v.string(s.in)
	case '}', ']', ',', ':':
		err = fmt.Errorf("is not JSON: a value is missing before %q", first)
	default:
		err = v.literal(s.in)
	}
	if err == nil && v.tooLarge {
		err = errTooLarge
	}
	return v.text, err
}

// extent gathers the bytes of one value.
type extent struct {
	text     []byte
	tooLarge bool
}

func (v *extent) next(in *bufio.Reader) (byte, error) {
	b, err := in.ReadByte()
	if err != nil {
		return 0, early(err)
	}
	if len(v.text) >= maxRecord {
		v.tooLarge = true
	} else {
		v.text = append(v.text, b)
	}
	return b, nil
}

// brackets takes what begins with a bracket, up to the one that closes it.
func (v *extent) brackets(in *bufio.Reader) error {
	for depth := 0; ; {
		b, err := in.Peek(1)
		if err != nil {
			return early(err)
		}
		if b[0] == '"' {
			if err := v.string(in); err != nil {
				return err
			}
			continue
		}
		c, err := v.next(in)
		if err != nil {
			return err
		}
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// string takes a string with its quotes.
func (v *extent) string(in *bufio.Reader) error {
	if _, err := v.next(in); err != nil {
		return err
	}
	for {
		b, err := v.next(in)
		switch {
		case err != nil:
			return err
		case b == '"':
			return nil
		case b == '\\':
			if _, err := v.next(in); err != nil {
				return err
			}
		}
	}
}

// literal takes a number, true, false or null, up to what ends it.
func (v *extent) literal(in *bufio.Reader) error {
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		switch b {
		case ',', ':', ']', '}', '[', '{', '"', ' ', '\t', '\r', '\n':
			_ = in.UnreadByte() // it was just read
			return nil
		}
		if len(v.text) >= maxRecord {
			v.tooLarge = true
		} else {
			v.text = append(v.text, b)
		}
	}
}

func early(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEarly
	}
	return err
}
