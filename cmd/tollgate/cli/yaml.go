package cli

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// EncodeYAML returns a value as YAML, with the names and the order of its JSON.
func EncodeYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	useBlocks(&document)
	if text, err = yaml.Dump(&document); err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return text, nil
}

// useBlocks replaces the style of JSON by that of YAML. Empty lists and objects keep theirs.
func useBlocks(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode || len(n.Content) > 0 {
		n.Style = 0
	}
	for _, inner := range n.Content {
		useBlocks(inner)
	}
}
