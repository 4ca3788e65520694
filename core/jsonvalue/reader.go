package jsonvalue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// reader reads the values of a text whose syntax was checked. Reading with encoding/json costs
// three times as much: it cannot make these types itself.
type reader struct {
	text  []byte // what is not read yet
	exact bool   // numbers become Exact
}

// next skips the spaces and punctuation before the next value, and returns its first byte, or that
// which ends an object or a list.
func (r *reader) next() byte {
	r.text = bytes.TrimLeft(r.text, " \t\r\n,:")
	return r.text[0]
}

func (r *reader) value() (Value, error) {
	switch r.next() {
	case '{':
		return r.object()
	case '[':
		return r.list()
	case '"':
		text, err := r.string()
		return Text(text), err
	}
	word := r.text
	if end := bytes.IndexAny(word, " \t\r\n,]}"); end >= 0 {
		word = word[:end]
	}
	r.text = r.text[len(word):]
	switch word[0] {
	case 't', 'f':
		return Flag(word[0] == 't'), nil
	case 'n':
		return nil, nil
	}
	if r.exact {
		return Exact(word), nil
	}
	var number Number
	if err := json.Unmarshal(word, &number); err != nil {
		return nil, fmt.Errorf("read a number: %w", err)
	}
	return number, nil
}

func (r *reader) object() (Value, error) {
	r.text = r.text[1:]
	object := Object{}
	for r.next() != '}' {
		name, err := r.string()
		if err != nil {
			return nil, err
		}
		if object[name], err = r.value(); err != nil {
			return nil, err
		}
	}
	r.text = r.text[1:]
	return object, nil
}

func (r *reader) list() (Value, error) {
	r.text = r.text[1:]
	list := List{}
	for r.next() != ']' {
		item, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	r.text = r.text[1:]
	return list, nil
}

func (r *reader) string() (text string, err error) {
	end := 1
	for ; r.text[end] != '"'; end++ {
		if r.text[end] == '\\' {
			end++
		}
	}
	quoted := r.text[:end+1]
	r.text = r.text[end+1:]
	if plain := quoted[1:end]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain), nil
	}
	if err := json.Unmarshal(quoted, &text); err != nil {
		return "", fmt.Errorf("read a string: %w", err)
	}
	return text, nil
}
