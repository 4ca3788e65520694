package tools

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Outline returns what decisions about calls need to know of the tools, as ParseOutline reads it: a line for each,
// with its mark, a hexadecimal digit of its traits and its name.
func (l List) Outline() string {
	var b strings.Builder
	for _, t := range l.Tools {
		fmt.Fprintf(&b, "%s%x%s\n", t.Mark, uint8(t.traits()), t.Name) // names have no line feeds
	}
	return b.String()
}

// traits returns what holds for the tool. One that only reads is never destructive.
func (t Tool) traits() (all toolserver.Traits) {
	for h, trait := range map[Hint]toolserver.Traits{
		ReadOnly: toolserver.ReadOnly, Idempotent: toolserver.Idempotent, OpenWorld: toolserver.OpenWorld,
	} {
		value, said := t.Says(h)
		if !said {
			value = trait&toolserver.DefaultTraits != 0
		}
		if value {
			all |= trait
		}
	}
	if t.IsDestructive() {
		all |= toolserver.Destructive
	}
	return all
}

// ParseOutline returns the tools of an outline, by name. It returns fault.Invalid for any other text.
func ParseOutline(text string) (all []toolserver.Tool, err error) {
	const digits = 2 * len(toolserver.Mark{})
	for line := range strings.Lines(text) {
		t := toolserver.Tool{}
		if len(line) < digits+len("0a\n") || line[len(line)-1] != '\n' {
			return nil, errOutline
		}
		if _, err := hex.Decode(t.Mark[:], []byte(line[:digits])); err != nil {
			return nil, errOutline
		}
		if _, err := fmt.Sscanf(line[digits:digits+1], "%x", &t.Traits); err != nil {
			return nil, errOutline
		}
		t.Name = line[digits+1 : len(line)-1]
		all = append(all, t)
	}
	return all, nil
}

var errOutline = fault.New(fault.Invalid, "the outline of a tool list has another form")

// spellings are the names of what is marked. Some readers ignore case, and would show something else than what is
// marked.
func spellings() []string {
	return []string{
		fieldName, fieldTitle, fieldDescription, fieldInput, fieldOutput, fieldAnnotations,
		string(ReadOnly), string(Destructive), string(Idempotent), string(OpenWorld),
	}
}

// MarkOf returns the mark of a tool in a list of a server, under a name that replaces its own: gateways rename
// tools. It returns fault.Invalid for what cannot be in a List, and for a member in another spelling of what is marked.
func MarkOf(text []byte, name string) (toolserver.Mark, error) {
	object, err := parseObject(text)
	if err != nil {
		return toolserver.Mark{}, err
	}
	for _, o := range [...]jsonvalue.Object{object, object.Inner(fieldAnnotations)} {
		for member := range o {
			if slices.ContainsFunc(spellings(), func(s string) bool { return s != member && strings.EqualFold(s, member) }) {
				return toolserver.Mark{}, fault.Newf(fault.Invalid, "the member %s is one in another spelling", quote(member))
			}
		}
	}
	object[fieldName] = jsonvalue.Text(name)
	mark, r := toolserver.Mark{}, reader{}
	if t := r.tool("tool", object); r.err == nil {
		_, r.err = hex.Decode(mark[:], []byte(t.Mark))
	}
	return mark, r.err
}
