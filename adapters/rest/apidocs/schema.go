package apidocs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// table is a named schema.
type table struct {
	Name, Description string
	Type              []word
	Rules             []string
	Rows              []row
}

type row struct {
	Name, In, Description string
	Required              bool
	Type                  []word
	Rules                 []string
}

// word is a piece of a type; Link names a table.
type word struct{ Text, Link string }

// tableOf returns a schema as the page shows it.
func tableOf(name string, s *schema) table {
	return table{Name: name, Description: s.Description, Type: typeOf(s), Rules: rulesOf(s), Rows: rowsOf("", s)}
}

// rowsOf returns the properties of an object, those of objects within it behind
// them by their whole names.
func rowsOf(before string, s *schema) []row {
	var rows []row
	for _, p := range s.Properties {
		name := before + p.Name
		rows = append(rows, row{
			Name: name, Description: p.Value.Description, Required: slices.Contains(s.Required, p.Name),
			Type: typeOf(p.Value), Rules: rulesOf(p.Value),
		})
		rows = append(rows, rowsOf(name+".", p.Value)...)
		if p.Value.Items != nil {
			rows = append(rows, rowsOf(name+"[].", p.Value.Items)...)
		}
	}
	return rows
}

// typeOf returns what a value is, with links to the tables it is made of.
func typeOf(s *schema) []word {
	switch {
	case s == nil:
		return nil
	case s.Ref != "":
		return []word{{nameOf(s.Ref), nameOf(s.Ref)}}
	case len(s.OneOf) > 0 && s.OneOf[0].Ref != "":
		return eitherOf(s.OneOf)
	case len(s.AnyOf) > 0 && s.AnyOf[0].Ref != "":
		return eitherOf(s.AnyOf)
	case len(s.AllOf) > 0 && s.AllOf[0].Ref != "":
		return typeOf(s.AllOf[0])
	case s.Items != nil:
		return append([]word{{Text: "array of "}}, typeOf(s.Items)...)
	case s.AdditionalProperties.schema != nil:
		return append([]word{{Text: "object of "}}, typeOf(s.AdditionalProperties.schema)...)
	case len(s.Type) > 0:
		named := slices.DeleteFunc(slices.Clone(s.Type), func(t string) bool { return t == "null" })
		return []word{{Text: strings.Join(named, " or ")}}
	case s.Const != nil:
		return []word{{Text: kindOf(s.Const)}}
	default:
		return []word{{Text: "string"}}
	}
}

// kindOf names the type of a value.
func kindOf(v any) string {
	switch v.(type) {
	case bool:
		return "boolean"
	case int, float64:
		return "number"
	default:
		return "string"
	}
}

// eitherOf names alternatives, null left out.
func eitherOf(several []*schema) []word {
	var all []word
	for _, one := range several {
		if slices.Equal(one.Type, words{"null"}) {
			continue
		}
		if len(all) > 0 {
			all = append(all, word{Text: " or "})
		}
		all = append(all, typeOf(one)...)
	}
	return all
}

// rulesOf returns the bounds of a value in words.
func rulesOf(s *schema) []string {
	if s == nil {
		return nil
	}
	var rules []string
	add := func(there bool, format string, value any) {
		if there {
			rules = append(rules, fmt.Sprintf(format, value))
		}
	}
	add(len(s.Enum) > 0, "one of %s", list(s.Enum))
	add(s.Const != nil, "always %s", plain(s.Const))
	add(s.Format != "", "%s", s.Format)
	bounds(&rules, number(s.MinLength), number(s.MaxLength), " characters")
	bounds(&rules, number(s.MinItems), number(s.MaxItems), " entries")
	bounds(&rules, decimal(s.Minimum), decimal(s.Maximum), "")
	add(s.Pattern != "", "pattern %s", s.Pattern)
	add(s.Default != nil, "default %s", plain(s.Default))
	add(len(s.Examples) > 0, "such as %s", list(s.Examples))
	return rules
}

// bounds adds the rule of a range, each end of which may be missing.
func bounds(rules *[]string, least, most, unit string) {
	switch {
	case least != "" && most != "":
		*rules = append(*rules, least+" to "+most+unit)
	case least != "":
		*rules = append(*rules, "at least "+least+unit)
	case most != "":
		*rules = append(*rules, "at most "+most+unit)
	}
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func decimal(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

// list writes values one after the other; null is left out, as it stands for a
// value that is not there.
func list(values []any) string {
	var all []string
	for _, v := range values {
		if v != nil {
			all = append(all, plain(v))
		}
	}
	return strings.Join(all, ", ")
}

// plain writes a value; a string without quotes.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil { // not for what YAML holds
		return fmt.Sprint(v)
	}
	return string(text)
}
