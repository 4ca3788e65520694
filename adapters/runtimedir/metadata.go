package runtimedir

import (
	"math"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// maxValues bounds the values of all metadata of a file, aliases counted as often
// as they are used.
const maxValues = 1_000_000

// metadata reads what a descriptor tells callers: any mapping that JSON can write.
func (p *parser) metadata(n *yaml.Node) ratelimit.Metadata {
	n = resolve(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.fault(n, "metadata must be a mapping")
		return nil
	}
	m, _ := p.value(n, 1).(map[string]any)
	return m
}

// value returns a node's value in the types of JSON; nil with a fault where it has
// none.
func (p *parser) value(n *yaml.Node, depth int) any {
	n = resolve(n)
	if p.values++; p.values > maxValues || depth > maxDepth {
		if p.values <= maxValues+1 {
			p.fault(n, "metadata must not be nested deeper than %d levels, nor have more than %d values in a file", maxDepth, maxValues)
		}
		p.values = maxValues + 1 // one fault is enough
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return p.object(n, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, p.value(item, depth+1))
		}
		return list
	default:
		return p.scalar(n)
	}
}

func (p *parser) object(n *yaml.Node, depth int) map[string]any {
	m := make(map[string]any, len(n.Content)/2)
	for key, value := range pairs(n) {
		switch _, twice := m[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			p.fault(key, "a key in metadata must be a string")
		case twice:
			p.fault(key, "key %q is there twice", key.Value)
		default:
			m[key.Value] = p.value(value, depth+1)
		}
	}
	return m
}

func (p *parser) scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		var f float64
		if n.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		p.fault(n, "%s in metadata is not a number that JSON can write", n.Value)
		return nil
	}
	return n.Value
}
