package apidocs

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// spec is what the page needs of an OpenAPI document.
type spec struct {
	Info struct {
		Title, Version, Summary, Description string
	}
	Tags []struct {
		Name, Description string
	}
	Paths      ordered[pathItem]
	Components struct {
		Schemas       ordered[*schema]
		Parameters    ordered[parameter]
		Responses     ordered[response]
		RequestBodies ordered[requestBody] `yaml:"requestBodies"`
		Headers       ordered[header]
	}
}

// pathItem holds the methods of a path in their order; what all of them share
// stands beside them.
type pathItem struct {
	Parameters []parameter
	Methods    []named[operation]
}

// UnmarshalYAML reads a Path Item Object.
func (p *pathItem) UnmarshalYAML(n *yaml.Node) error {
	var all ordered[yaml.Node]
	if err := n.Decode(&all); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	for _, member := range all {
		if member.Name == "parameters" {
			if err := member.Value.Decode(&p.Parameters); err != nil {
				return fmt.Errorf("parameters: %w", err)
			}
			continue
		}
		var o operation
		if err := member.Value.Decode(&o); err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
		p.Methods = append(p.Methods, named[operation]{member.Name, o})
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
	Responses   ordered[response]
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
	Content ordered[media]
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Headers     ordered[header]
	Content     ordered[media]
}

type header struct {
	Ref         string `yaml:"$ref"`
	Description string
}

type media struct {
	Schema   *schema
	Example  yaml.Node
	Examples ordered[example]
}

type example struct{ Value yaml.Node }

type schema struct {
	Ref                  string `yaml:"$ref"`
	Type                 words
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
	Properties           ordered[*schema]
	Items                *schema
	AdditionalProperties values    `yaml:"additionalProperties"`
	OneOf                []*schema `yaml:"oneOf"`
	AnyOf                []*schema `yaml:"anyOf"`
	AllOf                []*schema `yaml:"allOf"`
}

// ordered is a mapping whose members keep their order.
type ordered[T any] []named[T]

type named[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML reads a mapping.
func (o *ordered[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("not a mapping")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		member := named[T]{Name: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&member.Value); err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
		*o = append(*o, member)
	}
	return nil
}

// find returns the member that a reference names, such as
// "#/components/schemas/Error"; direct where there is no reference.
func (o ordered[T]) find(ref string, direct T) (T, error) {
	if ref == "" {
		return direct, nil
	}
	name := nameOf(ref)
	for _, member := range o {
		if member.Name == name {
			return member.Value, nil
		}
	}
	return direct, fmt.Errorf("%s does not exist", ref)
}

func nameOf(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// words is a word or a list of them.
type words []string

// UnmarshalYAML reads either form.
func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = words{n.Value}
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return fmt.Errorf("type: %w", err)
	}
	*w = list
	return nil
}

// values is the schema of the values of a map; nil where there is only a yes or
// no.
type values struct{ schema *schema }

// UnmarshalYAML reads either form.
func (v *values) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return nil
	}
	if err := n.Decode(&v.schema); err != nil {
		return fmt.Errorf("additionalProperties: %w", err)
	}
	return nil
}
