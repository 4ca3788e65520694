package auth

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The bounds of a new password in characters (contract A-11).
const (
	MinPassword = 8
	MaxPassword = 128
)

// Password is a password in clear, in NFC, so that it does not matter how a keyboard composes a
// character. It prints as a placeholder. NewPassword returns one.
type Password struct{ value string }

// NewPassword returns the password of a request. An empty one, and one with a NUL or broken UTF-8,
// is fault.Invalid with code invalid_input and names the field. It does not check the rules for new
// passwords; Check does.
func NewPassword(field, s string) (Password, error) {
	if s == "" {
		return Password{}, InvalidField(CodeInvalidInput, field, "must not be empty")
	}
	if problem := textProblem(s); problem != "" {
		return Password{}, InvalidField(CodeInvalidInput, field, problem)
	}
	return Password{norm.NFC.String(s)}, nil
}

// Reveal returns the password in clear.
func (p Password) Reveal() string { return p.value }

// String returns a placeholder.
func (p Password) String() string { return "[password]" }

// GoString returns a placeholder.
func (p Password) GoString() string { return p.String() }

// TooLong reports whether p has more than MaxPassword characters.
func (p Password) TooLong() bool {
	return len(p.value) > utf8.UTFMax*MaxPassword || utf8.RuneCountInString(p.value) > MaxPassword
}

// Check returns fault.Invalid with code validation_error, and names the field, if p breaks a rule
// for new passwords (contract A-11).
func (p Password) Check(field string) error {
	var problem string
	seen := classesOf(p.value)
	switch {
	case utf8.RuneCountInString(p.value) < MinPassword:
		problem = "must have at least 8 characters"
	case p.TooLong():
		problem = "must have at most 128 characters"
	case !seen.upper:
		problem = "must have an uppercase letter"
	case !seen.lower:
		problem = "must have a lowercase letter"
	case !seen.digit:
		problem = "must have a digit"
	case !seen.special:
		problem = "must have a special character"
	default:
		return nil
	}
	return InvalidField(CodeValidation, field, problem)
}

// classes are the kinds of character that a new password must contain.
type classes struct{ upper, lower, digit, special bool }

func classesOf(s string) classes {
	var c classes
	for _, r := range s {
		switch {
		case unicode.IsUpper(r):
			c.upper = true
		case unicode.IsLower(r):
			c.lower = true
		case unicode.IsDigit(r):
			c.digit = true
		case unicode.IsPunct(r), unicode.IsSymbol(r), r == ' ':
			c.special = true
		}
	}
	return c
}
