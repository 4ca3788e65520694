package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// toJSON converts YAML to JSON. The members of an object keep their order.
func toJSON(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	if err := appendJSON(&b, n); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// toIndentedJSON converts YAML to JSON with line breaks, for people.
func toIndentedJSON(n *yaml.Node) (string, error) {
	text, err := toJSON(n)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return "", fmt.Errorf("line %d: indent JSON: %w", n.Line, err)
	}
	return b.String(), nil
}

func appendJSON(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return appendJSON(b, n.Content[0])
	case yaml.MappingNode:
		return appendMembers(b, n.Content)
	case yaml.SequenceNode:
		return appendItems(b, n.Content)
	case yaml.ScalarNode:
		return appendScalar(b, n)
	default:
		return fmt.Errorf("line %d: YAML aliases cannot be converted to JSON", n.Line)
	}
}

func appendMembers(b *bytes.Buffer, content []*yaml.Node) error {
	b.WriteByte('{')
	for i := 0; i+1 < len(content); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := appendValue(b, content[i].Value); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := appendJSON(b, content[i+1]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func appendItems(b *bytes.Buffer, content []*yaml.Node) error {
	b.WriteByte('[')
	for i, item := range content {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := appendJSON(b, item); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func appendScalar(b *bytes.Buffer, n *yaml.Node) error {
	if n.ShortTag() == "!!str" || n.ShortTag() == "!!timestamp" {
		return appendValue(b, n.Value)
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return appendValue(b, value)
}

func appendValue(b *bytes.Buffer, value any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("encode %v as JSON: %w", value, err)
	}
	b.Truncate(b.Len() - 1) // the line break that Encode appends
	return nil
}
