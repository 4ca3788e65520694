// Package jsonbody reads request bodies that are JSON objects, member by member, with errors that
// name the member.
package jsonbody

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/kinds"
)

// Object reads the members of a JSON object by name and collects their problems. Other members are
// ignored.
type Object struct {
	members map[string]json.RawMessage
	read    map[string]bool // the names that were asked for
	path    string          // before the names of the members in problems
	found   *problems
}

// problems are those of a body and of the objects in it.
type problems struct {
	strict  bool
	list    []problem
	objects []*Object // those that were read
}

// problem is what is wrong with a member; text follows its name.
type problem struct{ member, text string }

// Read reads the body of a request, which must be a JSON object in which no name occurs twice (RFC
// 8259, 4). Objects in it are not checked for that before they are read.
func Read(c *fiber.Ctx) (*Object, error) {
	text, err := rest.JSONBody(c)
	if err != nil {
		return nil, err
	}
	return Parse(text, false)
}

// ReadStrictly is Read for an API whose errors name all members that are wrong. No name may occur
// twice in any object of the body: a proxy in front of the service might use the other one. One
// that does is a problem of the object that is returned.
func ReadStrictly(c *fiber.Ctx) (*Object, error) {
	text, err := rest.JSONBody(c)
	if err != nil {
		return nil, err
	}
	return Parse(text, true)
}

// Parse parses a text like Read, or like ReadStrictly if strict is true.
func Parse(text []byte, strict bool) (*Object, error) {
	text = bytes.Trim(text, " \t\r\n")
	switch {
	case len(text) == 0:
		return nil, fault.New(fault.Invalid, "body is empty; it must be a JSON object")
	case strict && !utf8.Valid(text):
		return nil, fault.New(fault.Invalid, "body is not valid UTF-8")
	case strict && bytes.HasPrefix(text, []byte("\ufeff")):
		return nil, fault.New(
			fault.Invalid, "body begins with a byte order mark, which JSON must not have (RFC 8259, 8.1)")
	case !utf8.Valid(text), !json.Valid(text):
		return nil, fault.New(fault.Invalid, "body is not valid JSON")
	case text[0] != '{':
		return nil, fault.New(fault.Invalid, "body must be a JSON object")
	}
	b := newObject("", &problems{strict: strict})
	b.readMembers(text)
	if !strict && b.Err() != nil {
		return nil, b.Err()
	}
	return b, nil
}

func newObject(path string, found *problems) *Object {
	b := &Object{read: map[string]bool{}, path: path, found: found}
	found.objects = append(found.objects, b)
	return b
}

// RefuseOthers adds a problem for each member that was not read, of the body and of the objects in
// it. It must be called when all others were read.
func (b *Object) RefuseOthers() {
	for _, o := range b.found.objects {
		for _, name := range slices.Sorted(maps.Keys(o.members)) {
			if !o.read[name] {
				o.fail(fields.Clip(name, maxName), "is not a known member")
			}
		}
	}
}

