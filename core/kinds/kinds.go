// Package kinds is how a kind of objects that operators manage is described: once, for the API, the
// console, the commands, the state in a file and the audit log.
package kinds

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
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

	// What the documentation of the API says of it, besides what it says of every kind.
	About                              string  // what follows its name in sentences, for example "of company sign-in"
	Most                               int     // how many objects there may be; 0 for any number
	Facts                              []Field // what else a response has, which no one writes
	Shown                              string  // the fact with a secret, which only the response to its making has
	ListDoc, GetDoc, PutDoc, RemoveDoc string  // sentences about the operations
	Purge                              string  // what purge=true does when one is removed; empty for nothing
}

// Path returns the last part of the path of its objects in the API, for example "access-rules".
func (k *Kind) Path() string { return separated(k.List, "-") }

// Noun returns how one of its objects is called in sentences, for example "access rule".
func (k *Kind) Noun() string { return separated(k.Name, " ") }

// Key returns how the name of one of its objects is called, for example "Name".
func (k *Kind) Key() string { return cmp.Or(k.Fields[0].Label, "Name") }

// Declared returns the fields that a state in a file may have.
func (k *Kind) Declared() []Field {
	return slices.DeleteFunc(slices.Clone(k.Fields), func(f Field) bool { return f.Secret && f.Shape == Flag })
}

// Present returns the values that a state needs: those that are not what a missing one is.
func (k *Kind) Present(values audit.Details) audit.Details {
	all := Present(values)
	for i := range k.Fields {
		if f := &k.Fields[i]; f.on() && values[f.Name] == audit.Flag(false) {
			all[f.Name] = values[f.Name]
		}
	}
	return all
}

// Verb returns what the actions of its events begin with, for example "access_rule".
func (k *Kind) Verb() string { return separated(k.Name, "_") }

// Title returns how all of its objects are called, for example "Access rules".
func (k *Kind) Title() string { return strings.ToUpper(k.List[:1]) + separated(k.List, " ")[1:] }

// separated returns a name in lower case, with a separator between its words.
func separated(name, separator string) string {
	return strings.ToLower(capital.ReplaceAllString(name, separator+"$0"))
}

var capital = regexp.MustCompile("[A-Z]")

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
	Document // an object with any members, or a text with its JSON
)

// Field is a field of the objects of a kind, or of an object in it.
type Field struct {
	Name     string
	Shape    Shape
	Required bool
	Check    func(string) error // of each text; nil for any
	Inner    []Field            // of Objects and Object
	Secret   bool               // it is written and never read; a Flag orders something once

	// How the documentation of the API has it.
	Doc  string // what it means
	Form string // of each text: "date-time", a pattern, which begins with ^, or a schema of openapi.yaml
	Most int    // how many characters or entries it has at most, or the greatest number; 0 for any
	Null bool   // a response has null for one that is missing
	// What a missing one is, and an example: a text, texts with spaces between them, or YAML of other shapes.
	Default, Example string

	// How a form of the console has it. Without a Label it is on no form of its kind.
	Label, Hint string
	Control     string // as site.Input.Kind; without one, a list of texts has a line for each, in an "area"
	Options     []Option

	// How a command has it. Without a Usage it has no flag, and is an argument if it is required. A Default is
	// that of the flag, also of a required one.
	Flag, Usage string // without a Flag its name, that of a list without the last s
	Whole       bool   // commas do not separate the texts of the flag
	Column      string // its title in tables, and if it is in an object, anything; empty for no column
}

// on reports whether a missing one is a flag that is set.
func (f *Field) on() bool { return f.Shape == Flag && f.Default == "true" }

// FlagName returns the name of its flag, for example "min-trust".
func (f *Field) FlagName() string {
	if f.Shape == Texts || f.Shape == Objects {
		return cmp.Or(f.Flag, separated(strings.TrimSuffix(f.Name, "s"), "-"))
	}
	return cmp.Or(f.Flag, separated(f.Name, "-"))
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
	return each.Map(values, func(v T) Option { return Option{string(v), string(v)} })
}

// Complete returns the values of fields with those that are missing: no text is null, and a list
// without entries, a flag as it is by default and an object without members are there. A secret is not.
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
			value = audit.Flag(f.on())
		}
		all[f.Name] = value
	}
	return all
}

// Present returns the values that are not empty.
func Present(values audit.Details) audit.Details {
	all := audit.Details{}
	for name, v := range values {
		list, isList := v.(audit.List)
		inner, isObject := v.(audit.Details)
		empty := v == nil || isList && len(list) == 0 || isObject && len(inner) == 0
		if !empty && v != audit.Text("") && v != audit.Flag(false) {
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
