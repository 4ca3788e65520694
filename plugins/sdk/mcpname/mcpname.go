// Package mcpname finds the token by which the text of a package, a readme or a description, claims
// a server: "mcp-name: com.example/weather" (contract R-58). It neither checks names nor fetches
// the text.
package mcpname

import "strings"

// token begins a claim.
const token = "mcp-name:"

// most bounds how many names of a text are told, and how long each may be, in bytes.
const (
	mostNames = 3
	mostBytes = 200
)

// Claims reports whether text claims the server called name. The name ends at a character that no name can have, so that a claim of
// "com.example/weather-pro" is none of "com.example/weather". Names are case-sensitive.
func Claims(text, name string) bool {
	found := false
	each(text, func(claimed string) bool {
		found = claimed == name
		return !found
	})
	return found && name != ""
}

// Names returns the first few names that text claims, for a sentence that tells a publisher what was found instead.
func Names(text string) []string {
	var names []string
	each(text, func(claimed string) bool {
		if claimed != "" && len(claimed) <= mostBytes {
			names = append(names, claimed)
		}
		return len(names) < mostNames
	})
	return names
}

// each calls yield with what follows each token in text, until it returns false.
func each(text string, yield func(claimed string) bool) {
	for {
		_, after, found := strings.Cut(text, token)
		if !found {
			return
		}
		text = after
		claimed := strings.TrimLeft(after, " \t")
		if end := strings.IndexFunc(claimed, notInName); end >= 0 {
			claimed = claimed[:end]
		}
		if !yield(claimed) {
			return
		}
	}
}

func notInName(r rune) bool {
	letterOrDigit := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letterOrDigit && !strings.ContainsRune("-._/", r)
}
