package registry

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Bounds of a JSON text; server documents are far below them.
const (
	maxDepth  = 64
	maxValues = 65_536
)

type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindNumber
	kindString
	kindArray
	kindObject
)

var kindNames = [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}

// String returns the kind's name with its article.
func (k kind) String() string { return kindNames[k] }

// node is one value of a JSON text.
type node struct {
	kind    kind
	offset  int      // the position in the compact text
	size    int      // the length there, in bytes
	text    string   // the content of a string
	items   []node   // of an array
	members []member // of an object, in the order of the text
}

type member struct {
	name  string
	value node
}

// property returns the value of a property, or nil when it is missing or null (contract R-9).
func (n *node) property(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if m := &n.members[i]; m.name == name && m.value.kind != kindNull {
			return &m.value
		}
	}
	return nil
}

// stringProperty returns the text of a property, or false when the property is not a string.
func (n *node) stringProperty(name string) (string, bool) {
	v := n.property(name)
	if v == nil || v.kind != kindString {
		return "", false
	}
	return v.text, true
}

// itemsOf returns the items of a property that is an array.
func (n *node) itemsOf(name string) []node {
	if v := n.property(name); v != nil {
		return v.items
	}
	return nil
}

// parseObject reads a body that must be one JSON object and returns its compact form and its tree.
// Its errors are fault.Invalid.
func parseObject(body []byte) ([]byte, node, error) {
	if !utf8.Valid(body) {
		return nil, node{}, malformedBody("body is not valid UTF-8")
	}
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		return nil, node{}, malformedBody(
			"body begins with a byte order mark, which JSON must not have (RFC 8259, 8.1)")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, node{}, malformedBody("body is empty; it must be a JSON object")
	}
	var compact bytes.Buffer
	compact.Grow(len(body))
	if err := json.Compact(&compact, body); err != nil {
		return nil, node{}, fault.Newf(fault.Invalid, "body is not valid JSON: %v", err)
	}
	text := compact.Bytes()
	if text[0] != '{' {
		return nil, node{}, malformedBody("body must be a JSON object")
	}
	if _, problem := findBadEscape(text); problem != "" {
		return nil, node{}, malformedBody(problem)
	}
	w := jsonReader{Reader: jsonvalue.NewReader(text)}
	root, err := w.readValue(1)
	return text, root, err
}

// findBadEscape returns the offset of an escape that text cannot represent, and why: a NUL, or half
// of a surrogate pair (RFC 8259, section 8.2). The reason is empty if it does not exist. In valid
// JSON a backslash occurs only in strings, before at least one more character.
func findBadEscape(text []byte) (at int, problem string) {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		unit := codeUnit(text[i+1:])
		at, i = i-1, i+4
		switch {
		case unit == 0:
			return at, "body contains a NUL"
		case !utf16.IsSurrogate(unit):
			continue
		case len(text) < i+7 || text[i+1] != '\\' || text[i+2] != 'u' ||
			utf16.DecodeRune(unit, codeUnit(text[i+3:])) == utf8.RuneError:
			return at, "body contains half of a surrogate pair, which is not a character"
		}
		i += 6
	}
	return 0, ""
}

// codeUnit returns the value of four hexadecimal digits, or 0.
func codeUnit(text []byte) rune {
	var unit [2]byte
	if len(text) < 4 {
		return 0
	}
	if _, err := hex.Decode(unit[:], text[:4]); err != nil {
		return 0
	}
	return rune(unit[0])<<8 | rune(unit[1])
}

// jsonReader reads the tree of a text that is known to be valid.
type jsonReader struct {
	jsonvalue.Reader

	values int
}

func (w *jsonReader) readValue(depth int) (node, error) {
	w.values++
	switch {
	case depth > maxDepth:
		return node{}, fault.Newf(fault.Invalid, "body nests deeper than %d levels", maxDepth)
	case w.values > maxValues:
		return node{}, fault.Newf(fault.Invalid, "body has more than %d values", maxValues)
	}
	var err error
	first := w.Next()
	n := node{kind: kindNumber, offset: w.Offset()}
	switch first {
	case '{':
		err = w.readObject(&n, depth)
	case '[':
		err = w.readArray(&n, depth)
	case '"':
		n.kind, n.text = kindString, w.Text()
	case 't', 'f':
		n.kind = kindBoolean
		w.Word()
	case 'n':
		n.kind = kindNull
		w.Word()
	default:
		w.Word()
	}
	n.size = w.Offset() - n.offset
	return n, err
}

func (w *jsonReader) readObject(n *node, depth int) error {
	n.kind = kindObject
	for w.Enter(); w.More('}'); {
		name := w.Text()
		v, err := w.readValue(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, v})
	}
	return nil
}

func (w *jsonReader) readArray(n *node, depth int) error {
	n.kind = kindArray
	for w.Enter(); w.More(']'); {
		v, err := w.readValue(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, v)
	}
	return nil
}

func malformedBody(sentence string) error { return fault.New(fault.Invalid, sentence) }
