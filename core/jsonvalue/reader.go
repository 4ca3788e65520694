package jsonvalue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Reader reads the parts of a text whose syntax was checked, for code that makes values of its own
// of them. Reading with the decoder of encoding/json costs three times as much.
type Reader struct {
	text []byte
	at   int
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
func (r *Reader) Text() (text string) {
	start := r.at
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	if plain := r.text[start+1 : r.at-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain)
	}
	_ = json.Unmarshal(r.text[start:r.at], &text) // no error, because the syntax was checked
	return text
}

// Word reads a number, true, false or null, which Next must have found.
func (r *Reader) Word() []byte {
	word := r.text[r.at:]
	if end := bytes.IndexAny(word, " \t\r\n,]}"); end >= 0 {
		word = word[:end]
	}
	r.at += len(word)
	return word
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
