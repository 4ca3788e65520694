package registryjson

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
)

// maxRecord is the maximum size of one record in bytes. It equals the limit for a request to the
// API (contract O-11).
const maxRecord = 1 << 20

var (
	errTooLarge  = fmt.Errorf("the record is larger than %d bytes", maxRecord)
	errTruncated = errors.New("ends in the middle of its JSON")
)

// splitter finds where the values of a JSON text begin and end. The text may have any number of
// values; the splitter holds one of them in memory. It does not check that the values are valid
// JSON; the code that decodes them does.
type splitter struct {
	in *bufio.Reader
}

// newSplitter returns a splitter of the text that r returns.
func newSplitter(r io.Reader) *splitter {
	return &splitter{bufio.NewReaderSize(r, 64<<10)}
}

// skipByteOrderMark skips the byte order mark at the start of the text.
func (s *splitter) skipByteOrderMark() {
	if start, err := s.in.Peek(len(files.ByteOrderMark)); err == nil && string(start) == files.ByteOrderMark {
		_, _ = s.in.Discard(len(files.ByteOrderMark)) // Peek has buffered it
	}
}

// peekByte skips white space and returns the next byte without consuming it.
func (s *splitter) peekByte() (byte, error) {
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

// expectByte skips white space and consumes the next byte, which must be wanted.
func (s *splitter) expectByte(wanted byte) error {
	b, err := s.peekByte()
	switch {
	case err != nil:
		return truncationError(err)
	case b != wanted:
		return fmt.Errorf("is not JSON: found %q instead of %q", b, wanted)
	}
	_, _ = s.in.ReadByte() // peekByte has buffered it
	return nil
}

// appendValue appends the next value to text. It skips a value that would make text larger than
// maxRecord, and returns errTooLarge.
func (s *splitter) appendValue(text []byte) ([]byte, error) {
	first, err := s.peekByte()
	if err != nil {
		return text, truncationError(err)
	}
	v := &valueReader{text: text}
	switch first {
	case '{', '[':
		err = v.readBrackets(s.in)
	case '"':
		err = v.readString(s.in)
	case '}', ']', ',', ':':
		err = fmt.Errorf("is not JSON: a value is missing before %q", first)
	default:
		err = v.readLiteral(s.in)
	}
	if err == nil && v.tooLarge {
		err = errTooLarge
	}
	return v.text, err
}

// valueReader collects the bytes of one value.
type valueReader struct {
	text     []byte
	tooLarge bool
}

// readByte consumes one byte and keeps it, unless the record is already at its limit.
func (v *valueReader) readByte(in *bufio.Reader) (byte, error) {
	b, err := in.ReadByte()
	if err != nil {
		return 0, truncationError(err)
	}
	if len(v.text) >= maxRecord {
		v.tooLarge = true
	} else {
		v.text = append(v.text, b)
	}
	return b, nil
}

// readBrackets reads an object or array up to its closing bracket.
func (v *valueReader) readBrackets(in *bufio.Reader) error {
	for depth := 0; ; {
		b, err := in.Peek(1)
		if err != nil {
			return truncationError(err)
		}
		if b[0] == '"' {
			if err := v.readString(in); err != nil {
				return err
			}
			continue
		}
		c, err := v.readByte(in)
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

// readString reads a string with its quotes.
func (v *valueReader) readString(in *bufio.Reader) error {
	if _, err := v.readByte(in); err != nil {
		return err
	}
	for {
		b, err := v.readByte(in)
		switch {
		case err != nil:
			return err
		case b == '"':
			return nil
		case b == '\\':
			if _, err := v.readByte(in); err != nil {
				return err
			}
		}
	}
}

// readLiteral reads a number, true, false or null up to the byte after it.
func (v *valueReader) readLiteral(in *bufio.Reader) error {
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

// truncationError returns errTruncated for an end of input, and other errors unchanged.
func truncationError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}
