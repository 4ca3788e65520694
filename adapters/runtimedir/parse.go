package runtimedir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Limits of one file. They prevent that a short file with aliases of aliases grows without bound.
const (
	maxDepth       = 64
	maxDescriptors = 1_000_000
	maxWarnings    = 20
)

// parseFile parses one file. The faults of the source are errors in its form. The warnings are
// about content that is accepted but probably wrong.
func parseFile(file string, content []byte) (source ruleset.Source, warnings []string) {
	p := parser{file: file}
	if n := p.parseDocument(content); n != nil {
		p.parseRoot(n)
	}
	return p.source, p.warnings
}

// parser converts the YAML nodes of a file to a ruleset.Source.
type parser struct {
	file        string
	source      ruleset.Source
	warnings    []string
	descriptors int
	values      int // of metadata
}

func (p *parser) position(n *yaml.Node) ruleset.Position {
	return ruleset.Position{File: p.file, Line: n.Line, Column: n.Column}
}

func (p *parser) addFault(n *yaml.Node, format string, args ...any) {
	p.addFaultAt(p.position(n), fmt.Sprintf(format, args...))
}

// addWarning adds a warning, up to maxWarnings.
func (p *parser) addWarning(n *yaml.Node, warning string) {
	if len(p.warnings) < maxWarnings {
		p.warnings = append(p.warnings, fmt.Sprintf("%s:%d:%d: %s", p.file, n.Line, n.Column, warning))
	}
}

func (p *parser) addFaultAt(at ruleset.Position, rule string) {
	p.source.Faults = append(p.source.Faults, ruleset.Fault{At: at, Rule: rule})
}

// parseDocument returns the content of the only document in a file, or nil after it has added a
// fault. An empty file results in an empty node, so that the missing domain is reported.
func (p *parser) parseDocument(content []byte) *yaml.Node {
	p.source.At = ruleset.Position{File: p.file, Line: 1, Column: 1}
	loader, err := yaml.NewLoader(bytes.NewReader(content))
	if err != nil {
		p.addSyntaxFault(content, err)
		return nil
	}
	var first yaml.Node
	if err := loader.Load(&first); err != nil {
		p.addSyntaxFault(content, err)
		return nil
	}
	for {
		var next yaml.Node
		err := loader.Load(&next)
		switch {
		case errors.Is(err, io.EOF):
			return documentContent(&first)
		case err != nil:
			p.addSyntaxFault(content, err)
			return nil
		case !isNull(documentContent(&next)): // a file that ends with --- has an empty second document
			p.source.Unread = true
			p.addFault(documentContent(&next), "a file must contain one YAML document, but a second one begins here")
			return nil
		}
	}
}

// documentContent returns the node inside a document node.
func documentContent(document *yaml.Node) *yaml.Node {
	if document.Kind == yaml.DocumentNode && len(document.Content) == 1 {
		return document.Content[0]
	}
	return document
}

// addSyntaxFault adds a fault for an error of the YAML reader. The end of the file is not a fault.
func (p *parser) addSyntaxFault(content []byte, err error) {
	var one *yaml.LoadError
	switch {
	case errors.Is(err, io.EOF):
	case errors.As(err, &one):
		p.source.Unread = true
		p.addFaultAt(p.errorPosition(content, one), "not YAML: "+strings.TrimPrefix(one.Message, "yaml: "))
	default:
		p.source.Unread = true
		p.addFaultAt(p.source.At, "not YAML: "+err.Error())
	}
}

