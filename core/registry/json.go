package registry

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Bounds of JSON that is read into a tree; no server document comes near.
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
	offset  int      // where it begins in the compact text
	size    int      // its length there, in bytes
	text    string   // the content of a string
	items   []node   // of an array
	members []member // of an object, in the order of the text
}

type member struct {
	name  string
	value node
}

// get returns the value of a property, or nil when it is missing or null (contract R-9).
func (n *node) get(name string) *node {
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

// str returns the value of a property that is a string.
func (n *node) str(name string) (string, bool) {
	v := n.get(name)
	if v == nil || v.kind != kindString {
		return "", false
	}
	return v.text, true
}

// list returns the items of a property that is an array.
func (n *node) list(name string) []node {
	if v := n.get(name); v != nil {
		return v.items
	}
	return nil
}

// parseObject reads a body that must be one JSON object and returns its
// compact form and its tree. The faults are of kind Invalid.
func parseObject(body []byte) ([]byte, node, error) {
	if !utf8.Valid(body) {
		return nil, node{}, malformed("body is not valid UTF-8")
	}
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		return nil, node{}, malformed("body begins with a byte order mark, which JSON must not have (RFC 8259, 8.1)")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, node{}, malformed("body is empty, a JSON object is needed")
	}
	var compact bytes.Buffer
	compact.Grow(len(body))
	if err := json.Compact(&compact, body); err != nil {
		return nil, node{}, fault.Newf(fault.Invalid, "", "body is not valid JSON: %v", err)
	}
	text := compact.Bytes()
	if text[0] != '{' {
		return nil, node{}, malformed("body must be a JSON object")
	}
	if err := checkEscapes(text); err != nil {
		return nil, node{}, err
	}
	w := walker{text: text}
	root, err := w.value(1)
	return text, root, err
}

// checkEscapes refuses what JSON can write and text cannot hold: a NUL, and
// half of a surrogate pair (RFC 8259, 8.2). In valid JSON a backslash stands
// only in strings, before one more character at least.
func checkEscapes(text []byte) error {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		unit := codeUnit(text[i+1:])
		i += 4
		switch {
		case unit == 0:
			return malformed("body holds a NUL")
		case !utf16.IsSurrogate(unit):
			continue
		case len(text) < i+7 || text[i+1] != '\\' || text[i+2] != 'u' ||
			utf16.DecodeRune(unit, codeUnit(text[i+3:])) == utf8.RuneError:
			return malformed("body holds half of a surrogate pair, which is no character")
		}
		i += 6
	}
	return nil
}

// codeUnit reads four hexadecimal digits.
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

// walker reads the tree of a text that is known to be valid, compact JSON.
type walker struct {
	text   []byte
	at     int
	values int
}

func (w *walker) value(depth int) (node, error) {
	w.values++
	switch {
	case depth > maxDepth:
		return node{}, fault.Newf(fault.Invalid, "", "body nests deeper than %d levels", maxDepth)
	case w.values > maxValues:
		return node{}, fault.Newf(fault.Invalid, "", "body holds more than %d values", maxValues)
	}
	n := node{offset: w.at}
	var err error
	switch w.text[w.at] {
	case '{':
		err = w.object(&n, depth)
	case '[':
		err = w.array(&n, depth)
	case '"':
		n.kind = kindString
		n.text, err = w.string()
	case 't', 'f':
		n.kind = kindBoolean
		w.literal()
	case 'n':
		w.literal()
	default:
		n.kind = kindNumber
		w.literal()
	}
	n.size = w.at - n.offset
	return n, err
}

func (w *walker) object(n *node, depth int) error {
	n.kind = kindObject
	for w.next('}') {
		name, err := w.string()
		if err != nil {
			return err
		}
		w.at++ // the colon
		v, err := w.value(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, v})
	}
	return nil
}

func (w *walker) array(n *node, depth int) error {
	n.kind = kindArray
	for w.next(']') {
		v, err := w.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, v)
	}
	return nil
}

// next passes over the opening bracket or the comma, and tells whether another
// element follows or, behind it, the closing bracket.
func (w *walker) next(closing byte) bool {
	if w.text[w.at] == closing {
		w.at++
		return false
	}
	w.at++
	if w.text[w.at] == closing { // of an empty one: a comma is never last
		w.at++
		return false
	}
	return true
}

func (w *walker) string() (string, error) {
	start, escaped := w.at, false
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			escaped = true
			w.at++
		}
	}
	w.at++
	if !escaped {
		return string(w.text[start+1 : w.at-1]), nil
	}
	var s string
	if err := json.Unmarshal(w.text[start:w.at], &s); err != nil {
		return "", fault.Wrap(fault.Invalid, "", "body is not valid JSON", err)
	}
	return s, nil
}

// literal passes over what is neither string, array nor object; the root is an
// object, so a bracket or a comma follows.
func (w *walker) literal() {
	for w.text[w.at] != ',' && w.text[w.at] != ']' && w.text[w.at] != '}' {
		w.at++
	}
}

func malformed(sentence string) error { return fault.New(fault.Invalid, "", sentence) }
