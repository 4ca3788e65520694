// Package jsonvalue is the form of JSON whose content the core does not know in advance: the
// details of an event and of a failure, the metadata of a rule, the document of a server. What has
// a known form is a type of its own, not a value of this package.
package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Value is a Text, a Number, an Exact, a Flag, a List, or an Object; otherwise nil, which is null.
type Value interface{ isValue() }

type (
	// Object has values by their names. It is written with its members in the order of the names.
	Object map[string]Value
	// List has values in their order.
	List []Value
	// Text is a string.
	Text string
	// Number is a number to calculate with.
	Number float64
	// Exact is a number in the digits in which it was written.
	Exact string
	// Flag is true or false.
	Flag bool
)

func (Object) isValue() {}
func (List) isValue()   {}
func (Text) isValue()   {}
func (Number) isValue() {}
func (Exact) isValue()  {}
func (Flag) isValue()   {}

// Texts returns a list of texts.
func Texts[T ~string](texts []T) List {
	list := make(List, len(texts))
	for i, t := range texts {
		list[i] = Text(t)
	}
	return list
}

// Set adds a text, unless it is empty.
func (o Object) Set(name, text string) {
	if text != "" {
		o[name] = Text(text)
	}
}

// Text returns the text of a name; otherwise empty.
func (o Object) Text(name string) string {
	text, _ := o[name].(Text)
	return string(text)
}

// Number returns the number of a name, and 0 if it does not exist.
func (o Object) Number(name string) float64 {
	number, _ := o[name].(Number)
	return float64(number)
}

// Int returns the number of a name without its fraction, and 0 if it does not exist.
func (o Object) Int(name string) int { return int(o.Number(name)) }

// Flag reports whether the value of a name is true.
func (o Object) Flag(name string) bool { return o[name] == Flag(true) }

// Inner returns the object of a name; otherwise nil.
func (o Object) Inner(name string) Object {
	inner, _ := o[name].(Object)
	return inner
}

// List returns the list of a name; otherwise nil.
func (o Object) List(name string) List {
	list, _ := o[name].(List)
	return list
}

// Texts returns the texts of the list of a name; a value that is no text is empty.
func (o Object) Texts(name string) (all []string) {
	for _, v := range o.List(name) {
		text, _ := v.(Text)
		all = append(all, string(text))
	}
	return all
}

// TextMap returns the texts of all names.
func (o Object) TextMap() map[string]string {
	all := make(map[string]string, len(o))
	for name := range o {
		all[name] = o.Text(name)
	}
	return all
}

// Objects returns those values of the list of a name that are objects.
func (o Object) Objects(name string) []Object {
	var all []Object
	for _, item := range o.List(name) {
		if inner, ok := item.(Object); ok {
			all = append(all, inner)
		}
	}
	return all
}

// UnmarshalJSON reads an object, with each number as Number. Null is a nil object.
func (o *Object) UnmarshalJSON(text []byte) error {
	r := NewReader(text)
	value, err := r.value(false)
	if err != nil {
		return err
	}
	object, ok := value.(Object)
	if !ok && value != nil {
		return fmt.Errorf("%.20q is not a JSON object", text)
	}
	*o = object
	return nil
}

// MarshalJSON writes the digits.
func (e Exact) MarshalJSON() ([]byte, error) { return []byte(e), nil }

// Parse reads the first value of a text, with each number as Exact.
func Parse(text []byte) (Value, error) {
	var first json.RawMessage // Decode checks the syntax, and limits how deep values are nested
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&first); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	r := NewReader(first)
	return r.value(true)
}

// ParseObject reads a text that is one object, with each number as Exact. It returns an error for
// anything else, and for an object in it that has a member twice, of which readers may take either.
func ParseObject(text []byte) (Object, error) {
	if !json.Valid(text) {
		return nil, errors.New("it is not JSON")
	}
	r := NewReader(text)
	value, err := r.value(true)
	object, ok := value.(Object)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errors.New("it is not a JSON object")
	case r.twice != "":
		return nil, fmt.Errorf("it has %.60q twice in one object", r.twice)
	}
	return object, nil
}
