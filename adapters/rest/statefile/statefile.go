// Package statefile reads and writes the state in a file, as YAML or JSON. It knows the syntax; what
// the members mean is for core/registry/declaring.
package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
)

// MaxBytes is the greatest size of a file.
const MaxBytes = 4 << 20

// Bounds of what a file contains, also by aliases of YAML.
const (
	maxValues = 300_000
	maxDepth  = 16
)

// Read reads a file: JSON, or YAML if it is no JSON object or asYAML is true. name is that of the
// file in errors; empty for the only one. It returns fault.Invalid, with the place, for what is not
// one document in the format, has a name twice in an object, or exceeds the bounds.
func Read(text []byte, name string, asYAML bool) (declaring.Node, error) {
	t := tree{file: name}
	switch {
	case len(text) > MaxBytes:
		return declaring.Node{}, fault.Newf(fault.Invalid, "the file is larger than %d bytes", MaxBytes)
	case !utf8.Valid(text):
		return declaring.Node{}, declaring.Wrong(t.at(0, 0), "", "is not valid UTF-8")
	case countSeparators(text) > maxValues: // before they take memory
		return declaring.Node{}, t.tooMany(t.at(0, 0))
	case asYAML:
		return t.readYAML(text)
	}
	return t.readJSON(text)
}

// tree counts the values of a file.
type tree struct {
	file   string
	values int
}

func (t *tree) at(line, column int) declaring.Position {
	return declaring.Position{File: t.file, Line: line, Column: column}
}

// countSeparators returns how often a text has a character that begins or ends values, also where it
// does not.
func countSeparators(text []byte) (n int) {
	for _, separator := range []string{",", "\n", "[", "{"} {
		n += bytes.Count(text, []byte(separator))
	}
	return n
}

func (t *tree) tooMany(at declaring.Position) error {
	return declaring.Wrong(at, "", fmt.Sprintf("must not have more than %d values, also by aliases", maxValues))
}

// enter counts a value, and returns an error if there are too many or they are too deep.
func (t *tree) enter(at declaring.Position, path string, depth int) error {
	if t.values++; t.values > maxValues {
		return t.tooMany(at)
	}
	if depth > maxDepth {
		return declaring.Wrong(at, fields.Clip(path, maxPath), fmt.Sprintf("must not be nested deeper than %d levels", maxDepth))
	}
	return nil
}

// addMember adds a member to an object whose names are known. It returns an error if the object has
// one with the name.
func addMember(n *declaring.Node, names map[string]bool, m declaring.Member, path string) error {
	if names[m.Name] {
		return declaring.Wrong(m.Position, fields.Clip(path, maxPath), "occurs twice in the same object")
	}
	names[m.Name] = true
	n.Members = append(n.Members, m)
	return nil
}

// join returns the path of a member.
func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// maxPath is the greatest length of a path in a message, in bytes.
const maxPath = 200

// Merge returns the document that has the lists of several ones, which are read from one folder.
func Merge(documents []declaring.Node) declaring.Node {
	merged := documents[0]
	merged.Members = slices.Clone(merged.Members)
	for _, d := range documents[1:] {
		for _, m := range d.Members {
			i := slices.IndexFunc(merged.Members, func(o declaring.Member) bool { return o.Name == m.Name })
			switch {
			case i < 0:
				merged.Members = append(merged.Members, m)
			case m.Value.Form == declaring.List && merged.Members[i].Value.Form == declaring.List:
				to := &merged.Members[i].Value
				to.Items = slices.Concat(to.Items, m.Value.Items)
			case m.Value.Text != merged.Members[i].Value.Text || m.Value.Form != merged.Members[i].Value.Form:
				merged.Members[i] = m // another version or kind, or no list, which is then refused
			}
		}
	}
	return merged
}

// Resolve puts texts in the place of references to secrets: {env: NAME} and {file: PATH}, whose
// line break at the end is left out. The claims of tokens are no secrets. It returns fault.Invalid,
// with the place, for a variable that is not set and a file that cannot be read.
func Resolve(n *declaring.Node, getenv func(string) string, readFile func(string) ([]byte, error)) error {
	if n.Form == declaring.Object && len(n.Members) == 1 && n.Members[0].Value.Form == declaring.Text {
		switch name := n.Members[0].Value.Text; n.Members[0].Name {
		case "env":
			n.Form, n.Text, n.Members = declaring.Text, getenv(name), nil
			if n.Text == "" {
				return declaring.Wrong(n.Position, "env", fmt.Sprintf("names the variable %q, which is not set", name))
			}
		case "file":
			text, err := readFile(name)
			if err != nil {
				return declaring.Wrong(n.Position, "file", "cannot be read: "+err.Error())
			}
			n.Form, n.Text, n.Members = declaring.Text, strings.TrimRight(string(text), "\r\n"), nil
		}
		return nil
	}
	for i := range n.Items {
		if err := Resolve(&n.Items[i], getenv, readFile); err != nil {
			return err
		}
	}
	for i := range n.Members {
		if n.Members[i].Name == "claims" {
			continue
		}
		if err := Resolve(&n.Members[i].Value, getenv, readFile); err != nil {
			return err
		}
	}
	return nil
}

// Changes is the answer to a document that was applied.
type Changes struct {
	Changes []Change `json:"changes"`
}

// Change is what became of an object.
type Change struct {
	Kind   string        `json:"kind"`
	Key    string        `json:"key"`
	Change string        `json:"change"`
	Fields audit.Details `json:"fields"` // by name the values before and after, or "changed" for a secret
}

