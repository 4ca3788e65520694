// Package kinds is how a kind of objects that operators manage is described: once, for the API, the
// console, the commands, the state in a file and the audit log.
package kinds

import (
	"strings"
	"time"
	"unicode"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Kind is a kind of objects that are known by a name.
type Kind struct {
	Name     string // in the singular, for example "accessRule"
	List     string // in the plural: the member of its objects in JSON, for example "accessRules"
	Category audit.Category
	// Put and Remove are the actions of writes that are refused.
	Put, Remove audit.Action
	Fields      []Field // the first is the name
}

// Path returns the last part of the path of its objects in the API, for example "access-rules".
func (k *Kind) Path() string {
	var path strings.Builder
	for _, r := range k.List {
		if unicode.IsUpper(r) {
			path.WriteByte('-')
		}
		path.WriteRune(unicode.ToLower(r))
	}
	return path.String()
}

// Shape is the form of the values of a field.
type Shape uint8

// The shapes.
const (
	Text Shape = iota
	Texts
	Flag
	Number
	TextMap
	Objects
	Object
)

// Field is a field of the objects of a kind, or of an object in it.
type Field struct {
	Name     string
	Shape    Shape
	Required bool
	Check    func(string) error // of each text; nil for any
	Inner    []Field            // of Objects and Object
	Secret   bool               // it is written and never read

	// How a form of the console has it. Without a Label it is on no form of its kind.
	Label, Hint string
	Control     string // as site.Input.Kind; without one, a list of texts has a line for each, in an "area"
	Options     []Option
}

// The controls that a form shows in a form of their own.
const (
	ControlEnd    = "end"    // the day at whose beginning something ends, or a time
	ControlGrants = "grants" // the grants of groups, one on each line
)

// Option is a value that a field offers, and how people read it.
type Option struct{ Value, Text string }

// Words returns options whose texts are their values.
func Words[T ~string](values ...T) []Option {
	options := make([]Option, len(values))
	for i, v := range values {
		options[i] = Option{string(v), string(v)}
	}
	return options
}

// Complete returns the values of fields with those that are missing: no text is null, and a list
// without entries, a flag that is not set and an object without members are there. A secret is not.
func Complete(fields []Field, values audit.Details) audit.Details {
	all := make(audit.Details, len(fields))
	for i := range fields {
		f := &fields[i]
		value := values[f.Name]
		switch {
		case f.Secret:
			continue
		case f.Shape == Object:
			value = Complete(f.Inner, values.Inner(f.Name))
		case value != nil:
		case f.Shape == Texts || f.Shape == Objects:
			value = audit.List{}
		case f.Shape == Flag:
			value = audit.Flag(false)
		}
		all[f.Name] = value
	}
	return all
}

// Present returns the values that are not empty.
func Present(values audit.Details) audit.Details {
	all := audit.Details{}
	for name, v := range values {
		empty := v == nil
		switch v := v.(type) {
		case audit.Text:
			empty = v == ""
		case audit.Flag:
			empty = !bool(v)
		case audit.List:
			empty = len(v) == 0
		case audit.Details:
			empty = len(v) == 0
		}
		if !empty {
			all[name] = v
		}
	}
	return all
}

// Checked returns the check that a text can be parsed.
func Checked[T any](parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		_, err := parse(s)
		return err
	}
}

// CheckTime returns fault.Invalid for a text that is not a time.
func CheckTime(s string) error {
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return fault.New(fault.Invalid, "must be an RFC 3339 time, for example 2027-01-01T00:00:00Z")
	}
	return nil
}
