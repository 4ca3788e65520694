// Package email has the form of e-mail addresses, by which all of the core names people.
package email

import (
	"net/mail"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Max is the greatest length of an address in bytes: what fits the path of RFC 5321, section
// 4.5.3.1.3.
const Max = 254

// Canonical returns an address in the form in which addresses are compared.
func Canonical(s string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(strings.TrimSpace(s))))
}

// IsAddress reports whether s is one bare address: no display name, no comment, no quoted local
// part, a domain of non-empty labels.
func IsAddress(s string) bool {
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
