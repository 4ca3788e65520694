package settings

import (
	"net/netip"
	"reflect"
	"sort"
	"time"
)

// masked stands for a secret's value wherever settings are printed.
const masked = "(set)"

// Variable describes one environment variable.
type Variable struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Form    string `json:"form"` // what a value looks like, such as "a duration such as 500ms"
	Meaning string `json:"meaning"`
	Secret  bool   `json:"secret,omitempty"`
	Value   string `json:"value"` // what is in force; masked where secret
}

// variables lists the environment variables of a settings struct, ordered by
// name.
func variables(target any) []Variable {
	byName := map[string]Variable{}
	collect(reflect.TypeOf(target), byName)
	list := make([]Variable, 0, len(byName))
	for _, v := range byName {
		list = append(list, v)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

func collect(t reflect.Type, into map[string]Variable) {
	for f := range fields(t) {
		name := f.Tag.Get("env")
		if name == "-" {
			continue
		}
		if name == "" {
			if f.Type.Kind() == reflect.Struct {
				collect(f.Type, into)
			}
			continue
		}
		into[name] = Variable{
			Name:    name,
			Default: f.Tag.Get("envDefault"),
			Form:    form(f.Type),
			Meaning: f.Tag.Get("desc"),
			Secret:  f.Tag.Get("secret") == "true",
		}
	}
}

func fields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

// form says in words what a value of a type looks like.
func form(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 500ms, 10s or 24h"
	case reflect.TypeFor[[]netip.Prefix]():
		return "a comma-separated list of networks such as 10.0.0.0/8"
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
		return "a text"
	}
}
