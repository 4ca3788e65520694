package runtimedir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// block is a kind of mapping in a rule file.
type block string

const (
	inFile       block = "a file"
	inDescriptor block = "a descriptor"
	inLimit      block = "rate_limit"
	inReplaces   block = "replaces"
)

// knownKeys returns the keys that a block may have (contract L-36).
func (b block) knownKeys() []string {
	switch b {
	case inFile:
		return []string{"domain", "descriptors"}
	case inDescriptor:
		return []string{
			"key", "value", "rate_limit", "descriptors", "shadow_mode", "detailed_metric", "value_to_metric",
			"share_threshold", "quota_mode", "metadata",
		}
	case inLimit:
		return []string{
			"unit", "requests_per_unit", "unlimited", "name", "replaces", "shadow_mode", "algorithm", "burst", "lease",
		}
	case inReplaces:
		return []string{"name"}
	}
	return nil
}

// ignoresKey reports whether a key is accepted and ignored. This is the name of a file, which Envoy
// Gateway writes next to its domain.
func (b block) ignoresKey(key *yaml.Node) bool {
	return b == inFile && key.Kind == yaml.ScalarNode && key.Value == "name"
}

// visitFields calls visit for each known key of a mapping, and adds a fault for each unknown key.
// For a duplicate key it calls visit again and adds a warning. Keys merged with << are visited
// after the mapping's own keys.
func (p *parser) visitFields(n *yaml.Node, in block, visit func(name string, value *yaml.Node)) {
	seen := map[string]bool{}
	p.visitOwnFields(resolveAlias(n), in, seen, visit)
}

// visitOwnFields visits the keys of the mapping itself, then the merged ones.
func (p *parser) visitOwnFields(n *yaml.Node, in block, seen map[string]bool, visit func(string, *yaml.Node)) {
	for key, value := range mappingPairs(n) {
		name := key.Value
		switch {
		case key.Tag == "!!merge":
		case in.ignoresKey(key):
		case key.Kind != yaml.ScalarNode || !slices.Contains(in.knownKeys(), name):
			p.addUnknownKey(key, in)
		default:
			if seen[name] {
				p.addWarning(key, fmt.Sprintf("duplicate key %q: the last value applies", name))
			}
			seen[name] = true
			visit(name, value)
		}
	}
	for key, value := range mappingPairs(n) {
		if key.Tag == "!!merge" {
			p.visitMergedFields(value, in, seen, visit)
		}
	}
}

// visitMergedFields visits the keys of merged mappings that were not visited before.
func (p *parser) visitMergedFields(n *yaml.Node, in block, seen map[string]bool, visit func(string, *yaml.Node)) {
	merged := []*yaml.Node{n}
	if resolveAlias(n).Kind == yaml.SequenceNode {
		merged = resolveAlias(n).Content
	}
	for _, m := range merged {
		if resolveAlias(m).Kind != yaml.MappingNode {
			p.addFault(m, "<< must name a mapping or a list of them")
			continue
		}
		for key, value := range mappingPairs(resolveAlias(m)) {
			switch {
			case seen[key.Value], in.ignoresKey(key):
			case !slices.Contains(in.knownKeys(), key.Value):
				p.addUnknownKey(key, in)
			default:
				seen[key.Value] = true
				visit(key.Value, value)
			}
		}
	}
}

// addUnknownKey adds a fault for a key that the block may not have. The fault names the block that
// the key belongs in, if there is one.
func (p *parser) addUnknownKey(key *yaml.Node, in block) {
	for _, other := range []block{inFile, inDescriptor, inLimit} {
		if slices.Contains(other.knownKeys(), key.Value) {
			p.addFault(key, "misplaced key %q: it belongs in %s, not in %s", key.Value, other, in)
			return
		}
	}
	p.addFault(key, "unknown key %q in %s, which has %s", key.Value, in, strings.Join(in.knownKeys(), ", "))
}

// mappingPairs iterates over the keys and values of a mapping.
func mappingPairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// parseText returns a scalar as it is written. Numbers and booleans are accepted as text.
func (p *parser) parseText(name string, n *yaml.Node) ruleset.Text {
	t := ruleset.Text{At: p.position(n)}
	switch n = resolveAlias(n); {
	case n.Kind != yaml.ScalarNode:
		p.addFault(n, "%s must be a string", name)
		t.Value = "?" // prevents a second fault for an empty value
	case !isNull(n):
		t.Value = n.Value
	}
	return t
}

// parseFlag parses a boolean, which is nil if the value is null.
func (p *parser) parseFlag(name string, n *yaml.Node) *bool {
	n = resolveAlias(n)
	if isNull(n) {
		return nil
	}
	var b bool
	if n.Kind != yaml.ScalarNode || n.Decode(&b) != nil {
		p.addFault(n, "%s must be true or false", name)
	}
	return &b
}

// parseSwitch parses a boolean, which is false if the value is null.
func (p *parser) parseSwitch(name string, n *yaml.Node) bool {
	b := p.parseFlag(name, n)
	return b != nil && *b
}

// parseCount parses an unsigned number of 32 bits, which is nil if the value is null.
func (p *parser) parseCount(name string, n *yaml.Node) *ruleset.Requests {
	at := p.position(n)
	n = resolveAlias(n)
	if isNull(n) {
		return nil
	}
	var count uint32
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&count) != nil {
		p.addFault(n, "%s must be a whole number from 0 to %s", name, strconv.FormatUint(1<<32-1, 10))
	}
	return &ruleset.Requests{Count: count, At: at}
}

// resolveAlias returns the node that an alias refers to, or n if it is not an alias.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
