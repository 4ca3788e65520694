package settings

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/caarlos0/env/v11"
)

// binding is a setting of a use case: a variable, or a key of the file of RISK_POLICY, and the
// field of the use case's Config that has its value. The Config defines the range.
type binding struct {
	Variable
	field any                // a pointer to the field
	parse func(string) error // sets the field
}

// bind returns the binding of a field by the field's type. part and readers are those of the group
// in Settings that has the field.
func (s *Settings) bind(field any, name, usual, meaning string) binding {
	b := binding{Variable: Variable{Name: name, Default: usual, Meaning: meaning}, field: field}
	b.Form = describeForm(reflect.TypeOf(field).Elem())
	b.parse = func(text string) error { return parseField(field, text, b.Form) }
	group, _, _ := strings.Cut(pathOf(reflect.ValueOf(s).Elem(), field), ".")
	if f, ok := reflect.TypeFor[Settings]().FieldByName(group); ok {
		b.Part, b.readBy = f.Tag.Get("part"), strings.Fields(f.Tag.Get("readBy"))
	}
	return b
}

// onlyIn returns a binding whose variable is read only by some parts.
func (b binding) onlyIn(parts ...string) binding {
	b.readBy = parts
	return b
}

// as returns a binding whose field is set by a function of its own. Its error is the sentence for
// operators, without the name of the setting.
func (b binding) as(form string, parse func(string) error) binding {
	b.Form, b.parse = form, parse
	return b
}

// word returns a function that sets a field to a word that parse knows. words lists those words.
func word[T any](field *T, parse func(string) (T, error), words string) func(string) error {
	return func(text string) error {
		v, err := parse(text)
		if err != nil {
			return fmt.Errorf("%q is not %s", text, words)
		}
		*field = v
		return nil
	}
}

// oneOf returns a function that sets a field to true for one word and to false for the other.
func oneOf(field *bool, yes, no string) func(string) error {
	return func(text string) error {
		if text != yes && text != no {
			return fmt.Errorf("%q is neither %s nor %s", text, yes, no)
		}
		*field = text == yes
		return nil
	}
}

// parseField sets a field to a value in the form of its type.
func parseField(field any, text, form string) error {
	target := reflect.ValueOf(field).Elem()
	box := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "Value", Type: target.Type(), Tag: `env:"VALUE"`},
	}))
	if err := env.ParseWithOptions(box.Interface(), env.Options{
		Environment: map[string]string{"VALUE": text},
	}); err != nil {
		return fmt.Errorf("%q is not %s", text, form)
	}
	target.Set(box.Elem().Field(0))
	return nil
}

// parseBindings sets the fields of bindings to values by their names, or to their defaults. It
// returns one error for each value that is wrong.
func parseBindings(bindings []binding, values map[string]string) (wrong []string) {
	for _, b := range bindings {
		text := cmp.Or(values[b.Name], b.Default)
		if text == "" {
			continue
		}
		if err := b.parse(text); err != nil {
			wrong = append(wrong, b.Name+": "+err.Error())
		}
	}
	return wrong
}

// pathOf returns the names of the fields that lead from a struct to a field in it, with dots
// between them, or nothing if the field is not in the struct.
func pathOf(in reflect.Value, field any) string {
	for i := range in.NumField() {
		f, name := in.Field(i), in.Type().Field(i).Name
		if !in.Type().Field(i).IsExported() {
			continue
		}
		if f.Addr().Interface() == field {
			return name
		}
		if f.Kind() == reflect.Struct {
			if inner := pathOf(f, field); inner != "" {
				return name + "." + inner
			}
		}
	}
	return ""
}

var fieldPath = regexp.MustCompile(`\b[A-Z][A-Za-z]*(\.[A-Z][A-Za-z]*)*\b`)

// named returns the error of a Config with the names of settings in place of those of fields.
func (s *Settings) named(config reflect.Value, err error) error {
	names := map[string]string{}
	for _, b := range s.riskPolicy() {
		names[pathOf(config, b.field)] = b.Name
	}
	for _, b := range s.bindings() {
		names[pathOf(config, b.field)] = b.Name
	}
	delete(names, "")
	head, _, _ := strings.Cut(err.Error(), ":")
	part := head[:strings.LastIndexByte(head, '.')+1] // of the Config, which calls its fields without it
	message := fieldPath.ReplaceAllStringFunc(err.Error(), func(path string) string {
		return cmp.Or(names[path], names[part+path], path)
	})
	if key := names[head]; s.Risk.Policy != "" && strings.Contains(key, ".") {
		message = "RISK_POLICY: " + s.Risk.Policy + ": " + message
	}
	return errors.New(message)
}
