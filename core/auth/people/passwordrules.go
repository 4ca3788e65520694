package people

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// Check returns fault.Invalid with code validation_error, and names the field, if the new password
// of a person breaks a rule (contract A-11).
func (r PasswordRules) Check(field string, p auth.Password, email auth.Email, name string) error {
	if err := p.Check(field); err != nil {
		return err
	}
	if r.common.has(p) {
		return auth.InvalidField(auth.CodeValidation, field, "is one of the most common leaked passwords")
	}
	if word := guessableWord(p, email, name); word != "" {
		return auth.InvalidField(auth.CodeValidation, field,
			"contains "+word+" and has too few other letters and digits: at least 8 are needed")
	}
	return nil
}

// The origins of a word that somebody who knows the person guesses first.
const (
	fromEmail   = "a part of the e-mail address"
	fromName    = "a part of the name"
	fromProduct = "the name of this service"
)

// minWord is the least length of a word that counts, in characters.
const minWord = 3

// guessableWord returns where the words in a password come from, if without them it has fewer
// letters and digits than a password needs; empty otherwise. A long passphrase may contain such a
// word.
func guessableWord(p auth.Password, email auth.Email, name string) (origin string) {
	rest := fold(p.Reveal())
	local, domain, _ := strings.Cut(fold(string(email)), "@")
	labels := splitWords(domain)
	for _, part := range []struct {
		origin string
		words  []string
	}{
		{
			fromEmail,
			append([]string{local + "@" + domain, local, domain},
				append(splitWords(local), labels[:max(len(labels)-1, 0)]...)...),
		},
		{fromName, append([]string{fold(name)}, splitWords(fold(name))...)},
		{fromProduct, []string{"tollgate"}},
	} {
		slices.SortStableFunc(part.words, func(a, b string) int { return len(b) - len(a) }) // the longest first
		for _, word := range part.words {
			if utf8.RuneCountInString(word) >= minWord && strings.Contains(rest, word) {
				rest, origin = strings.ReplaceAll(rest, word, " "), cmp.Or(origin, part.origin)
			}
		}
	}
	if len(slices.DeleteFunc([]rune(rest), isSeparator)) >= auth.MinPassword {
		return ""
	}
	return origin
}

// splitWords returns the words of a text, without what separates them.
func splitWords(s string) []string { return strings.FieldsFunc(s, isSeparator) }

func isSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// fold returns a text in a form in which the case of letters does not matter.
func fold(s string) string { return norm.NFC.String(strings.ToLower(s)) }

func (c commonPasswords) has(p auth.Password) bool {
	_, found := c[fold(p.Reveal())]
	return found
}
