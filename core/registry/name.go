package registry

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// MaxVersion is the greatest length of a version in characters (contract R-40).
const MaxVersion = 255

// LatestAlias is the text that readers use in place of a version for the latest one
// (contract R-19). No version has this name (contract R-49).
const LatestAlias = "latest"

// Version is the version string of a server, valid by contract. ParseVersion makes
// one; the zero value is not a valid version.
type Version struct{ value string }

// ParseVersion returns the version that s contains. It returns fault.Invalid, with the broken rule,
// when s is not a valid version.
func ParseVersion(s string) (Version, error) {
	if p := versionProblem(s); p != nil {
		return Version{}, fault.New(fault.Invalid, "version "+p.sentence)
	}
	return Version{s}, nil
}

// String returns the version as it was given.
func (v Version) String() string { return v.value }

// Clone returns the version in memory of its own, like Name.Clone.
func (v Version) Clone() Version { return Version{strings.Clone(v.value)} }

// nameProblem is the rule of server names (contract R-40).
func nameProblem(s string) *problem {
	if rule, sentence := toolserver.CheckName(s); rule != "" {
		return schemaProblem(rule, "%s", sentence)
	}
	return nil
}

// versionProblem is the rule of versions (contract ).
func versionProblem(s string) *problem {
	if p := lengthRule(MaxVersion)(s); p != nil {
		return p
	}
	return specificProblem(s)
}

// specificProblem returns a problem when s is not one specific version.
func specificProblem(s string) *problem {
	switch {
	case s == LatestAlias:
		return semanticProblem("specific", "must be a specific version, not \"latest\"")
	case isRange(s):
		return semanticProblem("range", "must be a specific version, not the range %s", quote(s))
	case strings.ContainsRune(s, 0):
		return schemaProblem("pattern", "must not contain a NUL")
	}
	return nil
}

// plainProblem is the rule for strings that identify something: it refuses invisible characters, so
// that no two different strings look the same. It applies to documents that are published now;
// ParseVersion accepts versions that were stored before this rule.
func plainProblem(s string) *problem {
	if i := strings.IndexFunc(s, IsInvisible); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return schemaProblem("plain", "must not have control or format characters, and has %U", r)
	}
	if s != strings.TrimSpace(s) {
		return schemaProblem("plain", "must not begin or end with white space")
	}
	return nil
}

// IsInvisible reports whether a character is one of the Unicode categories Cc (C0 and C1 controls)
// and Cf (format characters, for example zero-width ones).
func IsInvisible(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }

// lengthRule returns a rule for the number of characters of a string that must not be empty; most 0
// means no upper bound.
func lengthRule(most int) func(string) *problem {
	return func(s string) *problem {
		n := utf8.RuneCountInString(s)
		switch {
		case n == 0:
			return schemaProblem("minLength", "must not be empty")
		case most > 0 && n > most:
			return schemaProblem("maxLength", "must have at most %d characters, and has %d", most, n)
		}
		return nil
	}
}

// Clip shortens an unchecked name or version for logs and reports: to MaxVersion characters and an
// ellipsis.
func Clip(s string) string {
	if runes := []rune(s); len(runes) > MaxVersion {
		return string(runes[:MaxVersion]) + "…"
	}
	return s
}

// ClipBytes returns the beginning of a text that has at most so many bytes.
func ClipBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