// readMembers reads the members of a valid JSON object. A name that occurs twice is a problem.
func (b *Object) readMembers(text []byte) {
	depth, problem := 1, "occurs twice"
	if b.found.strict {
		depth, problem = -1, "occurs twice in the same object"
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // numbers may be of any size
	if names := findDuplicate(d, depth); names != nil {
		slices.Reverse(names)
		b.fail(fields.Clip(strings.Join(names, "."), maxName), problem)
	}
	_ = json.Unmarshal(text, &b.members) // no error, because the text is an object
}

// findDuplicate reads one value of a valid JSON text. If an object in it, at most depth objects and
// arrays deep, has two members of one name, findDuplicate returns that name and the names of the
// members around it, innermost first; else nil. A negative depth has no end.
func findDuplicate(d *json.Decoder, depth int) []string {
	if depth == 0 { // the value is not searched
		var skipped json.RawMessage
		_ = d.Decode(&skipped) // no errors here and below, because the text is valid
		return nil
	}
	opening, _ := d.Token()
	if _, nested := opening.(json.Delim); !nested {
		return nil
	}
	known := map[string]bool{}
	for d.More() {
		var within []string
		if opening == json.Delim('{') {
			token, _ := d.Token()
			name, _ := token.(string)
			if known[name] {
				return []string{name}
			}
			known[name] = true
			within = []string{name}
		}
		if found := findDuplicate(d, depth-1); found != nil {
			return append(found, within...)
		}
	}
	_, _ = d.Token() // the closing bracket
	return nil
}

// maxName is the greatest length of a name in an error, in bytes.
const maxName = 100

// Err returns the first problem of the members that were read as an error; nil without one.
func (b *Object) Err() error {
	if len(b.found.list) == 0 {
		return nil
	}
	return fault.Newf(fault.Invalid, "%s %s", b.found.list[0].member, b.found.list[0].text)
}

// Problems returns the problems of the members that were read, by member.
func (b *Object) Problems() map[string]string {
	all := map[string]string{}
	for _, p := range b.found.list {
		all[p.member] = p.text
	}
	return all
}

// Has reports whether a member is there and not null.
func (b *Object) Has(name string) bool {
	b.read[name] = true
	value, ok := b.members[name]
	return ok && string(value) != "null"
}

// IsNull reports whether a member is there and null.
func (b *Object) IsNull(name string) bool {
	b.read[name] = true
	return string(b.members[name]) == "null"
}

// fail adds the problem of a member, unless it has one already.
func (b *Object) fail(name, text string) {
	p := problem{b.path + name, text}
	if !slices.ContainsFunc(b.found.list, func(known problem) bool { return known.member == p.member }) {
		b.found.list = append(b.found.list, p)
	}
}

// Text returns a member that must be a string that is not empty.
func (b *Object) Text(name string) string {
	s := b.PresentText(name)
	if s == "" {
		b.fail(name, "must not be empty")
	}
	return s
}

// PresentText returns a member that must be a string.
func (b *Object) PresentText(name string) string {
	if !b.Has(name) {
		b.fail(name, "is missing")
	}
	return b.OptionalText(name)
}

// OptionalText returns a member that must be a string; empty if it is missing or null.
func (b *Object) OptionalText(name string) (s string) {
	if !b.Has(name) {
		return ""
	}
	err := json.Unmarshal(b.members[name], &s)
	switch {
	case err == nil && isText(s):
		return s
	case !b.found.strict:
		b.fail(name, "must be a string without NUL")
	case err != nil:
		b.fail(name, "must be a string")
	default:
		b.fail(name, "must not contain a NUL")
	}
	return ""
}

// isText reports whether every store can hold a value.
func isText(s string) bool { return !strings.ContainsRune(s, 0) }

// NullableText returns a member that must be a string that is not empty; empty if it is missing or
// null.
func (b *Object) NullableText(name string) string {
	if !b.Has(name) {
		return ""
	}
	return b.Text(name)
}

// Texts returns a member that must be a list of strings.
func (b *Object) Texts(name string) []string {
	if !b.Has(name) {
		return nil
	}
	var list []*string
	if err := json.Unmarshal(b.members[name], &list); err != nil || len(list) == 0 {
		b.fail(name, "must be a list of one or more strings")
		return nil
	}
	texts := make([]string, len(list))
	for i, s := range list {
		if s == nil || !isText(*s) {
			b.fail(fmt.Sprintf("%s[%d]", name, i), "must be a string without NUL")
			return nil
		}
		texts[i] = *s
	}
	return texts
}

// TextMap returns a member that must be an object whose members are strings.
func (b *Object) TextMap(name string) map[string]string {
	if !b.Has(name) {
		return nil
	}
	if b.members[name][0] != '{' {
		b.fail(name, "must be an object of strings")
		return nil
	}
	inner := newObject(b.path+name+".", b.found)
	inner.readMembers(b.members[name])
	texts := map[string]string{}
	for member := range inner.members {
		inner.read[member] = true
		var s string
		if err := json.Unmarshal(inner.members[member], &s); err != nil || s == "" || !isText(s) {
			inner.fail(fields.Clip(member, maxName), "must be a string that is not empty")
		}
		texts[member] = s
	}
	return texts
}

// Nested returns a member that must be an object.
func (b *Object) Nested(name string) *Object {
	inner := newObject(b.path+name+".", b.found)
	if !b.Has(name) {
		b.fail(name, "is missing")
	} else if json.Unmarshal(b.members[name], &inner.members) != nil {
		b.fail(name, "must be an object")
	}
	return inner
}

// Raw returns the JSON of a member that must be an object.
func (b *Object) Raw(name string) []byte {
	b.Nested(name)
	return b.members[name]
}

// Number returns a member that must be a whole number.
func (b *Object) Number(name string) (n int) {
	switch {
	case !b.Has(name):
		b.fail(name, "is missing")
	case json.Unmarshal(b.members[name], &n) != nil:
		b.fail(name, "must be a whole number")
	}
	return n
}

// Flag returns a member that must be true or false; false if it is missing or null.
func (b *Object) Flag(name string) (flag bool) {
	if b.Has(name) && json.Unmarshal(b.members[name], &flag) != nil {
		b.fail(name, "must be true or false")
	}
	return flag
}

// OptionalTexts returns a member that must be a list of strings, which may be empty; nil if it is
// missing or null.
func (b *Object) OptionalTexts(name string) []string {
	if b.Has(name) && string(bytes.Join(bytes.Fields(b.members[name]), nil)) == "[]" {
		return []string{}
	}
	return b.Texts(name)
}

// Objects returns a member that must be a list of objects; nil if it is missing or null.
func (b *Object) Objects(name string) []*Object {
	if !b.Has(name) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(b.members[name], &list) != nil {
		b.fail(name, "must be a list of objects")
		return nil
	}
	objects := make([]*Object, len(list))
	for i, text := range list {
		member := fmt.Sprintf("%s[%d]", name, i)
		objects[i] = newObject(b.path+member+".", b.found)
		if json.Unmarshal(text, &objects[i].members) != nil || objects[i].members == nil {
			b.fail(member, "must be an object")
		}
	}
	return objects
}

// Fields returns the members that are fields of a kind, without those that are missing or null. A secret
// that is null is empty.
func (b *Object) Fields(fields []kinds.Field) jsonvalue.Object {
	values := jsonvalue.Object{}
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Shape == kinds.Text && (f.Required || f.Secret && b.Has(f.Name)):
			values[f.Name] = jsonvalue.Text(b.Text(f.Name))
		case f.Required && f.Shape == kinds.Number:
			values[f.Name] = jsonvalue.Number(b.Number(f.Name))
		case b.Has(f.Name):
			values[f.Name] = b.field(f)
		case f.Secret && f.Shape == kinds.Text && b.IsNull(f.Name):
			values[f.Name] = jsonvalue.Text("")
		}
	}
	return values
}

