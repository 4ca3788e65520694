package kinddocs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/kinds"
)

// schema is a named schema of objects.
type schema struct {
	Name, Description, Required string
	Properties                  []string // each as a line of YAML

	// Of the schema that objects of a kind have in a state.
	List, Kind string
}

// newSchemas returns the schemas of kinds: those in a state first.
func newSchemas(all []*kinds.Kind) (list []schema) {
	for _, one := range all {
		k := kind{one}
		s := newSchema("State"+k.Title(), k.The(upper(k.A()))+", in a state", fieldsOf(k.Declared()), true)
		s.List, s.Kind = k.List, k.Name
		list = append(list, s)
	}
	for _, one := range all {
		k := kind{one}
		members := fieldsOf(k.Fields)
		object := newSchema("Admin"+k.Title(), k.The(upper(k.A())), append(members, k.Facts...), false)
		object.Required += ", managedBy"
		object.Properties = append(object.Properties,
			"managedBy: {type: string, description: The owner of the file that manages it; empty if it was made by hand}")
		list = append(list, object,
			newSchema("Admin"+k.Title()+"Draft", k.The(upper(k.A()))+", as requests have it", members[1:], true),
			schema{
				Name: "Admin" + k.Title() + "List", Description: "A page of " + k.The(k.Many()), Required: k.List + ", metadata",
				Properties: []string{
					k.List + ": {type: array, items: " + reference("Admin"+k.Title()) + "}", "metadata: " + reference("AdminMetadata"),
				},
			})
		for _, f := range k.Fields {
			if f.Shape == kinds.Objects {
				list = append(list, newSchema(entry(&f), "An entry of "+f.Name+" of "+k.A(), f.Inner, true))
			}
		}
	}
	return list
}

// fieldsOf returns fields of a kind, with the form of names.
func fieldsOf(all []kinds.Field) []kinds.Field {
	all = slices.Clone(all)
	all[0].Form = cmp.Or(all[0].Form, fields.NameForm)
	return all
}

// entry returns the name of the schema of the objects in a field.
func entry(f *kinds.Field) string { return "Admin" + upper(strings.TrimSuffix(f.Name, "s")) }

// newSchema returns the schema of an object as it is written, or as responses have it: then all members
// are there, but for secrets.
func newSchema(name, description string, members []kinds.Field, written bool) schema {
	s := schema{Name: name, Description: description}
	var required []string
	for i := range members {
		f := &members[i]
		if f.Secret && !written {
			continue
		}
		if f.Required || !written {
			required = append(required, f.Name)
		}
		s.Properties = append(s.Properties, f.Name+": "+schemaOf(f, written))
	}
	s.Required = strings.Join(required, ", ")
	return s
}

// schemaOf returns the schema of a field as a line of YAML. As it is written, what is not required may
// be null, which is as if it were missing.
func schemaOf(f *kinds.Field, written bool) string {
	null := f.Null && !written || !f.Required && written
	if isReference(f.Form) && f.Shape != kinds.Texts {
		return referenceTo(f, null)
	}
	s := members{}
	switch f.Shape {
	case kinds.Texts:
		s.add("type", typed("array", null))
		s.addBounds(f, "Items")
		one := kinds.Field{Required: true, Form: f.Form, Options: f.Options}
		s.add("items", schemaOf(&one, written))
	case kinds.Flag:
		s.add("type", typed("boolean", null))
	case kinds.Number:
		s.add("type", typed("integer", null))
		s.add("minimum", "0")
		s.addIf(f.Most > 0, "maximum", fmt.Sprint(f.Most))
	case kinds.TextMap:
		s.add("type", typed("object", null))
		s.add("additionalProperties", "{type: string}")
	case kinds.Document:
		forms := "object"
		if written {
			forms = "object, string"
		}
		s.add("type", "["+forms+`, "null"]`)
	case kinds.Objects:
		s.add("type", typed("array", null))
		s.addBounds(f, "Items")
		s.add("items", reference(entry(f)))
	case kinds.Object:
		inner := newSchema("", "", f.Inner, written)
		s.add("type", typed("object", null))
		s.add("additionalProperties", "false")
		s.addIf(inner.Required != "", "required", "["+inner.Required+"]")
		s.add("properties", "{"+strings.Join(inner.Properties, ", ")+"}")
	case kinds.Text:
		s.add("type", typed("string", null))
		s.addText(f, null)
	}
	s.addIf(written && !f.Required && f.Default != "", "default", value(f, f.Default))
	s.addIf(f.Secret, "writeOnly", "true")
	s.addIf(f.Doc != "", "description", quoted(f.Doc))
	return s.String()
}

// members are the members of a schema.
type members []string

func (m *members) add(name, value string) { *m = append(*m, name+": "+value) }

func (m *members) addIf(present bool, name, value string) {
	if present {
		m.add(name, value)
	}
}

// addBounds adds how many characters or entries a field has.
func (m *members) addBounds(f *kinds.Field, unit string) {
	m.addIf(f.Required, "min"+unit, "1")
	m.addIf(f.Most > 0, "max"+unit, fmt.Sprint(f.Most))
}

// addText adds what a text must be.
func (m *members) addText(f *kinds.Field, null bool) {
	words := choices(f)
	if len(words) > 0 {
		for i := range words {
			words[i] = quoted(words[i])
		}
		if null {
			words = append(words, "null")
		}
		m.add("enum", "["+strings.Join(words, ", ")+"]")
		return
	}
	pattern := strings.HasPrefix(f.Form, "^")
	if !pattern && f.Form == "" {
		m.addBounds(f, "Length")
	}
	m.addIf(pattern, "pattern", quoted(f.Form))
	m.addIf(!pattern && f.Form != "", "format", f.Form)
}

// String returns the schema as a line of YAML.
func (m *members) String() string { return "{" + strings.Join(*m, ", ") + "}" }

// choices returns the values that a field offers.
func choices(f *kinds.Field) (all []string) {
	for _, o := range f.Options {
		if o.Value != "" {
			all = append(all, o.Value)
		}
	}
	return all
}

func typed(name string, null bool) string {
	if null {
		return "[" + name + `, "null"]`
	}
	return name
}

func isReference(form string) bool { return form != "" && form[0] >= 'A' && form[0] <= 'Z' }

func reference(name string) string { return `{$ref: "#/components/schemas/` + name + `"}` }

// referenceTo returns the schema of a field that the document has a schema of.
func referenceTo(f *kinds.Field, null bool) string {
	s := members{}
	if null {
		s.add("oneOf", "["+reference(f.Form)+`, {type: "null"}]`)
	} else {
		s.add("$ref", quoted("#/components/schemas/"+f.Form))
	}
	s.addIf(f.Doc != "", "description", quoted(f.Doc))
	return s.String()
}

// quoted returns a text as YAML and JSON have it.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // no error: it is a text
	return strings.TrimSpace(b.String())
}
