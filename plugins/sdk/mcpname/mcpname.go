// Package mcpname finds the token with which a readme or a description of a package claims a
// server: "mcp-name: com.example/weather" (contract R-58). It does not validate names or download
// texts.
package mcpname

import (
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// token is the start of a claim.
const token = "mcp-name:"

// Limits of [Names].
const (
	maxNames     = 3
	maxNameBytes = 200
)

// Claims reports whether text claims the server called name. A claimed name ends at the first
// character that names cannot contain, so "com.example/weather-pro" does not claim
// "com.example/weather". Names are case-sensitive.
func Claims(text, name string) bool {
	found := false
	eachClaim(text, func(claimed string) bool {
		found = claimed == name
		return !found
	})
	return found && name != ""
}

// Check returns nil if text claims the server called name, and a refusal otherwise. place says in
// the refusal where the text is, for example: the readme of crate "weather" version 1.0.0.
func Check(text, name, place string) error {
	wanted := token + " " + name
	switch names := Names(text); {
	case Claims(text, name):
		return nil
	case len(names) > 0:
		return sdk.Refuse("%s claims %.80q: publish a version in which it contains %q", place, names[0], wanted)
	}
	return sdk.Refuse("%s does not claim the server: publish a version in which it contains %q", place, wanted)
}

// Names returns the first names, at most three, that text claims. Use them to tell a publisher
// which claim was found instead.
func Names(text string) []string {
	var names []string
	eachClaim(text, func(claimed string) bool {
		if claimed != "" && len(claimed) <= maxNameBytes {
			names = append(names, claimed)
		}
		return len(names) < maxNames
	})
	return names
}

// eachClaim calls yield with the name after each token in text, until yield returns false.
func eachClaim(text string, yield func(claimed string) bool) {
	for {
		_, after, found := strings.Cut(text, token)
		if !found {
			return
		}
		text = after
		claimed := strings.TrimLeft(after, " \t")
		if end := strings.IndexFunc(claimed, isOutsideName); end >= 0 {
			claimed = claimed[:end]
		}
		if !yield(claimed) {
			return
		}
	}
}

func isOutsideName(r rune) bool {
	letterOrDigit := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letterOrDigit && !strings.ContainsRune("-._/", r)
}
