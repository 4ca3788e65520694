package publisher

import (
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Bounds of what a policy compares with an ID token.
const (
	maxSubject    = 512 // characters of a subject pattern
	maxClaims     = 16
	maxClaimName  = 128 // characters
	maxClaimValue = 512 // characters
)

// SubjectPattern selects subjects of ID tokens. A "*" matches any characters except "/" and
// ":", which separate the parts of subjects; a "*" at the end, after "/" or ":", matches the
// whole rest. So repo:acme/* selects all subjects of the repositories of acme, and no pattern that
// begins with repo:acme selects one of acme-evil/tools unless it says so. ParseSubjectPattern makes
// one; the zero value selects every subject.
type SubjectPattern struct{ value string }

// ParseSubjectPattern returns the pattern that s contains; an empty text is the zero value. It
// returns fault.Invalid for a pattern that is too long, begins with "*", or is not UTF-8 without
// control characters.
func ParseSubjectPattern(s string) (SubjectPattern, error) {
	switch {
	case len(s) > maxSubject:
		return SubjectPattern{}, fault.Newf(fault.Invalid, "subject must have at most %d characters, and has %d",
			maxSubject, len(s))
	case strings.HasPrefix(s, "*"):
		return SubjectPattern{}, fault.New(fault.Invalid,
			"subject must not begin with \"*\": it would select what is not yours")
	case isUnprintable(s):
		return SubjectPattern{}, fault.New(fault.Invalid, "subject must be UTF-8 without control characters")
	}
	return SubjectPattern{s}, nil
}

// isUnprintable reports whether s is not UTF-8, or has a control or format character.
func isUnprintable(s string) bool {
	return !registry.IsText(s) || strings.ContainsFunc(s, registry.IsInvisible)
}

// String returns the pattern as it was given.
func (p SubjectPattern) String() string { return p.value }

// Matches reports whether the pattern selects a subject.
func (p SubjectPattern) Matches(subject string) bool {
	if p.value == "" {
		return true
	}
	pattern := p.value
	if prefix, wild := strings.CutSuffix(pattern, "*"); wild &&
		(strings.HasSuffix(prefix, "/") || strings.HasSuffix(prefix, ":")) {
		return matchesPrefix(prefix, subject)
	}
	return matchesParts(splitParts(pattern), splitParts(subject))
}

// matchesPrefix reports whether a subject begins as prefix says, which ends in a separator, and has
// something after it.
func matchesPrefix(prefix, subject string) bool {
	wanted, parts := splitParts(prefix), splitParts(subject)
	last := len(wanted) - 1 // the empty part after the last separator
	return len(parts) > last && matchesParts(wanted[:last], parts[:last]) && strings.Join(parts[last:], "") != ""
}

// splitParts splits a subject after each "/" and ":". Each part but the last ends with its
// separator.
func splitParts(s string) []string {
	var parts []string
	for {
		i := strings.IndexAny(s, "/:")
		if i < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i+1])
		s = s[i+1:]
	}
}

// matchesParts reports whether each part matches the pattern of the part.
func matchesParts(patterns, parts []string) bool {
	if len(patterns) != len(parts) {
		return false
	}
	for i, pattern := range patterns {
		if !matchesPart(pattern, parts[i]) {
			return false
		}
	}
	return true
}

// matchesPart reports whether a part matches a pattern in which "*" matches any characters.
func matchesPart(pattern, part string) bool {
	pieces := strings.Split(pattern, "*")
	if len(pieces) == 1 {
		return pattern == part
	}
	rest, found := strings.CutPrefix(part, pieces[0])
	if !found {
		return false
	}
	for _, piece := range pieces[1 : len(pieces)-1] {
		_, after, found := strings.Cut(rest, piece)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, pieces[len(pieces)-1])
}
