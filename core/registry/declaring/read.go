package declaring

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/kinds"
)

// What a document begins with.
const (
	Version  = "tollgate.dev/v1"
	Document = "State"
)

// problem is what is wrong at a place of a file.
type problem struct {
	Position

	path, text string
}

// problems collects what is wrong with a file, at most maxProblems.
type problems []problem

const maxProblems = 20

func (p *problems) add(at Position, path, format string, args ...any) {
	if len(*p) < maxProblems {
		*p = append(*p, problem{at, path, fmt.Sprintf(format, args...)})
	}
}

// describe returns the place for the end of a message.
func (p Position) describe() string {
	var parts []string
	if p.File != "" {
		parts = append(parts, p.File)
	}
	if p.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d, column %d", p.Line, p.Column))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// Wrong returns the error of a reader for what is wrong at a place of a file. The path is empty for
// the whole file.
func Wrong(at Position, path, text string) error {
	return problems{{at, path, text}}.err(fault.Invalid, fault.ValidationError)
}

// err returns the problems as an error of a kind, or nil without any.
func (p problems) err(kind fault.Kind, code fault.Code) error {
	if len(p) == 0 {
		return nil
	}
	sentences, fields := make([]string, len(p)), map[string]string{}
	for i, one := range p {
		text := one.text + one.describe()
		sentences[i] = strings.TrimSpace(one.path + " " + text)
		fields[cmp.Or(one.path, "body")] = text
	}
	return fault.New(kind, strings.Join(sentences, "; ")).WithCode(code).WithDetail("fields", textDetails(fields))
}

// list is the list of the objects of a kind in a file.
type list struct {
	path  string
	nodes []Node
}

// readLists returns the lists of a document by the names of its members.
func readLists(n *Node, kinds []kind, found *problems) map[string]list {
	lists := map[string]list{}
	if n.Form != Object {
		found.add(n.Position, "", "must be an object with apiVersion, kind and lists of objects")
		return lists
	}
	for _, name := range []string{"apiVersion", "kind"} {
		wanted := map[string]string{"apiVersion": Version, "kind": Document}[name]
		if v := n.find(name); v == nil || v.Form != Text || v.Text != wanted {
			at := n.Position
			if v != nil {
				at = v.Position
			}
			found.add(at, name, "must be %q", wanted)
		}
	}
	for i := range n.Members {
		m := &n.Members[i]
		known := slices.ContainsFunc(kinds, func(k kind) bool { return k.member == m.Name })
		switch {
		case m.Name == "apiVersion", m.Name == "kind":
		case !known:
			found.add(m.Position, clip(m.Name), "is not a known member")
		case m.Value.Form == List:
			lists[m.Name] = list{m.Name, m.Value.Items}
		case m.Value.Form != Null:
			found.add(m.Value.Position, m.Name, "must be a list")
		}
	}
	return lists
}

// readFields returns the values of an object, which has no other members than the fields.
func readFields(n *Node, path string, fields []kinds.Field, found *problems) audit.Details {
	values := audit.Details{}
	if n.Form != Object {
		found.add(n.Position, path, "must be an object")
		return values
	}
	for i := range n.Members {
		m := &n.Members[i]
		at := path + "." + clip(m.Name)
		f := slices.IndexFunc(fields, func(f kinds.Field) bool { return f.Name == m.Name })
		switch {
		case f < 0:
			found.add(m.Position, at, "is not a known member")
		case m.Value.Form != Null:
			values[m.Name] = readField(&fields[f], &m.Value, at, found)
		}
	}
	for _, f := range fields {
		if f.Required && n.find(f.Name) == nil {
			found.add(n.Position, path+"."+f.Name, "is missing")
		}
	}
	return values
}

func readField(f *kinds.Field, n *Node, path string, found *problems) audit.Value {
	if f.Shape == kinds.Document && n.Form == Object {
		return readAny(n)
	}
	if f.Shape == kinds.Text || f.Shape == kinds.Document {
		return readText(f, n, path, found)
	}
	wanted := map[kinds.Shape]Form{kinds.Texts: List, kinds.Flag: Flag, kinds.Number: Number, kinds.TextMap: Object, kinds.Objects: List, kinds.Object: Object}[f.Shape]
	if n.Form != wanted {
		found.add(n.Position, path, "must be %s", map[Form]string{
			List: "a list", Flag: "true or false", Number: "a number", Object: "an object of strings",
		}[wanted])
		return nil
	}
	switch f.Shape {
	case kinds.Flag:
		return audit.Flag(n.Text == "true")
	case kinds.Number:
		number, err := strconv.ParseFloat(n.Text, 64)
		if err != nil {
			found.add(n.Position, path, "must be a number")
		}
		return audit.Number(number)
	case kinds.Object:
		return readFields(n, path, f.Inner, found)
	case kinds.TextMap:
		texts := audit.Details{}
		for i := range n.Members {
			m := &n.Members[i]
			texts[m.Name] = readText(f, &m.Value, path+"."+clip(m.Name), found)
		}
		return texts
	}
	values := make(audit.List, len(n.Items))
	for i := range n.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if f.Shape == kinds.Objects {
			values[i] = readFields(&n.Items[i], at, f.Inner, found)
		} else {
			values[i] = readText(f, &n.Items[i], at, found)
		}
	}
	return values
}

