package people

import (
	_ "embed"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// commonList holds the most common leaked passwords and their usual variants that pass rules for
// characters, one per line, in lower case.
//
//go:embed commonpasswords.txt
var commonList string

// commonPasswords is the set of passwords that are too common, in lower case.
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

// PasswordRules are the rules of new passwords. NewPasswordRules creates them.
type PasswordRules struct{ common commonPasswords }

// NewPasswordRules returns the rules. It parses a long list, so callers should keep the result.
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