// NewChanges returns the answer with changes.
func NewChanges(list []declaring.Change) Changes {
	return Changes{each.Map(list, func(c declaring.Change) Change {
		return Change{c.Kind, c.Key, string(c.Operation), c.Fields}
	})}
}

func (t *tree) readYAML(text []byte) (declaring.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return declaring.Node{}, t.syntaxError(err)
	}
	var document, next yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		return declaring.Node{}, declaring.Wrong(t.at(0, 0), "", "is empty")
	} else if err != nil {
		return declaring.Node{}, t.syntaxError(err)
	}
	if err := loader.Load(&next); err == nil {
		return declaring.Node{}, declaring.Wrong(t.at(next.Line, next.Column), "", "must be one YAML document")
	} else if !errors.Is(err, io.EOF) {
		return declaring.Node{}, t.syntaxError(err)
	}
	if document.Kind == yaml.DocumentNode && len(document.Content) == 1 {
		document = *document.Content[0]
	}
	return t.convert(&document, "", 0)
}

func (t *tree) syntaxError(err error) error {
	var one *yaml.LoadError
	if errors.As(err, &one) {
		return declaring.Wrong(t.at(one.Mark.Line, one.Mark.Column), "",
			"is not YAML: "+strings.TrimPrefix(one.Message, "yaml: "))
	}
	return declaring.Wrong(t.at(0, 0), "", "is not YAML: "+err.Error())
}

// convert returns a value with what its aliases refer to.
func (t *tree) convert(n *yaml.Node, path string, depth int) (declaring.Node, error) {
	v := declaring.Node{Position: t.at(n.Line, n.Column)}
	if err := t.enter(v.Position, path, depth); err != nil {
		return v, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return t.convert(n.Alias, path, depth+1) // an alias of what it is in is too deep
	case yaml.MappingNode:
		return v, t.convertMembers(&v, n, path, depth)
	case yaml.SequenceNode:
		v.Form = declaring.List
		for i, item := range n.Content {
			converted, err := t.convert(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if err != nil {
				return v, err
			}
			v.Items = append(v.Items, converted)
		}
		return v, nil
	}
	form, known := map[string]declaring.Form{
		"!!str": declaring.Text, "!!timestamp": declaring.Text, "!!bool": declaring.Flag, "!!null": declaring.Null,
		"!!int": declaring.Number, "!!float": declaring.Number,
	}[n.ShortTag()]
	if !known {
		return v, declaring.Wrong(v.Position, fields.Clip(path, maxPath), "has the tag "+fields.Clip(n.Tag, maxPath)+", which a state does not have")
	}
	if v.Form, v.Text = form, n.Value; form == declaring.Flag {
		v.Text = strings.ToLower(n.Value)
	}
	return v, nil
}

func (t *tree) convertMembers(v *declaring.Node, n *yaml.Node, path string, depth int) error {
	v.Form = declaring.Object
	names := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at, inner := t.at(key.Line, key.Column), join(path, key.Value)
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return declaring.Wrong(at, fields.Clip(inner, maxPath), "must be a name")
		}
		value, err := t.convert(n.Content[i+1], inner, depth+1)
		if err != nil {
			return err
		}
		if err := addMember(v, names, declaring.Member{Position: at, Name: key.Value, Value: value}, inner); err != nil {
			return err
		}
	}
	return nil
}

// Encode returns a document as a value for a JSON body.
func Encode(n *declaring.Node) any {
	switch n.Form {
	case declaring.Text:
		return n.Text
	case declaring.Flag:
		return n.Text == "true"
	case declaring.Number:
		return json.Number(n.Text)
	case declaring.List:
		list := each.MapRef(n.Items, Encode)
		return list
	case declaring.Object:
		object := map[string]any{}
		for i := range n.Members {
			object[n.Members[i].Name] = Encode(&n.Members[i].Value)
		}
		return object
	case declaring.Null:
	}
	return nil
}

func (t *tree) readJSON(text []byte) (declaring.Node, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return declaring.Node{}, declaring.Wrong(t.at(0, 0), "", "is empty")
	}
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return declaring.Node{}, declaring.Wrong(t.at(0, 0), "", "is not valid JSON: "+err.Error())
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // numbers may be of any size
	return t.decode(d, "", 0)
}

// decode reads one value of a valid JSON text.
func (t *tree) decode(d *json.Decoder, path string, depth int) (declaring.Node, error) {
	v := declaring.Node{Position: t.at(0, 0)}
	if err := t.enter(v.Position, path, depth); err != nil {
		return v, err
	}
	token, _ := d.Token() // no errors here and below, because the text is valid
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return v, t.decodeMembers(d, &v, path, depth)
		}
		v.Form = declaring.List
		for d.More() {
			item, err := t.decode(d, fmt.Sprintf("%s[%d]", path, len(v.Items)), depth+1)
			if err != nil {
				return v, err
			}
			v.Items = append(v.Items, item)
		}
		_, _ = d.Token() // the closing bracket
	case string:
		v.Form, v.Text = declaring.Text, token
	case bool:
		v.Form, v.Text = declaring.Flag, fmt.Sprint(token)
	case json.Number:
		v.Form, v.Text = declaring.Number, token.String()
	}
	return v, nil
}

func (t *tree) decodeMembers(d *json.Decoder, v *declaring.Node, path string, depth int) error {
	v.Form = declaring.Object
	names := map[string]bool{}
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		inner := join(path, name)
		value, err := t.decode(d, inner, depth+1)
		if err != nil {
			return err
		}
		if err := addMember(v, names, declaring.Member{Position: v.Position, Name: name, Value: value}, inner); err != nil {
			return err
		}
	}
	_, _ = d.Token() // the closing bracket
	return nil
}
