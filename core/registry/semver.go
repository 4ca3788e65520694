package registry

import (
	"cmp"
	"strings"
)

// semver is a version by SemVer 2.0.0, split for comparison. Numbers stay text, because they may
// have any size. Build metadata is not part of the order.
type semver struct {
	core       [3]string
	prerelease []string
}

// parseSemver splits a semantic version, with or without a lower-case "v" before it
// (contract R-21). It returns false for any other text.
func parseSemver(s string) (semver, bool) {
	s = strings.TrimPrefix(s, "v")
	s, build, hasBuild := strings.Cut(s, "+")
	if hasBuild && !allIdentifiers(strings.Split(build, "."), true) {
		return semver{}, false
	}
	s, pre, hasPre := strings.Cut(s, "-")
	var v semver
	if hasPre {
		v.prerelease = strings.Split(pre, ".")
		if !allIdentifiers(v.prerelease, false) {
			return semver{}, false
		}
	}
	parts := strings.Split(s, ".")
	if len(parts) != len(v.core) {
		return semver{}, false
	}
	for i, part := range parts {
		if !isNumber(part) || leadsWithZero(part) {
			return semver{}, false
		}
		v.core[i] = part
	}
	return v, true
}

// compare returns the order by precedence (SemVer 2.0.0, clause 11): negative, zero or positive.
func (v semver) compare(w semver) int {
	for i := range v.core {
		if c := compareNumbers(v.core[i], w.core[i]); c != 0 {
			return c
		}
	}
	switch {
	case len(v.prerelease) == 0 || len(w.prerelease) == 0:
		return cmp.Compare(len(w.prerelease), len(v.prerelease)) // without one ranks higher
	default:
		return comparePrereleases(v.prerelease, w.prerelease)
	}
}

func comparePrereleases(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if c := compareIdentifiers(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareIdentifiers(a, b string) int {
	switch x, y := isNumber(a), isNumber(b); {
	case x && y:
		return compareNumbers(a, b)
	case x:
		return -1
	case y:
		return 1
	}
	return strings.Compare(a, b)
}

// compareNumbers compares decimal numbers without leading zeros.
func compareNumbers(a, b string) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// allIdentifiers reports whether all dotted parts of a pre-release or of build metadata are valid;
// in build metadata, numbers may have leading zeros (clauses 9 and 10).
func allIdentifiers(parts []string, zeros bool) bool {
	for _, part := range parts {
		if part == "" || strings.ContainsFunc(part, notIdentifier) {
			return false
		}
		if !zeros && isNumber(part) && leadsWithZero(part) {
			return false
		}
	}
	return true
}

func notIdentifier(r rune) bool {
	return r != '-' && !isDigit(r) && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z')
}

func isNumber(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !isDigit(r) })
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func leadsWithZero(s string) bool { return len(s) > 1 && s[0] == '0' }
