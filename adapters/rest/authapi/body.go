package authapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// body reads the members of a JSON object by name and gathers what is wrong with them, so that one
// answer names every field (contract A-3). It ignores members that are not read.
type body struct {
	members map[string]json.RawMessage
	path    string // before the names of the members
	faults  *faults
}

// faults are the problems of a request's fields. What cannot be read is
// invalid_input; what can be read and breaks a rule is validation_error.
type faults struct{ unreadable, broken map[string]string }

// readBody returns the object that a request's body holds.
func readBody(c *fiber.Ctx) (body, error) {
	text, err := rest.JSONBody(c)
	if err != nil {
		return body{}, err
	}
	return parseBody(text)
}

// maxCommas bounds what it costs to look through a body, where no body of this
// API comes near.
const maxCommas = 10_000

// parseBody returns the object that a text holds.
func parseBody(text []byte) (body, error) {
	b := body{faults: &faults{unreadable: map[string]string{}, broken: map[string]string{}}}
	text = bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(text) == 0:
		return body{}, fault.New(fault.Invalid, auth.CodeInvalidInput, "body is empty, a JSON object is needed")
	case !utf8.Valid(text):
		return body{}, fault.New(fault.Invalid, auth.CodeInvalidInput, "body is not valid UTF-8")
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return body{}, fault.New(fault.Invalid, auth.CodeInvalidInput, "body begins with a byte order mark, which JSON must not have (RFC 8259, 8.1)")
	case !json.Valid(text):
		return body{}, fault.New(fault.Invalid, auth.CodeInvalidInput, "body is not valid JSON")
	case text[0] != '{':
		return body{}, fault.New(fault.Invalid, auth.CodeInvalidInput, "body must be a JSON object")
	case bytes.Count(text, []byte(",")) > maxCommas:
		return body{}, fault.New(fault.Invalid, auth.CodeInvalidInput, "body has too many values")
	}
	if names := duplicate(newNames(text)); names != nil {
		return body{}, auth.InvalidField(auth.CodeInvalidInput, fieldName(names), "occurs twice in the same object")
	}
	if err := json.Unmarshal(text, &b.members); err != nil {
		return body{}, fault.Wrap(fault.Invalid, auth.CodeInvalidInput, "body is not valid JSON", err)
	}
	return b, nil
}

// newNames returns a reader of the names in a JSON text.
func newNames(text []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // however large
	return d
}

// duplicate passes over one value of a valid text and returns where a member
// stands that its object has twice: its name and those of the members that it is
// in, innermost first; nil for none. JSON leaves open which of the two counts (RFC
// 8259, 4), and what stands in front of the service might read the other one.
// Documents of the registry are held to the same.
func duplicate(d *json.Decoder) []string {
	opening, _ := d.Token() // none is missing, since the text is valid
	if _, nested := opening.(json.Delim); !nested {
		return nil
	}
	var names map[string]bool
	if opening == json.Delim('{') {
		names = map[string]bool{}
	}
	for d.More() {
		var within []string
		if names != nil {
			token, _ := d.Token()
			name, _ := token.(string)
			if names[name] {
				return []string{name}
			}
			names[name] = true
			within = []string{name}
		}
		if found := duplicate(d); found != nil {
			return append(found, within...)
		}
	}
	_, _ = d.Token() // which closes it
	return nil
}

// maxNamed is how much of a name a refusal says, in bytes.
const maxNamed = 100

// fieldName writes names, innermost first, as refusals name fields.
func fieldName(names []string) string {
	slices.Reverse(names)
	name := strings.Join(names, ".")
	if len(name) > maxNamed {
		return strings.ToValidUTF8(name[:maxNamed], "") + "…"
	}
	return name
}

// text returns a string that must be there and not be empty.
func (b body) text(name string) string {
	value, given := b.value(name)
	switch {
	case !given:
		b.unreadable(name, "is missing")
	case value == "":
		b.unreadable(name, "must not be empty")
	}
	return value
}

// option returns a string that may be absent, or null, and then is empty.
func (b body) option(name string) string {
	value, _ := b.value(name)
	return value
}

// value returns a string, and whether it is there or something else stands in
// its place, which is noted.
func (b body) value(name string) (value string, given bool) {
	raw, ok := b.members[name]
	if !ok || string(raw) == "null" {
		return "", false
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		b.unreadable(name, "must be a string")
		return "?", true // not empty, so that it has one problem only
	}
	if strings.ContainsRune(value, 0) {
		b.unreadable(name, "must not contain a NUL")
		return "?", true
	}
	return value, true
}

// object returns an object that must be there.
func (b body) object(name string) body {
	inner := body{path: b.path + name + ".", faults: b.faults}
	raw, ok := b.members[name]
	switch {
	case !ok || string(raw) == "null":
		b.unreadable(name, "is missing")
	case json.Unmarshal(raw, &inner.members) != nil:
		b.unreadable(name, "must be an object")
	}
	return inner
}

func (b body) unreadable(name, problem string) { b.faults.unreadable[b.path+name] = problem }

// err returns everything that is wrong with the fields read so far. others are
// what the model found wrong with the values; of a field that could not be
// read they say nothing.
func (b body) err(others ...error) error {
	for _, err := range others {
		if err == nil {
			continue
		}
		f, ok := fault.As(err)
		if !ok {
			return err
		}
		fields, ok := f.Details["fields"].(map[string]string)
		if f.Kind != fault.Invalid || !ok {
			return err
		}
		b.faults.add(f.Code, fields)
	}
	return b.faults.err()
}

func (f *faults) add(code fault.Code, fields map[string]string) {
	for name, problem := range fields {
		switch {
		case f.unreadable[name] != "":
		case code == auth.CodeInvalidInput:
			f.unreadable[name] = problem
		default:
			f.broken[name] = problem
		}
	}
}

func (f *faults) err() error {
	code, fields := auth.CodeValidation, maps.Clone(f.broken)
	if len(f.unreadable) > 0 {
		code = auth.CodeInvalidInput
		maps.Copy(fields, f.unreadable)
	}
	if len(fields) == 0 {
		return nil
	}
	return auth.InvalidFields(code, fields)
}
