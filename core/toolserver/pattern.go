package toolserver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Everything is the pattern of all servers.
const Everything = "*"

// Pattern selects server names: "*", a prefix that ends in "*", or one exact name; case-sensitive.
// ParsePattern makes one; the zero value selects no name.
type Pattern struct{ value string }

// ParsePattern returns the pattern that s contains: 1 to 200 characters that names can have,
// optionally with a "*" at the end (contract R-35). It returns fault.Invalid for anything else.
func ParsePattern(s string) (Pattern, error) {
	prefix, wild := strings.CutSuffix(s, "*")
	switch {
	case s == "":
		return Pattern{}, fault.New(fault.Invalid, "resource pattern must not be empty")
	case len(s) > MaxName:
		return Pattern{}, fault.Newf(fault.Invalid, "resource pattern must have at most %d characters, and has %d",
			MaxName, len(s))
	case strings.Contains(prefix, "*"):
		return Pattern{}, fault.Newf(fault.Invalid, "resource pattern %s has a \"*\" that is not at the end", quote(s))
	case strings.ContainsFunc(prefix, notInFullName):
		return Pattern{}, fault.Newf(fault.Invalid,
			"resource pattern %s has a character that no server name has", quote(s))
	case !wild && !IsNamespaced(s):
		return Pattern{}, fault.Newf(fault.Invalid,
			"resource pattern %s is neither a server name nor ends in \"*\"; a whole namespace is written \"com.example/*\"", quote(s))
	}
	return Pattern{s}, nil
}

// String returns the pattern as it was given.
func (p Pattern) String() string { return p.value }

// Matches reports whether the pattern selects the name.
func (p Pattern) Matches(name Name) bool {
	if prefix, wild := strings.CutSuffix(p.value, "*"); wild {
		return strings.HasPrefix(name.value, prefix)
	}
	return p.value != "" && p.value == name.value
}

// MatchesFold reports whether the pattern selects the name if letters in either case are the same.
func (p Pattern) MatchesFold(name Name) bool {
	prefix, wild := strings.CutSuffix(p.value, "*")
	if wild {
		return len(name.value) >= len(prefix) && strings.EqualFold(name.value[:len(prefix)], prefix)
	}
	return p.value != "" && strings.EqualFold(p.value, name.value)
}

// IsEverything reports whether the pattern selects every name.
func (p Pattern) IsEverything() bool { return p.value == Everything }

// Covers reports whether p selects every name that q can select.
func (p Pattern) Covers(q Pattern) bool {
	prefix, wild := strings.CutSuffix(p.value, "*")
	if !wild {
		return p.value != "" && p.value == q.value
	}
	return q.value != "" && strings.HasPrefix(strings.TrimSuffix(q.value, "*"), prefix)
}

// Overlaps reports whether there is a name that both patterns select.
func (p Pattern) Overlaps(q Pattern) bool { return p.Covers(q) || q.Covers(p) }

// DisjointPatterns returns patterns that select the same names, of which no two select the same
// name, in the order of the names that they select. It does not change the slice.
func DisjointPatterns(patterns []Pattern) []Pattern {
	sorted := slices.SortedFunc(slices.Values(patterns), func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(strings.TrimSuffix(a.value, "*"), strings.TrimSuffix(b.value, "*")),
			-cmp.Compare(a.value, b.value))
	})
	var disjoint []Pattern
	for _, p := range sorted {
		if n := len(disjoint); n == 0 || !disjoint[n-1].Covers(p) {
			disjoint = append(disjoint, p)
		}
	}
	return disjoint
}

// maxQuoted is how many characters of a text a message quotes.
const maxQuoted = 64

func quote(s string) string {
	if utf8.RuneCountInString(s) > maxQuoted {
		s = string([]rune(s)[:maxQuoted]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
