package exportfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// text reads the records of one JSON text, which is a server document, a
// record {"server", "_meta"}, an array of those, or a list or an export
// {"servers": [...]}. Which of them it is shows on the way.
type text struct {
	in    *splitter
	state state
	list  bool   // whether it is a list or an array, whose records are numbered
	inner bool   // whether the array stands in an object
	later bool   // whether a member or element came before, so that a comma parts them
	n     int    // records that were read
	whole []byte // of an object that has shown no servers so far: its text, open
	large bool   // whether whole would be larger than a record may be

	nextCursor string // what a list said of the page behind it
}

type state uint8

const (
	atStart state = iota
	inObject
	inArray
	atEnd
)

func newText(r io.Reader) *text { return &text{in: newSplitter(r)} }

// next returns the bytes of the next record, which are good until the next
// call, or io.EOF. errTooLarge is told of one record; after any other error
// nothing more can be read.
func (t *text) next() ([]byte, error) {
	for {
		var record []byte
		var err error
		switch t.state {
		case atStart:
			err = t.start()
		case inObject:
			record, err = t.member()
		case inArray:
			record, err = t.element()
		case atEnd:
			return nil, t.end()
		}
		if record != nil || err != nil {
			return record, err
		}
	}
}

func (t *text) start() error {
	t.in.begin()
	b, err := t.in.peek()
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
		return fmt.Errorf("is not a JSON object or array: it begins with %q", b)
	}
	return t.in.expect(b)
}

// end makes sure that nothing follows.
func (t *text) end() error {
	b, err := t.in.peek()
	if err == nil {
		return fmt.Errorf("has more data after its JSON, beginning with %q", b)
	}
	return err
}

// member reads one member of the outer object. It returns the object itself
// when that ends and is a single record.
func (t *text) member() ([]byte, error) {
	b, err := t.in.peek()
	if err != nil {
		return nil, early(err)
	}
	if b == '}' {
		err := t.in.expect('}')
		t.state = atEnd
		if t.list || err != nil {
			return nil, err
		}
		return t.single()
	}
	if err := t.comma(); err != nil {
		return nil, err
	}
	key, err := t.in.value(nil)
	if err != nil {
		return nil, err
	}
	if err := t.in.expect(':'); err != nil {
		return nil, err
	}
	return nil, t.memberValue(key)
}

func (t *text) memberValue(key []byte) error {
	b, err := t.in.peek()
	if err != nil {
		return early(err)
	}
	if string(key) == `"servers"` && b == '[' {
		err := t.in.expect('[')
		t.state, t.list, t.inner, t.later, t.whole = inArray, true, true, false, nil
		return err
	}
	if t.list {
		return t.aside(key)
	}
	t.join(',')
	t.whole = append(append(t.whole, key...), ':')
	t.whole, err = t.in.value(t.whole)
	if errors.Is(err, errTooLarge) {
		t.whole, t.large, err = t.whole[:0], true, nil
	}
	return err
}

// aside reads what stands beside the records of a list.
func (t *text) aside(key []byte) error {
	value, err := t.in.value(nil)
	if errors.Is(err, errTooLarge) {
		return nil
	}
	if err != nil || string(key) != `"metadata"` {
		return err
	}
	var metadata struct {
		NextCursor string `json:"nextCursor"`
	}
	if json.Unmarshal(value, &metadata) == nil { // other metadata is nobody's business
		t.nextCursor = metadata.NextCursor
	}
	return nil
}

// single returns the outer object as the one record there is.
func (t *text) single() ([]byte, error) {
	t.n++
	if t.large {
		return nil, errTooLarge
	}
	if len(t.whole) == 0 {
		t.whole = append(t.whole, '{')
	}
	return append(t.whole, '}'), nil
}

// join appends the bracket that opens the object, or what parts its members.
func (t *text) join(comma byte) {
	if len(t.whole) == 0 {
		comma = '{'
	}
	t.whole = append(t.whole, comma)
}

func (t *text) element() ([]byte, error) {
	b, err := t.in.peek()
	if err != nil {
		return nil, early(err)
	}
	if b == ']' {
		err := t.in.expect(']')
		t.state, t.later = atEnd, true
		if t.inner {
			t.state = inObject
		}
		return nil, err
	}
	if err := t.comma(); err != nil {
		return nil, err
	}
	t.n++
	return t.in.value(nil)
}

// comma takes the comma before a member or element that is not the first.
func (t *text) comma() error {
	if !t.later {
		t.later = true
		return nil
	}
	return t.in.expect(',')
}