// errorPosition returns the position of a syntax error. For an invalid character, the YAML reader
// gives only the offset in bytes.
func (p *parser) errorPosition(content []byte, e *yaml.LoadError) ruleset.Position {
	if e.Mark.Line > 0 {
		return ruleset.Position{File: p.file, Line: e.Mark.Line, Column: e.Mark.Column}
	}
	before := content[:min(max(e.Mark.Index, 0), len(content))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return ruleset.Position{File: p.file, Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(line)}
}

func (p *parser) parseRoot(n *yaml.Node) {
	if resolveAlias(n).Kind != yaml.MappingNode {
		p.source.Unread = true
		p.addFault(n, "a file must be a mapping with domain and descriptors")
		return
	}
	p.visitFields(n, inFile, func(name string, value *yaml.Node) {
		switch name {
		case "domain":
			p.source.Domain = p.parseText(name, value)
		case "descriptors":
			p.source.Descriptors = p.parseDescriptors(value, 1)
		}
	})
	if p.source.Domain.At.Line == 0 {
		p.source.At = p.position(n)
	}
}

func (p *parser) parseDescriptors(n *yaml.Node, depth int) []ruleset.Descriptor {
	n = resolveAlias(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.addFault(n, "descriptors must be a list")
		return nil
	}
	if depth > maxDepth {
		p.addFault(n, "descriptors must not be nested deeper than %d levels", maxDepth)
		return nil
	}
	list := make([]ruleset.Descriptor, 0, len(n.Content))
	for _, item := range n.Content {
		if p.descriptors++; p.descriptors > maxDescriptors {
			p.addTooManyDescriptors(item)
			return list
		}
		list = append(list, p.parseDescriptor(item, depth))
	}
	return list
}

// addTooManyDescriptors adds a fault for the first descriptor above the limit only.
func (p *parser) addTooManyDescriptors(n *yaml.Node) {
	if p.descriptors == maxDescriptors+1 {
		p.addFault(n, "a file must not have more than %d descriptors", maxDescriptors)
	}
}

func (p *parser) parseDescriptor(n *yaml.Node, depth int) ruleset.Descriptor {
	d := ruleset.Descriptor{At: p.position(n)}
	if resolveAlias(n).Kind != yaml.MappingNode {
		p.addFault(n, "a descriptor must be a mapping with a key")
		d.Key.Value = "?" // prevents a second fault for a missing key
		return d
	}
	p.visitFields(n, inDescriptor, func(name string, value *yaml.Node) {
		switch name {
		case "key":
			d.Key = p.parseText(name, value)
		case "value":
			d.Value = p.parseText(name, value)
		case "rate_limit":
			d.Limit = p.parseLimit(value)
		case "descriptors":
			d.Descriptors = p.parseDescriptors(value, depth+1)
		case "shadow_mode":
			d.Shadow = p.parseFlag(name, value)
		case "detailed_metric":
			d.DetailedMetric = p.parseSwitch(name, value)
		case "value_to_metric":
			d.ValueToMetric = p.parseSwitch(name, value)
		case "share_threshold":
			d.ShareThreshold = p.parseSwitch(name, value)
		case "quota_mode":
			d.QuotaMode = p.parseSwitch(name, value)
		case "metadata":
			d.Metadata = p.parseMetadata(value)
		}
	})
	return d
}

func (p *parser) parseLimit(n *yaml.Node) *ruleset.Limit {
	if isNull(resolveAlias(n)) {
		return nil
	}
	l := &ruleset.Limit{At: p.position(n)}
	if resolveAlias(n).Kind != yaml.MappingNode {
		p.addFault(n, "rate_limit must be a mapping")
		l.Unlimited = true // prevents more faults for a missing unit and count
		return l
	}
	p.visitFields(n, inLimit, func(name string, value *yaml.Node) {
		switch name {
		case "unit":
			unit := p.parseText(name, value)
			l.Unit = &unit
		case "requests_per_unit":
			l.Requests = p.parseCount(name, value)
		case "unlimited":
			l.Unlimited = p.parseSwitch(name, value)
		case "name":
			l.Name = ratelimit.Name(p.parseText(name, value).Value)
		case "replaces":
			l.Replaces = p.parseReplaces(value)
		case "shadow_mode":
			l.Shadow = p.parseFlag(name, value)
		case "algorithm":
			if algorithm := p.parseText(name, value); !isNull(resolveAlias(value)) {
				l.Algorithm = &algorithm
			}
		case "burst":
			l.Burst = p.parseCount(name, value)
		case "lease":
			if lease := p.parseText(name, value); !isNull(resolveAlias(value)) {
				l.Lease = &lease
			}
		}
	})
	return l
}

func (p *parser) parseReplaces(n *yaml.Node) []ruleset.Text {
	n = resolveAlias(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.addFault(n, "replaces must be a list of mappings with a name")
		return nil
	}
	var names []ruleset.Text
	for _, item := range n.Content {
		if resolveAlias(item).Kind != yaml.MappingNode {
			p.addFault(item, "an entry of replaces must be a mapping with a name")
			continue
		}
		name := ruleset.Text{At: p.position(item)}
		p.visitFields(item, inReplaces, func(field string, value *yaml.Node) { name = p.parseText(field, value) })
		names = append(names, name)
	}
	return names
}
