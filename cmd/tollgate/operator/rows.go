package operator

import (
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// wordList is a list that a table shows as words.
type wordList []string

// String returns the words with commas.
func (l wordList) String() string { return strings.Join(l, ", ") }

// formatOptionalTime returns a time in RFC 3339; empty for the zero value.
func formatOptionalTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// patternWords returns patterns as a list of words.
func patternWords(patterns []registry.Pattern) wordList {
	list := wordList{}
	for _, p := range patterns {
		list = append(list, p.String())
	}
	return list
}
