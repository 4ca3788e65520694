// Package mcpname finds the token with which a readme or a description of a package claims a
// server: "mcp-name: com.example/weather" (contract R-58). It does not validate names or download
// texts.
package mcpname

import "strings"

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
