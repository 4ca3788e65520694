package kinddocs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/kinds"
)

// someTime is the example of a time.
const someTime = `"2026-01-31T12:00:00.000000Z"`

// Example returns an object as responses have it, as a line of YAML.
func (k kind) Example() string {
	all := slices.Concat(k.Fields, k.Facts, []kinds.Field{{Name: "managedBy"}})
	return example(all, func(f *kinds.Field) bool { return !f.Secret })
}

// ExampleDraft returns an object as requests have it, as a line of YAML.
func (k kind) ExampleDraft() string { return example(k.Fields[1:], isSent) }

// ExampleName returns the name in the example.
func (k kind) ExampleName() string { return exampleOf(&k.Fields[0]) }

// isSent reports whether the example of a request has a field.
func isSent(f *kinds.Field) bool { return f.Required || hasExample(*f) }

func hasExample(f kinds.Field) bool {
	return f.Example != "" || slices.ContainsFunc(f.Inner, hasExample)
}

// example returns an object with some of its fields.
func example(all []kinds.Field, has func(*kinds.Field) bool) string {
	var list []string
	for i := range all {
		if f := &all[i]; has(f) {
			list = append(list, quoted(f.Name)+": "+exampleOf(f))
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// exampleOf returns the example of a field: that of its description, else its default, else what one has
// that is missing. A text that must be there is a word that the field offers, or its name.
func exampleOf(f *kinds.Field) string {
	given, offered, text := cmp.Or(f.Example, f.Default), append(choices(f), "")[0], f.Shape == kinds.Text || f.Shape == kinds.Texts
	if f.Required && text && !isTime(f) {
		given = cmp.Or(given, offered, f.Name)
	}
	switch {
	case f.Shape == kinds.Objects && (f.Required || hasExample(*f)):
		return "[" + example(f.Inner, isSent) + "]"
	case f.Shape == kinds.Object && given == "":
		return example(f.Inner, func(*kinds.Field) bool { return true })
	case given != "":
		return value(f, given)
	case f.Null:
		return "null"
	case isTime(f):
		return someTime
	}
	return map[kinds.Shape]string{
		kinds.Text: quoted(offered), kinds.Texts: "[]", kinds.Objects: "[]", kinds.Flag: "false", kinds.Number: "0",
		kinds.TextMap: "{}",
	}[f.Shape]
}

func isTime(f *kinds.Field) bool {
	return f.Shape == kinds.Text && (f.Form == "Time" || f.Form == "date-time")
}

// value returns a value of a description: a text, texts with spaces between them, or YAML.
func value(f *kinds.Field, given string) string {
	switch f.Shape {
	case kinds.Text:
		return quoted(given)
	case kinds.Texts:
		var list []string
		for _, one := range strings.Fields(given) {
			list = append(list, quoted(one))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	return given
}
