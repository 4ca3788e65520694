package jsonvalue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Reader reads the parts of a text whose syntax was checked, for code that makes values of its own
// of them. Reading with the decoder of encoding/json costs three times as much.
type Reader struct {
	text  []byte
	at    int
	twice string // a member that an object of value has twice; empty without one
}

// NewReader returns a reader of a text, which must be one JSON value.
func NewReader(text []byte) Reader { return Reader{text: text} }

// Offset returns the position in the text, in bytes.
func (r *Reader) Offset() int { return r.at }

// Next skips the spaces and punctuation before the next part, and returns its first byte.
func (r *Reader) Next() byte {
	for {
		switch b := r.text[r.at]; b {
		case ' ', '\t', '\r', '\n', ',', ':':
			r.at++
		default:
			return b
		}
	}
}

// Enter skips the bracket that begins an object or a list.
func (r *Reader) Enter() { r.at++ }

// More reports whether another part of an object or a list follows. If not, it skips the closing
// bracket.
func (r *Reader) More(closing byte) bool {
	if r.Next() != closing {
		return true
	}
	r.at++
	return false
}

// Text reads a string, which Next must have found.
func (r *Reader) Text() string {
	plain, quoted := r.quoted()
	if plain == nil {
		return unescape(quoted)
	}
	return string(plain)
}

// Bytes is Text without memory of its own: a part of the text, unless the string has escapes.
func (r *Reader) Bytes() []byte {
	plain, quoted := r.quoted()
	if plain == nil {
		return []byte(unescape(quoted))
	}
	return plain
}

// quoted reads a string, and returns it with its quotes, and without them if it needs no decoding;
// otherwise plain is nil.
func (r *Reader) quoted() (plain, quoted []byte) {
	start, end, escaped := r.at, r.at+1, false
	for ; r.text[end] != '"'; end++ {
		if r.text[end] == '\\' {
			escaped = true
			end++
		}
	}
	r.at = end + 1
	if plain := r.text[start+1 : end]; !escaped && utf8.Valid(plain) {
		return plain, r.text[start:r.at]
	}
	return nil, r.text[start:r.at]
}

// unescape is a function of its own, so that a string without escapes needs no second allocation.
func unescape(quoted []byte) (text string) {
	_ = json.Unmarshal(quoted, &text) // no error, because the syntax was checked
	return text
}

// Word reads a number, true, false or null, which Next must have found.
func (r *Reader) Word() []byte {
	start := r.at
	for ; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case ' ', '\t', '\r', '\n', ',', ']', '}':
			return r.text[start:r.at]
		}
	}
	return r.text[start:]
}

// value reads a value. Its numbers are Exact, or Number otherwise.
func (r *Reader) value(exact bool) (Value, error) {
	switch r.Next() {
	case '{':
		return r.object(exact)
	case '[':
		return r.list(exact)
	case '"':
		return Text(r.Text()), nil
	}
	word := r.Word()
	switch {
	case word[0] == 't' || word[0] == 'f':
		return Flag(word[0] == 't'), nil
	case word[0] == 'n':
		return nil, nil
	case exact:
		return Exact(word), nil
	}
	var number Number
	if err := json.Unmarshal(word, &number); err != nil {
		return nil, fmt.Errorf("read a number: %w", err)
	}
	return number, nil
}

func (r *Reader) object(exact bool) (Value, error) {
	object := Object{}
	for r.Enter(); r.More('}'); {
		name := r.Text()
		value, err := r.value(exact)
		if err != nil {
			return nil, err
		}
		if _, there := object[name]; there {
			r.twice = cmp.Or(name, "an empty name")
		}
		object[name] = value
	}
	return object, nil
}

func (r *Reader) list(exact bool) (Value, error) {
	list := List{}
	for r.Enter(); r.More(']'); {
		item, err := r.value(exact)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}