// field returns a member that is there.
func (b *Object) field(f *kinds.Field) jsonvalue.Value {
	switch f.Shape {
	case kinds.Texts:
		return jsonvalue.Texts(b.OptionalTexts(f.Name))
	case kinds.Flag:
		return jsonvalue.Flag(b.Flag(f.Name))
	case kinds.Number:
		return jsonvalue.Number(b.Number(f.Name))
	case kinds.TextMap:
		texts := jsonvalue.Object{}
		for name, text := range b.TextMap(f.Name) {
			texts[name] = jsonvalue.Text(text)
		}
		return texts
	case kinds.Objects:
		list := jsonvalue.List{}
		for _, o := range b.Objects(f.Name) {
			list = append(list, o.Fields(f.Inner))
		}
		return list
	case kinds.Object:
		return b.Nested(f.Name).Fields(f.Inner)
	case kinds.Document:
		if text := b.members[f.Name]; text[0] == '{' {
			var any jsonvalue.Object
			if json.Unmarshal(text, &any) != nil {
				b.fail(f.Name, "must be an object")
			}
			return any
		}
	}
	return jsonvalue.Text(b.OptionalText(f.Name))
}

// Time returns a member that must be an RFC 3339 time; the zero value if it is missing or null.
func (b *Object) Time(name string) time.Time {
	if !b.Has(name) {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, b.OptionalText(name))
	if err != nil {
		b.fail(name, "must be an RFC 3339 time, for example 2027-01-01T00:00:00Z")
	}
	return t
}
