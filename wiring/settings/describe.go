package settings

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
)

// masked is printed instead of the value of a secret.
const masked = "(set)"

// Variable describes one environment variable.
type Variable struct {
	Name    string `json:"name"`
	Part    string `json:"part"` // the section of the reference, for example "Registry"
	Default string `json:"default"`
	Form    string `json:"form"` // the form of a value, for example "a whole number"
	Meaning string `json:"meaning"`
	Secret  bool   `json:"secret,omitempty"`
	Value   string `json:"value"` // the value that the service uses; masked if it is a secret

	readBy   []string // the parts that read it; empty if it is always read
	readWith string   // the variable with which it is also read, if that is true
}

// Sections returns the sections of the reference of settings, in their order. Each is the Part of
// some variables.
func Sections() []string {
	var sections []string
	for f := range fields(reflect.TypeFor[Settings]()) {
		if part := f.Tag.Get("part"); part != "" && !slices.Contains(sections, part) {
			sections = append(sections, part)
		}
	}
	return sections
}

// variables returns the environment variables of the settings, ordered by name.
func variables() []Variable {
	byName := map[string]Variable{}
	for f := range fields(reflect.TypeFor[Settings]()) {
		if f.Tag.Get("env") != "-" {
			addVariables(f, byName)
		}
	}
	for _, b := range new(Settings).bindings() {
		byName[b.Name] = b.Variable
	}
	list := slices.Collect(maps.Values(byName))
	slices.SortFunc(list, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func addVariables(group reflect.StructField, into map[string]Variable) {
	part, readBy := group.Tag.Get("part"), group.Tag.Get("readBy")
	for f := range fields(group.Type) {
		name := f.Tag.Get("env")
		if name == "-" {
			continue
		}
		if name == "" {
			if f.Type.Kind() == reflect.Struct {
				f.Tag = group.Tag
				addVariables(f, into)
			}
			continue
		}
		own := readBy
		if narrower := f.Tag.Get("readBy"); narrower != "" {
			own = narrower
		}
		into[name] = Variable{
			Name:    name,
			Part:    part,
			Default: f.Tag.Get("envDefault"),
			Form:    describeForm(f.Type),
			Meaning: f.Tag.Get("desc"),
			Secret:  f.Tag.Get("secret") == "true",
			readBy:  strings.Fields(own),

			readWith: f.Tag.Get("readWith"),
		}
	}
}

// fields returns the exported fields of a struct type.
func fields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

// describeForm returns the form of the values of a type in words.
func describeForm(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration, for example 500ms, 10s or 24h"
	case reflect.TypeFor[[]netip.Prefix]():
		return "a comma-separated list of networks, for example 10.0.0.0/8"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a comma-separated list"
	default:
		return "text"
	}
}
