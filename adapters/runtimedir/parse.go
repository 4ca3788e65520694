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

// Bounds of one file, so that a short text with aliases of aliases cannot grow
// without end.
const (
	maxDepth       = 64
	maxDescriptors = 1_000_000
	maxWarnings    = 20
)

// parse reads one file. The faults of the source are what is wrong with its form;
// the warnings are about what is taken, but looks wrong.
func parse(file string, content []byte) (source ruleset.Source, warnings []string) {
	p := parser{file: file}
	if n := p.document(content); n != nil {
		p.root(n)
	}
	return p.source, p.warnings
}

// parser turns nodes into a source.
type parser struct {
	file        string
	source      ruleset.Source
	warnings    []string
	descriptors int
	values      int // of metadata
}

func (p *parser) at(n *yaml.Node) ruleset.Position {
	return ruleset.Position{File: p.file, Line: n.Line, Column: n.Column}
}

func (p *parser) fault(n *yaml.Node, format string, args ...any) {
	p.faultAt(p.at(n), fmt.Sprintf(format, args...))
}

// warn keeps as many warnings as a person reads.
func (p *parser) warn(n *yaml.Node, warning string) {
	if len(p.warnings) < maxWarnings {
		p.warnings = append(p.warnings, fmt.Sprintf("%s:%d:%d: %s", p.file, n.Line, n.Column, warning))
	}
}

func (p *parser) faultAt(at ruleset.Position, rule string) {
	p.source.Faults = append(p.source.Faults, ruleset.Fault{At: at, Rule: rule})
}

// document returns the one document of a file, or nil after saying why there is none to read. A file without any is one
// without a domain.
func (p *parser) document(content []byte) *yaml.Node {
	p.source.At = ruleset.Position{File: p.file, Line: 1, Column: 1}
	loader, err := yaml.NewLoader(bytes.NewReader(content))
	if err != nil {
		p.syntax(content, err)
		return nil
	}
	var first yaml.Node
	if err := loader.Load(&first); err != nil {
		p.syntax(content, err)
		return nil
	}
	for {
		var next yaml.Node
		err := loader.Load(&next)
		switch {
		case errors.Is(err, io.EOF):
			return inner(&first)
		case err != nil:
			p.syntax(content, err)
			return nil
		case !isNull(inner(&next)): // an empty one comes from --- at the end
			p.source.Unread = true
			p.fault(inner(&next), "a file must be one document, and here is a second")
			return nil
		}
	}
}

// inner returns what a document holds.
func inner(document *yaml.Node) *yaml.Node {
	if document.Kind == yaml.DocumentNode && len(document.Content) == 1 {
		return document.Content[0]
	}
	return document
}

// syntax reports what the YAML reader could not read; the end of the file is no fault.
func (p *parser) syntax(content []byte, err error) {
	var one *yaml.LoadError
	switch {
	case errors.Is(err, io.EOF):
	case errors.As(err, &one):
		p.source.Unread = true
		p.faultAt(p.where(content, one), "not YAML: "+strings.TrimPrefix(one.Message, "yaml: "))
	default:
		p.source.Unread = true
		p.faultAt(p.source.At, "not YAML: "+err.Error())
	}
}

