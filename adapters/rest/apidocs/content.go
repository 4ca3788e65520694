package apidocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// content is a body in one of its media types.
type content struct {
	Media    string
	Type     []word
	Tables   []table // of the schema, or of each of its alternatives
	Examples []shown
}

// shown is an example; its name is empty where it is the only one.
type shown struct{ Name, Text string }

type reply struct {
	Status, Description string
	Headers             []string
	Content             []content
}

// succeeds tells a success or a redirection from a failure.
func (r reply) succeeds() bool { return r.Status[0] == '2' || r.Status[0] == '3' }

// form returns what the body is.
func (r reply) form() []word {
	if len(r.Content) == 0 {
		return nil
	}
	return r.Content[0].Type
}

func (s *spec) replies(responses ordered[response]) ([]reply, error) {
	var list []reply
	for _, r := range responses {
		v, err := s.Components.Responses.find(r.Value.Ref, r.Value)
		if err != nil {
			return nil, err
		}
		a := reply{Status: r.Name, Description: v.Description}
		if a.Status == "default" {
			a.Status = "other"
		}
		for _, h := range v.Headers {
			a.Headers = append(a.Headers, h.Name)
		}
		if a.Content, err = s.contents(v.Content); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// takeCommonHeaders returns the headers that all answers have, and takes them
// from each.
func takeCommonHeaders(all []reply) []string {
	if len(all) == 0 {
		return nil
	}
	var common []string
	for _, name := range all[0].Headers {
		if !slices.ContainsFunc(all, func(r reply) bool { return !slices.Contains(r.Headers, name) }) {
			common = append(common, name)
		}
	}
	for i := range all {
		all[i].Headers = slices.DeleteFunc(all[i].Headers, func(name string) bool { return slices.Contains(common, name) })
	}
	return common
}

func (s *spec) contents(all ordered[media]) ([]content, error) {
	var list []content
	for _, m := range all {
		c := content{Media: m.Name, Type: typeOf(m.Value.Schema)}
		var err error
		if c.Tables, err = s.tables(m.Value.Schema); err != nil {
			return nil, err
		}
		if !m.Value.Example.IsZero() {
			text, err := indented(&m.Value.Example)
			if err != nil {
				return nil, err
			}
			c.Examples = append(c.Examples, shown{Text: text})
		}
		for _, example := range m.Value.Examples {
			text, err := indented(&example.Value.Value)
			if err != nil {
				return nil, err
			}
			c.Examples = append(c.Examples, shown{example.Name, text})
		}
		list = append(list, c)
	}
	return list, nil
}

// tables returns the properties of an object, or of each object that a body may
// be.
func (s *spec) tables(body *schema) ([]table, error) {
	if body == nil {
		return nil, nil
	}
	var list []table
	for _, one := range append([]*schema{body}, body.OneOf...) {
		if one.Ref == "" {
			continue
		}
		named, err := s.Components.Schemas.find(one.Ref, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, tableOf(nameOf(one.Ref), named))
	}
	return list, nil
}

// indented writes YAML as JSON for people.
func indented(n *yaml.Node) (string, error) {
	text, err := toJSON(n)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return "", fmt.Errorf("write example: %w", err)
	}
	return b.String(), nil
}
