package registryjson

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// maxRecord is the maximum size of one record in bytes. It equals the limit for a request to the
// API (contract O-11).
const maxRecord = 1 << 20

// maxExported is that of a record in a file, which may have the tool lists of a version.
const maxExported = maxRecord + tools.MaxStored + 64<<10

var (
	errTooLarge  = fmt.Errorf("the record is larger than %d bytes", maxRecord)
	errTruncated = errors.New("ends in the middle of its JSON")
)

// splitter finds where the values of a JSON text begin and end. The text may have any number of
// values; the splitter holds one of them in memory. It does not check that the values are valid
// JSON; the code that decodes them does.
type splitter struct {
	in   *bufio.Reader
	most int // bytes of a record
}

// newSplitter returns a splitter of the text that r returns.
func newSplitter(r io.Reader) *splitter {
	return &splitter{bufio.NewReaderSize(r, 64<<10), maxRecord}
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
// most, and returns errTooLarge.
func (s *splitter) appendValue(text []byte) ([]byte, error) {
	first, err := s.peekByte()
	if err != nil {
		return text, truncationError(err)
	}
	isLiteral, tooLarge := false, false // a literal is a number, true, false or null
	switch first {
	case '}', ']', ',', ':':
		return text, fmt.Errorf("is not JSON: a value is missing before %q", first)
	case '{', '[', '"':
	default:
		isLiteral = true
	}
	for n, ended := (nesting{}), false; !ended; {
		b, err := s.in.ReadByte()
		switch {
		case isLiteral && errors.Is(err, io.EOF):
			ended = true
			continue
		case err != nil:
			return text, truncationError(err)
		case isLiteral && endsLiteral(b):
			_ = s.in.UnreadByte() // it was just read
			ended = true
			continue
		}
		if tooLarge = tooLarge || len(text) >= s.most; !tooLarge {
			text = append(text, b)
		}
		ended = !isLiteral && n.add(b)
	}
	if tooLarge {
		return text, errTooLarge
	}
	return text, nil
}

// endsLiteral reports whether a byte is the first one after a literal.
func endsLiteral(b byte) bool { return strings.IndexByte(",:]}[{\" \t\r\n", b) >= 0 }

// nesting finds the end of an object, an array or a string.
type nesting struct {
	depth           int
	quoted, escaped bool
}

// add takes the next byte of the value, and reports whether the value ends with it.
func (n *nesting) add(b byte) (ends bool) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.quoted && b == '\\':
		n.escaped = true
	case b == '"':
		n.quoted = !n.quoted
	case n.quoted:
	case b == '{', b == '[':
		n.depth++
	case b == '}', b == ']':
		n.depth--
	}
	return n.depth == 0 && !n.quoted
}

// truncationError returns errTruncated for an end of input, and other errors unchanged.
func truncationError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}
