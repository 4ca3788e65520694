package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// table describes a named schema.
type table struct {
	Name, Description string
	Type              []typePart
	Rules             []string
	Rows              []row
}

// row describes a property or a parameter.
type row struct {
	Name, In, Description string
	Required              bool
	Type                  []typePart
	Rules                 []string
}

// typePart is a piece of the text of a type. Link is the name of a table, if any.
type typePart struct{ Text, Link string }

func newTable(name string, s *schema) table {
	return table{Name: name, Description: s.Description, Type: typeOf(s), Rules: rulesOf(s), Rows: propertyRows("", s)}
}

// propertyRows returns the properties of an object. The properties of nested objects follow their
// object, with prefix and full names.
func propertyRows(prefix string, s *schema) []row {
	var rows []row
	for _, p := range s.Properties {
		name := prefix + p.Name
		rows = append(rows, row{
			Name: name, Description: p.Value.Description, Required: slices.Contains(s.Required, p.Name),
			Type: typeOf(p.Value), Rules: rulesOf(p.Value),
		})
		rows = append(rows, propertyRows(name+".", p.Value)...)
		if p.Value.Items != nil {
			rows = append(rows, propertyRows(name+"[].", p.Value.Items)...)
		}
	}
	return rows
}

// typeOf returns the text of a type, with links to the tables of named schemas.
func typeOf(s *schema) []typePart {
	switch {
	case s == nil:
		return nil
	case s.Ref != "":
		return []typePart{{referencedName(s.Ref), referencedName(s.Ref)}}
	case len(s.OneOf) > 0 && s.OneOf[0].Ref != "":
		return alternativesOf(s.OneOf)
	case len(s.AnyOf) > 0 && s.AnyOf[0].Ref != "":
		return alternativesOf(s.AnyOf)
	case len(s.AllOf) > 0 && s.AllOf[0].Ref != "":
		return typeOf(s.AllOf[0])
	case s.Items != nil:
		return append([]typePart{{Text: "array of "}}, typeOf(s.Items)...)
	case s.AdditionalProperties.schema != nil:
		return append([]typePart{{Text: "object of "}}, typeOf(s.AdditionalProperties.schema)...)
	case len(s.Type) > 0:
		named := slices.DeleteFunc(slices.Clone(s.Type), func(t string) bool { return t == "null" })
		return []typePart{{Text: strings.Join(named, " or ")}}
	case s.Const != nil:
		return []typePart{{Text: valueType(s.Const)}}
	default:
		return []typePart{{Text: "string"}}
	}
}

func valueType(v any) string {
	switch v.(type) {
	case bool:
		return "boolean"
	case int, float64:
		return "number"
	default:
		return "string"
	}
}

// alternativesOf returns the text of alternatives without null.
func alternativesOf(several []*schema) []typePart {
	var all []typePart
	for _, one := range several {
		if slices.Equal(one.Type, typeNames{"null"}) {
			continue
		}
		if len(all) > 0 {
			all = append(all, typePart{Text: " or "})
		}
		all = append(all, typeOf(one)...)
	}
	return all
}

// rulesOf returns the rules of a value in words: allowed values, bounds, default and examples.
func rulesOf(s *schema) []string {
	if s == nil {
		return nil
	}
	var rules []string
	addIf := func(present bool, format string, value any) {
		if present {
			rules = append(rules, fmt.Sprintf(format, value))
		}
	}
	addIf(len(s.Enum) > 0, "one of %s", formatValues(s.Enum))
	addIf(s.Const != nil, "always %s", formatValue(s.Const))
	addIf(s.Format != "", "%s", s.Format)
	addRange(&rules, formatInt(s.MinLength), formatInt(s.MaxLength), " characters")
	addRange(&rules, formatInt(s.MinItems), formatInt(s.MaxItems), " entries")
	addRange(&rules, formatFloat(s.Minimum), formatFloat(s.Maximum), "")
	addIf(s.Pattern != "", "pattern %s", s.Pattern)
	addIf(s.Default != nil, "default %s", formatValue(s.Default))
	addIf(len(s.Examples) > 0, "such as %s", formatValues(s.Examples))
	return rules
}

// addRange adds the rule of a range. An empty bound is missing.
func addRange(rules *[]string, least, most, unit string) {
	switch {
	case least != "" && most != "":
		*rules = append(*rules, least+" to "+most+unit)
	case least != "":
		*rules = append(*rules, "at least "+least+unit)
	case most != "":
		*rules = append(*rules, "at most "+most+unit)
	}
}

// formatInt returns a number as text; empty for nil.
func formatInt(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// formatFloat returns a number as text; empty for nil.
func formatFloat(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

// formatValues returns values separated by commas, without null.
func formatValues(values []any) string {
	var all []string
	for _, v := range values {
		if v != nil {
			all = append(all, formatValue(v))
		}
	}
	return strings.Join(all, ", ")
}

// formatValue returns a string as it is and any other value as JSON.
func formatValue(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil { // impossible for values that were read from YAML
		return fmt.Sprint(v)
	}
	return string(text)
}
