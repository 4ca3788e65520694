// Package jsonbody reads request bodies that are JSON objects, member by member, with errors that
// name the member.
package jsonbody

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Object reads the members of a JSON object by name. It keeps the first error. Other members are
// ignored.
type Object struct {
	members map[string]json.RawMessage
	err     error
}

// Read reads the body of a request, which must be a JSON object.
func Read(c *fiber.Ctx) (*Object, error) {
	text, err := rest.JSONBody(c)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Parse parses a text, which must be a JSON object in which no name occurs twice (RFC 8259, 4).
func Parse(text []byte) (*Object, error) {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return nil, fault.New(fault.Invalid, "body is empty; it must be a JSON object")
	case !utf8.Valid(text), !json.Valid(text):
		return nil, fault.New(fault.Invalid, "body is not valid JSON")
	case text[0] != '{':
		return nil, fault.New(fault.Invalid, "body must be a JSON object")
	}
	b := &Object{}
	var err error
	if b.members, err = readMembers(text, ""); err != nil {
		return nil, err
	}
	return b, nil
}

// readMembers returns the members of a valid JSON object. path is the name of the object with a
// point, or empty for the body.
func readMembers(text []byte, path string) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // the opening brace
		return nil, fault.Wrap(fault.Invalid, "body is not valid JSON", err)
	}
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil && err != io.EOF || !isName {
			return nil, fault.Wrap(fault.Invalid, "body is not valid JSON", err)
		}
		if _, twice := members[name]; twice {
			return nil, fault.Newf(fault.Invalid, "%s%s occurs twice", path, registry.Clip(name))
		}
		members[name] = value
	}
	return members, nil
}

// Err returns the first error of the members that were read; nil without one.
func (b *Object) Err() error { return b.err }

// has reports whether a member is there and not null.
func (b *Object) has(name string) bool {
	value, ok := b.members[name]
	return ok && string(value) != "null"
}

// fail keeps the error of a member, unless there is one already.
func (b *Object) fail(name, problem string) {
	if b.err == nil {
		b.err = fault.Newf(fault.Invalid, "%s %s", name, problem)
	}
}

// Text returns a member that must be a string that is not empty.
func (b *Object) Text(name string) string {
	if !b.has(name) {
		b.fail(name, "is missing")
		return ""
	}
	s := b.OptionalText(name)
	if s == "" {
		b.fail(name, "must not be empty")
	}
	return s
}

// OptionalText returns a member that must be a string; empty if it is missing or null.
func (b *Object) OptionalText(name string) (s string) {
	if !b.has(name) {
		return ""
	}
	if err := json.Unmarshal(b.members[name], &s); err != nil || !registry.IsText(s) {
		b.fail(name, "must be a string without NUL")
		return ""
	}
	return s
}

// NullableText returns a member that must be a string that is not empty; empty if it is missing or
// null.
func (b *Object) NullableText(name string) string {
	if !b.has(name) {
		return ""
	}
	return b.Text(name)
}

// Texts returns a member that must be a list of strings.
func (b *Object) Texts(name string) []string {
	if !b.has(name) {
		return nil
	}
	var list []*string
	if err := json.Unmarshal(b.members[name], &list); err != nil || len(list) == 0 {
		b.fail(name, "must be a list of one or more strings")
		return nil
	}
	texts := make([]string, len(list))
	for i, s := range list {
		if s == nil || !registry.IsText(*s) {
			b.fail(fmt.Sprintf("%s[%d]", name, i), "must be a string without NUL")
			return nil
		}
		texts[i] = *s
	}
	return texts
}

// TextMap returns a member that must be an object whose members are strings.
func (b *Object) TextMap(name string) map[string]string {
	if !b.has(name) {
		return nil
	}
	if b.members[name][0] != '{' {
		b.fail(name, "must be an object of strings")
		return nil
	}
	members, err := readMembers(b.members[name], name+".")
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return nil
	}
	inner := &Object{members: members}
	texts := make(map[string]string, len(members))
	for member := range members {
		texts[member] = inner.Text(member)
		if inner.err != nil {
			b.fail(name+"."+registry.Clip(member), "must be a string that is not empty")
			return nil
		}
	}
	return texts
}

// Time returns a member that must be an RFC 3339 time; the zero value if it is missing or null.
func (b *Object) Time(name string) time.Time {
	s := b.OptionalText(name)
	if s == "" {
		if b.has(name) {
			b.fail(name, "must be an RFC 3339 time, for example 2027-01-01T00:00:00Z")
		}
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		b.fail(name, "must be an RFC 3339 time, for example 2027-01-01T00:00:00Z")
	}
	return t
}
