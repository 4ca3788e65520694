package declaring

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// What a document begins with.
const (
	Version  = "tollgate.dev/v1"
	Document = "State"
)

// shape is the form of the values of a field.
type shape uint8

const (
	isText shape = iota
	isTexts
	isFlag
	isNumber
	isTextMap
	isObjects
	isObject
)

// field is a member that the objects of a kind have in a file.
type field struct {
	name     string
	shape    shape
	check    func(string) error // of each text; nil for any
	inner    []field            // those of isObjects and isObject
	required bool
}

// checked returns the check that a text can be parsed.
func checked[T any](parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		_, err := parse(s)
		return err
	}
}

// checkTime checks a time.
func checkTime(s string) error {
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return fault.New(fault.Invalid, "must be an RFC 3339 time, for example 2027-01-01T00:00:00Z")
	}
	return nil
}

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
func readFields(n *Node, path string, fields []field, found *problems) audit.Details {
	values := audit.Details{}
	if n.Form != Object {
		found.add(n.Position, path, "must be an object")
		return values
	}
	for i := range n.Members {
		m := &n.Members[i]
		at := path + "." + clip(m.Name)
		f := slices.IndexFunc(fields, func(f field) bool { return f.name == m.Name })
		switch {
		case f < 0:
			found.add(m.Position, at, "is not a known member")
		case m.Value.Form != Null:
			values[m.Name] = fields[f].read(&m.Value, at, found)
		}
	}
	for _, f := range fields {
		if f.required && n.find(f.name) == nil {
			found.add(n.Position, path+"."+f.name, "is missing")
		}
	}
	return values
}

// read returns the value of a field.
func (f *field) read(n *Node, path string, found *problems) audit.Value {
	if f.shape == isText {
		return f.readText(n, path, found)
	}
	wanted := map[shape]Form{isTexts: List, isFlag: Flag, isNumber: Number, isTextMap: Object, isObjects: List, isObject: Object}[f.shape]
	if n.Form != wanted {
		found.add(n.Position, path, "must be %s", map[Form]string{
			List: "a list", Flag: "true or false", Number: "a number", Object: "an object of strings",
		}[wanted])
		return nil
	}
	switch f.shape {
	case isFlag:
		return audit.Flag(n.Text == "true")
	case isNumber:
		number, err := strconv.ParseFloat(n.Text, 64)
		if err != nil {
			found.add(n.Position, path, "must be a number")
		}
		return audit.Number(number)
	case isObject:
		return readFields(n, path, f.inner, found)
	case isTextMap:
		texts := audit.Details{}
		for i := range n.Members {
			m := &n.Members[i]
			texts[m.Name] = f.readText(&m.Value, path+"."+clip(m.Name), found)
		}
		return texts
	}
	values := make(audit.List, len(n.Items))
	for i := range n.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if f.shape == isObjects {
			values[i] = readFields(&n.Items[i], at, f.inner, found)
		} else {
			values[i] = f.readText(&n.Items[i], at, found)
		}
	}
	return values
}

// readText returns a text. A reference to a secret is for the command that reads the file.
func (f *field) readText(n *Node, path string, found *problems) audit.Value {
	switch {
	case n.Form == Object && (n.find("env") != nil || n.find("file") != nil):
		found.add(n.Position, path,
			"must be a string: the command tollgate apply resolves env and file, the service does not")
	case n.Form != Text:
		found.add(n.Position, path, "must be a string")
	case strings.ContainsRune(n.Text, 0):
		found.add(n.Position, path, "must not contain a NUL")
	case f.check != nil && n.Text != "":
		if err := f.check(n.Text); err != nil {
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

// texts returns the texts of a list.
func texts(v audit.Value) (all []string) {
	values, _ := v.(audit.List)
	for _, one := range values {
		text, _ := one.(audit.Text)
		all = append(all, string(text))
	}
	return all
}

// textMap returns the texts of an object.
func textMap(d audit.Details) map[string]string {
	all := make(map[string]string, len(d))
	for name := range d {
		all[name] = d.Text(name)
	}
	return all
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

func clip(name string) string {
	if len(name) > maxName {
		return strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	return name
}
