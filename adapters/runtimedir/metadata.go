package runtimedir

import (
	"math"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// maxValues is the maximum number of metadata values in a file. Each use of an alias counts.
const maxValues = 1_000_000

// parseMetadata parses the metadata that a descriptor passes to callers: any mapping that JSON can
// represent.
func (p *parser) parseMetadata(n *yaml.Node) ratelimit.Metadata {
	n = resolveAlias(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.addFault(n, "metadata must be a mapping")
		return nil
	}
	m, _ := p.parseValue(n, 1).(jsonvalue.Object)
	return m
}

// parseValue returns the value of a node in the types of JSON. If JSON cannot represent it,
// parseValue adds a fault and returns nil.
func (p *parser) parseValue(n *yaml.Node, depth int) jsonvalue.Value {
	n = resolveAlias(n)
	if p.values++; p.values > maxValues || depth > maxDepth {
		if p.values <= maxValues+1 {
			p.addFault(n, "metadata must not be nested deeper than %d levels, nor have more than %d values in a file",
				maxDepth, maxValues)
		}
		p.values = maxValues + 1 // report it once
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return p.parseObject(n, depth)
	case yaml.SequenceNode:
		list := make(jsonvalue.List, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, p.parseValue(item, depth+1))
		}
		return list
	default:
		return p.parseScalar(n)
	}
}

func (p *parser) parseObject(n *yaml.Node, depth int) jsonvalue.Object {
	m := make(jsonvalue.Object, len(n.Content)/2)
	for key, value := range mappingPairs(n) {
		switch _, twice := m[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			p.addFault(key, "a key in metadata must be a string")
		case twice:
			p.addFault(key, "duplicate key %q", key.Value)
		default:
			m[key.Value] = p.parseValue(value, depth+1)
		}
	}
	return m
}

func (p *parser) parseScalar(n *yaml.Node) jsonvalue.Value {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return jsonvalue.Flag(b)
		}
	case "!!int", "!!float":
		var f float64
		if n.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return jsonvalue.Number(f)
		}
		p.addFault(n, "%s in metadata is not a number that JSON can represent", n.Value)
		return nil
	}
	return jsonvalue.Text(n.Value)
}
