package auth

import (
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/email"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// ParseEmail returns the canonical form of an address that a person wrote. An empty one, and one
// with a NUL or broken UTF-8, is fault.Invalid with code invalid_input; what is no address of the
// form local@domain has code validation_error.
func ParseEmail(s string) (Email, error) {
	const field = "email"
	if problem := textProblem(s); problem != "" {
		return "", InvalidField(CodeInvalidInput, field, problem)
	}
	// Bounded before it is normalised: nothing that long can become short enough.
	if len(s) > 4*email.Max {
		return "", InvalidField(CodeValidation, field, "is too long")
	}
	if s = email.Canonical(s); s == "" {
		return "", InvalidField(CodeInvalidInput, field, "must not be empty")
	}
	if len(s) > email.Max {
		return "", InvalidField(CodeValidation, field, "is too long")
	}
	if !email.IsAddress(s) {
		return "", InvalidField(CodeValidation, field, "must be an e-mail address")
	}
	return Email(s), nil
}

// Domain returns what follows the @ of the address.
func (e Email) Domain() string { return string(e[strings.LastIndexByte(string(e), '@')+1:]) }

// textProblem returns the reason why s is not valid text, or the empty string.
func textProblem(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "must not contain a NUL"
	}
	return ""
}

// NotFound returns fault.NotFound with code resource_not_found for a kind of thing, like
// "device".
func NotFound(thing string) *fault.Error {
	return fault.New(fault.NotFound, thing+" not found").WithCode(CodeNotFound)
}