// readAny returns the value of a node, whatever it is.
func readAny(n *Node) audit.Value {
	switch n.Form {
	case Text:
		return audit.Text(n.Text)
	case Flag:
		return audit.Flag(n.Text == "true")
	case Number:
		number, _ := strconv.ParseFloat(n.Text, 64) // the reader of the format knows that it is one
		return audit.Number(number)
	case List:
		list := make(audit.List, len(n.Items))
		for i := range n.Items {
			list[i] = readAny(&n.Items[i])
		}
		return list
	case Object:
		members := audit.Details{}
		for i := range n.Members {
			members[n.Members[i].Name] = readAny(&n.Members[i].Value)
		}
		return members
	case Null:
	}
	return nil
}

// readText returns a text. A reference to a secret is for the command that reads the file.
func readText(f *kinds.Field, n *Node, path string, found *problems) audit.Value {
	switch {
	case n.Form == Object && (n.find("env") != nil || n.find("file") != nil):
		found.add(n.Position, path,
			"must be a string: the command tollgate apply resolves env and file, the service does not")
	case n.Form != Text:
		found.add(n.Position, path, "must be a string")
	case strings.ContainsRune(n.Text, 0):
		found.add(n.Position, path, "must not contain a NUL")
	case f.Check != nil && n.Text != "":
		if err := f.Check(n.Text); err != nil {
			found.add(n.Position, path, "is wrong: %s", fault.PublicMessage(err))
		}
	}
	return audit.Text(n.Text)
}

// placeOf returns the path and the position of the field of an object that has a value, or those of
// the object.
func placeOf(n *Node, path, field string) (string, Position) {
	name, _, _ := strings.Cut(strings.ReplaceAll(field, "[", "."), ".")
	if v := n.find(name); v != nil {
		return path + "." + name, v.Position
	}
	return path, n.Position
}

// textDetails is the inverse of textMap.
func textDetails(texts map[string]string) audit.Details {
	d := make(audit.Details, len(texts))
	for name, text := range texts {
		d[name] = audit.Text(text)
	}
	return d
}

// maxName is the greatest length of a name in a message, in bytes.
const maxName = 100

func clip(name string) string { return fields.Clip(name, maxName) }

// Form is the form of a Node.
type Form uint8

// The forms.
const (
	Null Form = iota
	Text
	Flag
	Number
	List
	Object
)

// Position is a place in a file; the zero value is unknown.
type Position struct {
	File         string // empty for the only one
	Line, Column int
}

// Node is a value in a file, as a reader of the format has found it. No two members of an object
// have the same name.
type Node struct {
	Position

	Form    Form
	Text    string // of a Text; "true" or "false" of a Flag
	Items   []Node // of a List
	Members []Member
}

// Member is a member of an Object. Its position is that of its name.
type Member struct {
	Position

	Name  string
	Value Node
}

// find returns the value of a member; nil if it is missing or null.
func (n *Node) find(name string) *Node {
	for i := range n.Members {
		if m := &n.Members[i]; m.Name == name && m.Value.Form != Null {
			return &m.Value
		}
	}
	return nil
}
