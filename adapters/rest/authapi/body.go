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

// requestBody reads the members of a JSON object by name and collects their errors, so that one
// response names every invalid field (contract A-3). It ignores other members.
type requestBody struct {
	members map[string]json.RawMessage
	path    string // prefix of the names of the members in errors
	errors  *fieldErrors
}

// fieldErrors are the problems of the fields of a request, by field. A field that cannot be read is
// invalid_input; a field that breaks a rule is validation_error.
type fieldErrors struct{ unreadable, invalid map[string]string }

// readBody reads the body of a request, which must be a JSON object.
func readBody(c *fiber.Ctx) (requestBody, error) {
	text, err := rest.JSONBody(c)
	if err != nil {
		return requestBody{}, err
	}
	return parseBody(text)
}

// parseBody parses a text, which must be a JSON object.
func parseBody(text []byte) (requestBody, error) {
	b := requestBody{errors: &fieldErrors{unreadable: map[string]string{}, invalid: map[string]string{}}}
	text = bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(text) == 0:
		return requestBody{}, fault.New(fault.Invalid, "body is empty; it must be a JSON object").WithCode(auth.CodeInvalidInput)
	case !utf8.Valid(text):
		return requestBody{}, fault.New(fault.Invalid, "body is not valid UTF-8").WithCode(auth.CodeInvalidInput)
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return requestBody{}, fault.New(fault.Invalid, "body begins with a byte order mark, which JSON must not have (RFC 8259, 8.1)").WithCode(auth.CodeInvalidInput)
	case !json.Valid(text):
		return requestBody{}, fault.New(fault.Invalid, "body is not valid JSON").WithCode(auth.CodeInvalidInput)
	case text[0] != '{':
		return requestBody{}, fault.New(fault.Invalid, "body must be a JSON object").WithCode(auth.CodeInvalidInput)
	}
	if names := findDuplicate(newTokenReader(text)); names != nil {
		return requestBody{}, auth.InvalidField(auth.CodeInvalidInput, fieldName(names), "occurs twice in the same object")
	}
	if err := json.Unmarshal(text, &b.members); err != nil {
		return requestBody{}, fault.Wrap(fault.Invalid, "body is not valid JSON", err).WithCode(auth.CodeInvalidInput)
	}
	return b, nil
}

// newTokenReader returns a reader of the tokens of a JSON text.
func newTokenReader(text []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // numbers may be of any size
	return d
}

// findDuplicate reads one value of a valid JSON text. If an object in it has two members of one
// name, findDuplicate returns that name and the names of the members around it, innermost first;
// else nil. JSON does not define which of the two members counts (RFC 8259, 4), and a proxy in
// front of the service might use the other one. Documents of the registry have the same rule.
func findDuplicate(d *json.Decoder) []string {
	opening, _ := d.Token() // no errors, because the text is valid
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
		if found := findDuplicate(d); found != nil {
			return append(found, within...)
		}
	}
	_, _ = d.Token() // the closing bracket
	return nil
}

// maxNameLength is the maximum length of a field name in an error, in bytes.
const maxNameLength = 100

// fieldName joins names, innermost first, to the name of a field in an error.
func fieldName(names []string) string {
	slices.Reverse(names)
	name := strings.Join(names, ".")
	if len(name) > maxNameLength {
		return strings.ToValidUTF8(name[:maxNameLength], "") + "…"
	}
	return name
}

// requireText returns a string member. A missing or empty string is an error.
func (b requestBody) requireText(name string) string {
	value, present := b.readText(name)
	switch {
	case !present:
		b.addUnreadable(name, "is missing")
	case value == "":
		b.addUnreadable(name, "must not be empty")
	}
	return value
}

// optionalText returns a string member, or an empty string if it is absent or null.
func (b requestBody) optionalText(name string) string {
	value, _ := b.readText(name)
	return value
}

// readText returns a string member. present is false if it is absent or null. A value that is not a
// string without NUL is an error.
func (b requestBody) readText(name string) (value string, present bool) {
	raw, ok := b.members[name]
	if !ok || string(raw) == "null" {
		return "", false
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		b.addUnreadable(name, "must be a string")
		return "?", true // not empty, so that the field has only one error
	}
	if strings.ContainsRune(value, 0) {
		b.addUnreadable(name, "must not contain a NUL")
		return "?", true
	}
	return value, true
}

// requireObject returns an object member. A missing object is an error.
func (b requestBody) requireObject(name string) requestBody {
	inner := requestBody{path: b.path + name + ".", errors: b.errors}
	raw, ok := b.members[name]
	switch {
	case !ok || string(raw) == "null":
		b.addUnreadable(name, "is missing")
	case json.Unmarshal(raw, &inner.members) != nil:
		b.addUnreadable(name, "must be an object")
	}
	return inner
}

func (b requestBody) addUnreadable(name, problem string) { b.errors.unreadable[b.path+name] = problem }

// fieldError returns an error with all problems of the fields that were read, or nil. others are
// errors of constructors for the values. They are ignored for fields that could not be read. An
// error among others that is not about fields is returned alone.
func (b requestBody) fieldError(others ...error) error {
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
		b.errors.addFields(f.Code, fields)
	}
	return b.errors.asError()
}

func (f *fieldErrors) addFields(code fault.Code, fields map[string]string) {
	for name, problem := range fields {
		switch {
		case f.unreadable[name] != "":
		case code == auth.CodeInvalidInput:
			f.unreadable[name] = problem
		default:
			f.invalid[name] = problem
		}
	}
}

func (f *fieldErrors) asError() error {
	code, fields := auth.CodeValidation, maps.Clone(f.invalid)
	if len(f.unreadable) > 0 {
		code = auth.CodeInvalidInput
		maps.Copy(fields, f.unreadable)
	}
	if len(fields) == 0 {
		return nil
	}
	return auth.InvalidFields(code, fields)
}
