package auth

import (
	"net/mail"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxEmail is the greatest length of an address in bytes: what fits the path of RFC 5321, section
// 4.5.3.1.3.
const maxEmail = 254

// ParseEmail returns the canonical form of an address that a person wrote. An empty one, and one
// with a NUL or broken UTF-8, is fault.Invalid with code invalid_input; what is no address of the
// form local@domain has code validation_error.
func ParseEmail(s string) (Email, error) {
	const field = "email"
	if problem := textProblem(s); problem != "" {
		return "", InvalidField(CodeInvalidInput, field, problem)
	}
	// Bounded before it is normalised: nothing that long can become short enough.
	if len(s) > 4*maxEmail {
		return "", InvalidField(CodeValidation, field, "is too long")
	}
	s = strings.TrimSpace(s)
	if s == "" {
		return "", InvalidField(CodeInvalidInput, field, "must not be empty")
	}
	s = norm.NFC.String(strings.ToLower(norm.NFC.String(s)))
	if len(s) > maxEmail {
		return "", InvalidField(CodeValidation, field, "is too long")
	}
	if !isAddress(s) {
		return "", InvalidField(CodeValidation, field, "must be an e-mail address")
	}
	return Email(s), nil
}

// Domain returns what follows the @ of the address.
func (e Email) Domain() string { return string(e[strings.LastIndexByte(string(e), '@')+1:]) }

// isAddress reports whether s is one bare address: no display name, no comment, no quoted local
// part, a domain of non-empty labels.
func isAddress(s string) bool {
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Name != "" || parsed.Address != s {
		return false
	}
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || strings.ContainsAny(s, "\"() \t\r\n<>[]") {
		return false
	}
	for label := range strings.SplitSeq(s[at+1:], ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}

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

// NotFound returns fault.NotFound with code resource_not_found for a kind of thing, such as
// "device".
func NotFound(thing string) *fault.Error {
	return fault.New(fault.NotFound, thing+" not found").WithCode(CodeNotFound)
}
