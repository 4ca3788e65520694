package registry

import (
	"regexp"
	"strings"
)

// The forms of version ranges (contract R-49). A comparator or a hyphen makes a range only before
// text that begins like a version, so that "~draft" is still a version.
const (
	comparator  = `(?:\^|~|>=|<=|>|<|=)\s*` + versionLike
	versionLike = `[vV]?(?:[0-9]\S*|[xX*](?:\.\S*)?)`
	partOrWild  = `(?:[0-9]+|[xX*])`
)

var (
	comparatorList = regexp.MustCompile(`^` + comparator + `(?:\s+` + comparator + `)*$`)
	hyphenRange    = regexp.MustCompile(`^` + versionLike + `\s+-\s+` + versionLike + `$`)
	dottedParts    = regexp.MustCompile(`^[vV]?` + partOrWild + `(?:\.` + partOrWild + `){1,2}$`)
)

// isRange reports whether s is a range of versions.
func isRange(s string) bool {
	s = strings.TrimSpace(s)
	switch {
	case !strings.ContainsAny(s, "^~<>=|*xX \t\n\v\f\r"): // nearly all versions; stores call it for every row
		return false
	case s == "*", s == "x", s == "X", strings.Contains(s, "||"):
		return true
	case dottedParts.MatchString(s):
		return strings.ContainsAny(s, "xX*")
	}
	return comparatorList.MatchString(s) || hyphenRange.MatchString(s)
}
