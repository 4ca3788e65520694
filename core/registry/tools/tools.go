// Package tools has the rules of tool lists (contract W-1 to W-5): what a list is and how it is
// marked, what differs between two of them in sentences, and the hints that a reviewer sees. A list
// is what a tool server shows to a model. The package does no I/O.
package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gowebpki/jcs"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// The limits of a list. Sizes are bytes of canonical JSON.
const (
	MaxTools = 1000     // also the most prompts, and the most resource templates
	MaxSize  = 1 << 20  // of a list with everything that it has
	MaxTool  = 64 << 10 // of one tool
	MaxName  = 256      // characters of the name of a tool, prompt or resource template
	// MaxBody is the greatest size in bytes of a text that ParseRecorded reads.
	MaxBody = MaxSize + 64<<10
)

// The fields of a tool that are marked, and the members of a list.
const (
	fieldName        = "name"
	fieldTitle       = "title"
	fieldDescription = "description"
	fieldInput       = "inputSchema"
	fieldOutput      = "outputSchema"
	fieldAnnotations = "annotations"

	memberTools        = "tools"
	memberPrompts      = "prompts"
	memberTemplates    = "resourceTemplates"
	memberInstructions = "instructions"
)

// Mark identifies content: SHA-256 of its canonical JSON (RFC 8785), 64 hexadecimal digits in lower
// case.
type Mark string

// markOf returns the mark of a text.
func markOf(text []byte) Mark {
	sum := sha256.Sum256(text)
	return Mark(hex.EncodeToString(sum[:]))
}

// Hint is a hint of the annotations of a tool, by its name in the specification.
type Hint string

// The hints.
const (
	ReadOnly    Hint = "readOnlyHint"
	Destructive Hint = "destructiveHint"
	Idempotent  Hint = "idempotentHint"
	OpenWorld   Hint = "openWorldHint"
)

// hintsOf returns all hints, the one whose change matters most first.
func hintsOf() []Hint { return []Hint{ReadOnly, Destructive, OpenWorld, Idempotent} }

// Tool is a tool of a list.
type Tool struct {
	Name string
	Mark Mark

	fields jsonvalue.Object
}

// Fields returns the marked fields, those that are absent left out. The caller must not change them.
func (t Tool) Fields() jsonvalue.Object { return t.fields }

// Title returns the name for people; empty without one.
func (t Tool) Title() string { return t.fields.Text(fieldTitle) }

// Description returns what the tool says that it does; empty without one.
func (t Tool) Description() string { return t.fields.Text(fieldDescription) }

// Says returns what the tool says about a hint, and false if it says nothing.
func (t Tool) Says(h Hint) (value, said bool) {
	flag, said := t.fields.Inner(fieldAnnotations)[string(h)].(jsonvalue.Flag)
	return bool(flag), said
}

// IsDestructive reports whether the tool may destroy something: it does not say that it only reads,
// nor that it is not destructive. That is the default of the specification.
func (t Tool) IsDestructive() bool {
	if readOnly, _ := t.Says(ReadOnly); readOnly {
		return false
	}
	destructive, said := t.Says(Destructive)
	return destructive || !said
}

// Named is a prompt or a resource template.
type Named struct {
	Name        string
	Description string // empty without one
}

// List is what a server shows to a model. It is made by Parse and ParseRecorded, and must not be
// changed.
type List struct {
	Tools             []Tool  // by name
	Prompts           []Named // by name, then by description
	ResourceTemplates []Named // likewise
	Instructions      string  // for the model; empty without them

	Mark        Mark // of the tools
	ContextMark Mark // of what else the model reads

	canonical []byte
}

// Canonical returns the list as canonical JSON, which Parse reads. The caller must not change it.
func (l List) Canonical() []byte { return l.canonical }

// Find returns the tool with a name; nil if it does not exist.
func (l List) Find(name string) *Tool {
	i, found := slices.BinarySearchFunc(l.Tools, name, func(t Tool, n string) int { return strings.Compare(t.Name, n) })
	if !found {
		return nil
	}
	return &l.Tools[i]
}

// complete sorts the list, computes its marks, and checks its size and the names of its tools.
func (l *List) complete() error {
	slices.SortFunc(l.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	marks, all := make([]string, len(l.Tools)), make(jsonvalue.List, len(l.Tools))
	for i, t := range l.Tools {
		if i > 0 && t.Name == l.Tools[i-1].Name {
			return fault.Newf(fault.Invalid, "two tools have the name %s", quote(t.Name))
		}
		marks[i], all[i] = string(t.Mark), t.fields
	}
	slices.Sort(marks)
	l.Mark = markOf([]byte(strings.Join(marks, "\n")))
	context := jsonvalue.Object{}
	context.Set(memberInstructions, l.Instructions)
	for member, named := range map[string][]Named{memberPrompts: l.Prompts, memberTemplates: l.ResourceTemplates} {
		if len(named) > 0 {
			context[member] = describe(named)
		}
	}
	text, err := canonical(context)
	if err != nil {
		return err
	}
	l.ContextMark = markOf(text)
	context[memberTools] = all
	if l.canonical, err = canonical(context); err != nil {
		return err
	}
	if len(l.canonical) > MaxSize {
		return fault.Newf(fault.Invalid, "the list has %d bytes of canonical JSON: at most %d", len(l.canonical), MaxSize)
	}
	return nil
}

// describe sorts prompts or resource templates, and returns them as JSON.
func describe(named []Named) jsonvalue.List {
	slices.SortFunc(named, func(a, b Named) int {
		return strings.Compare(a.Name+"\x00"+a.Description, b.Name+"\x00"+b.Description)
	})
	list := make(jsonvalue.List, len(named))
	for i, n := range named {
		object := jsonvalue.Object{fieldName: jsonvalue.Text(n.Name)}
		object.Set(fieldDescription, n.Description)
		list[i] = object
	}
	return list
}

// canonical returns the canonical JSON of a value that ParseObject has read.
func canonical(o jsonvalue.Object) ([]byte, error) {
	text, err := json.Marshal(o)
	if err == nil {
		text, err = jcs.Transform(text)
	}
	if err != nil {
		return nil, fmt.Errorf("write canonical JSON: %w", err)
	}
	return text, nil
}
