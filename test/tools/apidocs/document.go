package main

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// document holds the parts of an OpenAPI document that the page shows.
type document struct {
	Info struct {
		Title, Version, Summary, Description string
	}
	Tags []struct {
		Name, Description string
	}
	Paths      orderedMap[pathItem]
	Components struct {
		Schemas       orderedMap[*schema]
		Parameters    orderedMap[parameter]
		Responses     orderedMap[response]
		RequestBodies orderedMap[requestBody] `yaml:"requestBodies"`
		Headers       orderedMap[header]
	}
}

// pathItem is a Path Item Object: the operations of a path by HTTP method, in the order of the
// document.
type pathItem struct {
	Parameters []parameter // of every operation
	Methods    orderedMap[operation]
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *pathItem) UnmarshalYAML(n *yaml.Node) error {
	var all orderedMap[yaml.Node]
	if err := n.Decode(&all); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	for _, m := range all {
		if m.Name == "parameters" {
			if err := m.Value.Decode(&p.Parameters); err != nil {
				return fmt.Errorf("parameters: %w", err)
			}
			continue
		}
		var o operation
		if err := m.Value.Decode(&o); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		p.Methods = append(p.Methods, member[operation]{m.Name, o})
	}
	return nil
}

type operation struct {
	ID          string `yaml:"operationId"`
	Tags        []string
	Summary     string
	Description string
	Security    []map[string][]string
	Parameters  []parameter
	RequestBody *requestBody `yaml:"requestBody"`
	Responses   orderedMap[response]
}

type parameter struct {
	Ref         string `yaml:"$ref"`
	Name, In    string
	Required    bool
	Description string
	Schema      *schema
	Example     any
}

type requestBody struct {
	Ref     string `yaml:"$ref"`
	Content orderedMap[media]
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Headers     orderedMap[header]
	Content     orderedMap[media]
}

type header struct {
	Ref         string `yaml:"$ref"`
	Description string
}

type media struct {
	Schema   *schema
	Example  yaml.Node
	Examples orderedMap[example]
}

type example struct{ Value yaml.Node }

type schema struct {
	Ref                  string `yaml:"$ref"`
	Type                 typeNames
	Description          string
	Format, Pattern      string
	MinLength            *int `yaml:"minLength"`
	MaxLength            *int `yaml:"maxLength"`
	MinItems             *int `yaml:"minItems"`
	MaxItems             *int `yaml:"maxItems"`
	Minimum, Maximum     *float64
	Enum                 []any
	Const, Default       any
	Examples             []any
	Required             []string
	Properties           orderedMap[*schema]
	Items                *schema
	AdditionalProperties additionalProperties `yaml:"additionalProperties"`
	OneOf                []*schema            `yaml:"oneOf"`
	AnyOf                []*schema            `yaml:"anyOf"`
	AllOf                []*schema            `yaml:"allOf"`
}

// orderedMap is a YAML mapping whose members keep their order.
type orderedMap[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *orderedMap[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: this must be a mapping", n.Line)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		m := member[T]{Name: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&m.Value); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		*o = append(*o, m)
	}
	return nil
}

// resolve returns the member that a reference like "#/components/schemas/Error" names. Without a
// reference it returns direct.
func (o orderedMap[T]) resolve(ref string, direct T) (T, error) {
	if ref == "" {
		return direct, nil
	}
	name := referencedName(ref)
	for _, m := range o {
		if m.Name == name {
			return m.Value, nil
		}
	}
	return direct, fmt.Errorf("the reference %s names no component", ref)
}

func referencedName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// typeNames is the value of "type": a name or a list of names.
type typeNames []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *typeNames) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = typeNames{n.Value}
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return fmt.Errorf("type: %w", err)
	}
	*t = list
	return nil
}

// additionalProperties holds the schema of additional properties. It is nil if the document has a
// boolean instead.
type additionalProperties struct{ schema *schema }

// UnmarshalYAML implements yaml.Unmarshaler.
func (a *additionalProperties) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return nil
	}
	if err := n.Decode(&a.schema); err != nil {
		return fmt.Errorf("additionalProperties: %w", err)
	}
	return nil
}
