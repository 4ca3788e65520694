package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Details are the facts of an event by their names. They are written and read as a JSON object,
// whose members are in the order of the names.
type Details map[string]Value

// Value is one fact: a Text, a Number, a Flag, a List, or Details of its own; otherwise nil.
type Value interface{ isValue() }

type (
	// Text is a fact in words, a name or an id.
	Text string
	// Number is a fact that is counted or measured.
	Number float64
	// Flag is a fact that holds or not.
	Flag bool
	// List is a fact with several values.
	List []Value
)

func (Text) isValue()    {}
func (Number) isValue()  {}
func (Flag) isValue()    {}
func (List) isValue()    {}
func (Details) isValue() {}

// Texts returns a list of texts.
func Texts[T ~string](texts []T) List {
	list := make(List, len(texts))
	for i, t := range texts {
		list[i] = Text(t)
	}
	return list
}

// Set adds a text, unless it is empty.
func (d Details) Set(name, text string) {
	if text != "" {
		d[name] = Text(text)
	}
}

// Text returns the text of a name; otherwise empty.
func (d Details) Text(name string) string {
	text, _ := d[name].(Text)
	return string(text)
}

// Number returns the number of a name, and 0 if it does not exist.
func (d Details) Number(name string) float64 {
	number, _ := d[name].(Number)
	return float64(number)
}

// Int returns the number of a name without its fraction, and 0 if it does not exist.
func (d Details) Int(name string) int { return int(d.Number(name)) }

// Inner returns the details of a name; otherwise nil.
func (d Details) Inner(name string) Details {
	inner, _ := d[name].(Details)
	return inner
}

// List returns the list of a name; otherwise nil.
func (d Details) List(name string) List {
	list, _ := d[name].(List)
	return list
}

// UnmarshalJSON reads a JSON object.
func (d *Details) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("details of an audit event: %w", err)
	}
	*d = make(Details, len(members))
	for name, member := range members {
		value, err := parseValue(member)
		if err != nil {
			return err
		}
		(*d)[name] = value
	}
	return nil
}

// parseValue reads a value whose syntax was checked.
func parseValue(text json.RawMessage) (Value, error) {
	switch text[0] {
	case '{':
		return decode[Details](text)
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(text, &items); err != nil {
			return nil, fmt.Errorf("details of an audit event: %w", err)
		}
		list := make(List, len(items))
		for i, item := range items {
			var err error
			if list[i], err = parseValue(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case '"':
		if bytes.IndexByte(text, '\\') < 0 {
			return Text(text[1 : len(text)-1]), nil
		}
		return decode[Text](text)
	case 't', 'f':
		return Flag(text[0] == 't'), nil
	case 'n':
		return nil, nil
	}
	return decode[Number](text)
}

func decode[T Value](text json.RawMessage) (Value, error) {
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("details of an audit event: %w", err)
	}
	return value, nil
}
