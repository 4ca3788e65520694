package registryjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// recordReader reads the records of one JSON text. The text is a server document, a record
// {"server", "_meta"}, an array of these, or a list or export {"servers": [...]}. The reader finds
// out which while it reads.
type recordReader struct {
	in    *splitter
	state state

	list       bool // the text is a list or an array, whose records are numbered
	inObject   bool // the array is a member of an object
	needsComma bool // a member or element was read, so that a comma must follow

	n        int    // number of records read
	whole    []byte // an object without servers so far: its text without the closing brace
	tooLarge bool   // whole would exceed the maximum size of a record

	nextCursor  string // of the next page, from the metadata of a list
	badMetadata bool   // the metadata of a list could not be read
}

// state is the position of a recordReader in the outer object or array.
type state uint8

const (
	atStart state = iota
	inObject
	inArray
	atEnd
)

// startError is the error for a text that begins with a byte other than a bracket.
type startError byte

func (e startError) Error() string {
	return fmt.Sprintf("is not a JSON object or array: it begins with %q", byte(e))
}

func newRecordReader(r io.Reader) *recordReader { return &recordReader{in: newSplitter(r)} }

// nextRecord returns the bytes of the next record, which are valid until the next call, or io.EOF.
// errTooLarge concerns one record only. After any other error the reader cannot continue.
func (t *recordReader) nextRecord() ([]byte, error) {
	for {
		var record []byte
		var err error
		switch t.state {
		case atStart:
			err = t.readStart()
		case inObject:
			record, err = t.readMember()
		case inArray:
			record, err = t.readElement()
		case atEnd:
			return nil, t.checkEnd()
		}
		if record != nil || err != nil {
			return record, err
		}
	}
}

// readStart consumes the opening bracket of the text.
func (t *recordReader) readStart() error {
	t.in.skipByteOrderMark()
	b, err := t.in.peekByte()
	if errors.Is(err, io.EOF) {
		return errors.New("is empty")
	}
	if err != nil {
		return err
	}
	switch b {
	case '{':
		t.state, t.whole = inObject, make([]byte, 0, 4096)
	case '[':
		t.state, t.list = inArray, true
	default:
		return startError(b)
	}
	return t.in.expectByte(b)
}

// checkEnd returns io.EOF, or an error if the JSON is followed by more data.
func (t *recordReader) checkEnd() error {
	b, err := t.in.peekByte()
	if err == nil {
		return fmt.Errorf("has more data after its JSON, beginning with %q", b)
	}
	return err
}

// readMember reads one member of the outer object. At the end of an object that is a single record,
// it returns that record.
func (t *recordReader) readMember() ([]byte, error) {
	b, err := t.in.peekByte()
	if err != nil {
		return nil, truncationError(err)
	}
	if b == '}' {
		err := t.in.expectByte('}')
		t.state = atEnd
		if t.list || err != nil {
			return nil, err
		}
		return t.singleRecord()
	}
	if err := t.skipComma(); err != nil {
		return nil, err
	}
	key, err := t.in.appendValue(nil)
	if err != nil {
		return nil, err
	}
	if err := t.in.expectByte(':'); err != nil {
		return nil, err
	}
	return nil, t.readMemberValue(key)
}

// readMemberValue reads the value of a member. An array "servers" makes the text a list, of which
// it keeps only metadata.nextCursor.
func (t *recordReader) readMemberValue(key []byte) error {
	b, err := t.in.peekByte()
	if err != nil {
		return truncationError(err)
	}
	if string(key) == `"servers"` && b == '[' {
		err := t.in.expectByte('[')
		t.state, t.list, t.inObject, t.needsComma, t.whole = inArray, true, true, false, nil
		return err
	}
	text := []byte(nil)
	if !t.list {
		t.appendSeparator()
		text = append(append(t.whole, key...), ':')
	}
	start := len(text)
	text, err = t.in.appendValue(text)
	isMetadata := string(key) == `"metadata"` // of a list, whose records come before or after it
	switch {
	case errors.Is(err, errTooLarge):
		text, t.tooLarge, err = text[:0], true, nil
		t.badMetadata = t.badMetadata || isMetadata
	case err == nil && isMetadata:
		t.readMetadata(text[start:])
	}
	if !t.list {
		t.whole = text
	}
	return err
}

// readMetadata keeps the cursor in the metadata of a list.
func (t *recordReader) readMetadata(text []byte) {
	var metadata struct {
		NextCursor string `json:"nextCursor"`
	}
	if json.Unmarshal(text, &metadata) != nil {
		t.badMetadata = true // the caller decides whether this matters
		return
	}
	t.nextCursor = metadata.NextCursor
}

// singleRecord returns the outer object as the only record.
func (t *recordReader) singleRecord() ([]byte, error) {
	t.n++
	t.nextCursor = "" // this is not a list
	if t.tooLarge {
		return nil, errTooLarge
	}
	if len(t.whole) == 0 {
		t.whole = append(t.whole, '{')
	}
	return append(t.whole, '}'), nil
}

// appendSeparator appends the opening brace before the first member of the object, and a comma
// before the others.
func (t *recordReader) appendSeparator() {
	if len(t.whole) == 0 {
		t.whole = append(t.whole, '{')
		return
	}
	t.whole = append(t.whole, ',')
}

// readElement returns the next element of the array, or nil at its end.
func (t *recordReader) readElement() ([]byte, error) {
	b, err := t.in.peekByte()
	if err != nil {
		return nil, truncationError(err)
	}
	if b == ']' {
		err := t.in.expectByte(']')
		t.state, t.needsComma = atEnd, true
		if t.inObject {
			t.state = inObject
		}
		return nil, err
	}
	if err := t.skipComma(); err != nil {
		return nil, err
	}
	t.n++
	return t.in.appendValue(nil)
}

// skipComma consumes the comma before a member or element other than the first.
func (t *recordReader) skipComma() error {
	if !t.needsComma {
		t.needsComma = true
		return nil
	}
	return t.in.expectByte(',')
}
