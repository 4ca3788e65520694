package runtimedir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// block is a kind of mapping in a file.
type block string

const (
	inFile       block = "a file"
	inDescriptor block = "a descriptor"
	inLimit      block = "rate_limit"
	inReplaces   block = "replaces"
)

// known returns the keys of a block (contract L-36).
func (b block) known() []string {
	switch b {
	case inFile:
		return []string{"domain", "descriptors"}
	case inDescriptor:
		return []string{
			"key", "value", "rate_limit", "descriptors", "shadow_mode", "detailed_metric", "value_to_metric",
			"share_threshold", "quota_mode", "metadata",
		}
	case inLimit:
		return []string{"unit", "requests_per_unit", "unlimited", "name", "replaces", "shadow_mode"}
	case inReplaces:
		return []string{"name"}
	}
	return nil
}

// ignores reports whether a key is taken without a meaning: the name of a file,
// which Envoy Gateway writes next to its domain.
func (b block) ignores(key *yaml.Node) bool {
	return b == inFile && key.Kind == yaml.ScalarNode && key.Value == "name"
}

// fields calls visit for each known key of a mapping, and reports the others. It
// calls visit again for a key that is there twice, and warns of it. What is merged
// in with << comes after what the mapping says itself.
func (p *parser) fields(n *yaml.Node, in block, visit func(name string, value *yaml.Node)) {
	seen := map[string]bool{}
	p.own(resolve(n), in, seen, visit)
}

func (p *parser) own(n *yaml.Node, in block, seen map[string]bool, visit func(string, *yaml.Node)) {
	for key, value := range pairs(n) {
		name := key.Value
		switch {
		case key.Tag == "!!merge":
		case in.ignores(key):
		case key.Kind != yaml.ScalarNode || !slices.Contains(in.known(), name):
			p.unknown(key, in)
		default:
			if seen[name] {
				p.warn(key, fmt.Sprintf("key %q is there twice, and the last one counts", name))
			}
			seen[name] = true
			visit(name, value)
		}
	}
	for key, value := range pairs(n) {
		if key.Tag == "!!merge" {
			p.merge(value, in, seen, visit)
		}
	}
}

func (p *parser) merge(n *yaml.Node, in block, seen map[string]bool, visit func(string, *yaml.Node)) {
	merged := []*yaml.Node{n}
	if resolve(n).Kind == yaml.SequenceNode {
		merged = resolve(n).Content
	}
	for _, m := range merged {
		if resolve(m).Kind != yaml.MappingNode {
			p.fault(m, "<< must name a mapping or a list of them")
			continue
		}
		for key, value := range pairs(resolve(m)) {
			switch {
			case seen[key.Value], in.ignores(key):
			case !slices.Contains(in.known(), key.Value):
				p.unknown(key, in)
			default:
				seen[key.Value] = true
				visit(key.Value, value)
			}
		}
	}
}

// unknown reports a key that has no place in the block, and where it has one.
func (p *parser) unknown(key *yaml.Node, in block) {
	for _, other := range []block{inFile, inDescriptor, inLimit} {
		if slices.Contains(other.known(), key.Value) {
			p.fault(key, "misplaced key %q: it belongs in %s, not in %s", key.Value, other, in)
			return
		}
	}
	p.fault(key, "unknown key %q in %s, which has %s", key.Value, in, strings.Join(in.known(), ", "))
}

// pairs goes through keys and values of a mapping.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// text reads a scalar as it is written: numbers and booleans are words too.
func (p *parser) text(name string, n *yaml.Node) ruleset.Text {
	t := ruleset.Text{At: p.at(n)}
	switch n = resolve(n); {
	case n.Kind != yaml.ScalarNode:
		p.fault(n, "%s must be a string", name)
		t.Value = "?" // so that it is not reported as empty as well
	case !isNull(n):
		t.Value = n.Value
	}
	return t
}

// flag reads a boolean; nil for none.
func (p *parser) flag(name string, n *yaml.Node) *bool {
	n = resolve(n)
	if isNull(n) {
		return nil
	}
	var b bool
	if n.Kind != yaml.ScalarNode || n.Decode(&b) != nil {
		p.fault(n, "%s must be true or false", name)
	}
	return &b
}

func (p *parser) isSet(name string, n *yaml.Node) bool {
	b := p.flag(name, n)
	return b != nil && *b
}

// count reads an unsigned number of 32 bits; nil for none.
func (p *parser) count(name string, n *yaml.Node) *ruleset.Requests {
	at := p.at(n)
	n = resolve(n)
	if isNull(n) {
		return nil
	}
	var count uint32
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&count) != nil {
		p.fault(n, "%s must be a whole number from 0 to %s", name, strconv.FormatUint(1<<32-1, 10))
	}
	return &ruleset.Requests{Count: count, At: at}
}

// resolve returns what an alias stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
