package people

import (
	_ "embed"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// commonList holds the most common leaked passwords and the usual ways to bend them until they pass rules for characters, one a
// line, in lower case.
//
//go:embed commonpasswords.txt
var commonList string

// commonPasswords tells which passwords are too common, whatever their case.
type commonPasswords map[string]struct{}

func readCommonPasswords() commonPasswords {
	c := make(commonPasswords, 8192)
	for line := range strings.Lines(commonList) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "# ") {
			c[line] = struct{}{}
		}
	}
	return c
}

// PasswordRules are the rules of new passwords. NewPasswordRules makes them.
type PasswordRules struct{ common commonPasswords }

// NewPasswordRules reads the rules, which takes a moment: keep them.
func NewPasswordRules() PasswordRules { return PasswordRules{readCommonPasswords()} }

// Check returns fault.Invalid with code validation_error, and names the field, if a new password
// breaks a rule (contract A-11).
func (r PasswordRules) Check(field string, p auth.Password) error {
	if err := p.Check(field); err != nil {
		return err
	}
	if r.common.has(p) {
		return auth.InvalidField(auth.CodeValidation, field, "is one of the most common leaked passwords")
	}
	return nil
}

func (c commonPasswords) has(p auth.Password) bool {
	_, found := c[norm.NFC.String(strings.ToLower(p.Reveal()))]
	return found
}