// where is the place of an error. That of a character that YAML does not have is told in bytes from the beginning.
func (p *parser) where(content []byte, e *yaml.LoadError) ruleset.Position {
	if e.Mark.Line > 0 {
		return ruleset.Position{File: p.file, Line: e.Mark.Line, Column: e.Mark.Column}
	}
	before := content[:min(max(e.Mark.Index, 0), len(content))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return ruleset.Position{File: p.file, Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(line)}
}

func (p *parser) root(n *yaml.Node) {
	if resolve(n).Kind != yaml.MappingNode {
		p.source.Unread = true
		p.fault(n, "a file must be a mapping with domain and descriptors")
		return
	}
	p.fields(n, inFile, func(name string, value *yaml.Node) {
		switch name {
		case "domain":
			p.source.Domain = p.text(name, value)
		case "descriptors":
			p.source.Descriptors = p.list(value, 1)
		}
	})
	if p.source.Domain.At.Line == 0 {
		p.source.At = p.at(n)
	}
}

func (p *parser) list(n *yaml.Node, depth int) []ruleset.Descriptor {
	n = resolve(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.fault(n, "descriptors must be a list")
		return nil
	}
	if depth > maxDepth {
		p.fault(n, "descriptors must not be nested deeper than %d levels", maxDepth)
		return nil
	}
	list := make([]ruleset.Descriptor, 0, len(n.Content))
	for _, item := range n.Content {
		if p.descriptors++; p.descriptors > maxDescriptors {
			p.tooMany(item)
			return list
		}
		list = append(list, p.descriptor(item, depth))
	}
	return list
}

// tooMany reports the first descriptor over the bound only.
func (p *parser) tooMany(n *yaml.Node) {
	if p.descriptors == maxDescriptors+1 {
		p.fault(n, "a file must not have more than %d descriptors", maxDescriptors)
	}
}

func (p *parser) descriptor(n *yaml.Node, depth int) ruleset.Descriptor {
	d := ruleset.Descriptor{At: p.at(n)}
	if resolve(n).Kind != yaml.MappingNode {
		p.fault(n, "a descriptor must be a mapping with a key")
		d.Key.Value = "?" // so that its key is not reported as missing as well
		return d
	}
	p.fields(n, inDescriptor, func(name string, value *yaml.Node) {
		switch name {
		case "key":
			d.Key = p.text(name, value)
		case "value":
			d.Value = p.text(name, value)
		case "rate_limit":
			d.Limit = p.limit(value)
		case "descriptors":
			d.Descriptors = p.list(value, depth+1)
		case "shadow_mode":
			d.Shadow = p.flag(name, value)
		case "detailed_metric":
			d.DetailedMetric = p.isSet(name, value)
		case "value_to_metric":
			d.ValueToMetric = p.isSet(name, value)
		case "share_threshold":
			d.ShareThreshold = p.isSet(name, value)
		case "quota_mode":
			d.QuotaMode = p.isSet(name, value)
		case "metadata":
			d.Metadata = p.metadata(value)
		}
	})
	return d
}

func (p *parser) limit(n *yaml.Node) *ruleset.Limit {
	if isNull(resolve(n)) {
		return nil
	}
	l := &ruleset.Limit{At: p.at(n)}
	if resolve(n).Kind != yaml.MappingNode {
		p.fault(n, "rate_limit must be a mapping")
		l.Unlimited = true // so that unit and count are not reported as missing as well
		return l
	}
	p.fields(n, inLimit, func(name string, value *yaml.Node) {
		switch name {
		case "unit":
			unit := p.text(name, value)
			l.Unit = &unit
		case "requests_per_unit":
			l.Requests = p.count(name, value)
		case "unlimited":
			l.Unlimited = p.isSet(name, value)
		case "name":
			l.Name = ratelimit.Name(p.text(name, value).Value)
		case "replaces":
			l.Replaces = p.replaces(value)
		case "shadow_mode":
			l.Shadow = p.flag(name, value)
		}
	})
	return l
}

func (p *parser) replaces(n *yaml.Node) []ruleset.Text {
	n = resolve(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.fault(n, "replaces must be a list of mappings with a name")
		return nil
	}
	var names []ruleset.Text
	for _, item := range n.Content {
		if resolve(item).Kind != yaml.MappingNode {
			p.fault(item, "an entry of replaces must be a mapping with a name")
			continue
		}
		name := ruleset.Text{At: p.at(item)}
		p.fields(item, inReplaces, func(field string, value *yaml.Node) { name = p.text(field, value) })
		names = append(names, name)
	}
	return names
}
