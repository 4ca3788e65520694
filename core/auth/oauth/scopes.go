package oauth

import (
	"regexp"
	"slices"
	"strings"
)

// scopesForm is a list of scopes (RFC 6749, section 3.3).
var scopesForm = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+( [\x21\x23-\x5B\x5D-\x7E]+)*$`)

// maxScopeText is the greatest length of a list of scopes, in bytes.
const maxScopeText = 8192

// ParseScopes returns the scopes of a list, each one once; nil for an empty one. The error has
// CodeInvalidScope.
func ParseScopes(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if len(text) > maxScopeText || !scopesForm.MatchString(text) {
		return nil, Refuse(CodeInvalidScope, "scope must be names with one space between them")
	}
	all := strings.Split(text, " ")
	slices.Sort(all)
	return slices.Compact(all), nil
}

// NarrowScopes returns those of the requested scopes that there are (contract T-12), in the order of
// these; all of them if there is no request. The error has CodeInvalidScope, if some were requested and
// no one is left.
func NarrowScopes(requested, there []string) ([]string, error) {
	if len(requested) == 0 {
		return slices.Clone(there), nil
	}
	left := CommonScopes(there, requested)
	if len(left) == 0 {
		return nil, Refuse(CodeInvalidScope, "the resource has no scope of those that were requested")
	}
	return left, nil
}

// CommonScopes returns those of some scopes that are also among others.
func CommonScopes(some, others []string) (left []string) {
	for _, one := range some {
		if slices.Contains(others, one) {
			left = append(left, one)
		}
	}
	return left
}

// HasScopes reports whether all of the wanted scopes are among others.
func HasScopes(others, wanted []string) bool { return len(CommonScopes(wanted, others)) == len(wanted) }
