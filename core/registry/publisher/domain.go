package publisher

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Bounds of domain names in characters (RFC 1035, 2.3.4).
const (
	maxDomain = 253
	maxLabel  = 63
)

// Domain is a domain name that a publisher can prove, in lower case. ParseDomain makes one; the
// zero value is not a valid domain.
type Domain struct{ name string }

// ParseDomain returns the domain that s contains: letters, digits and hyphens, at least two labels,
// at most 253 characters, in upper or lower case (contract P-8). An IP address is not a domain.
// github.io and the domains below it are refused, because GitHub gives them to its users, who do
// not own a domain. ParseDomain returns fault.Invalid for anything else.
func ParseDomain(s string) (Domain, error) {
	labels := strings.Split(s, ".") // before ToLower, which makes ASCII letters of a few others
	name := strings.ToLower(s)
	switch {
	case s == "":
		return Domain{}, invalidDomain("must not be empty")
	case len(s) > maxDomain:
		return Domain{}, invalidDomain("must have at most %d characters, and has %d", maxDomain, len(s))
	case len(labels) < 2:
		return Domain{}, invalidDomain("must have a dot, and is %s", quote(s))
	case slices.ContainsFunc(labels, isMalformedLabel):
		return Domain{}, invalidDomain(
			"must consist of labels of letters, digits and inner hyphens, and is %s", quote(s))
	case isNumber(labels[len(labels)-1]):
		return Domain{}, invalidDomain("must not be an IP address, and is %s", quote(s))
	case name == "github.io" || strings.HasSuffix(name, ".github.io"):
		return Domain{}, invalidDomain(
			"must not be github.io or below it: its pages belong to single repositories; use github-oidc")
	}
	return Domain{name}, nil
}

// isMalformedLabel reports whether a label does not have the form of a host name (RFC 1123, 2.1).
func isMalformedLabel(label string) bool {
	return label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
		strings.ContainsFunc(label, func(r rune) bool {
			return !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9') && r != '-'
		})
}

// isNumber reports whether the last label of a name is a decimal or hexadecimal number. Such a name
// is an IPv4 address in one of the forms that resolvers accept, for example 127.1 or 0x7f.1; no
// top-level domain is a number.
func isNumber(label string) bool {
	digits, hexadecimal := strings.CutPrefix(strings.ToLower(label), "0x")
	if hexadecimal {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(digits, "0123456789") == ""
}

func invalidDomain(format string, args ...any) error {
	return fault.Newf(fault.Invalid, "domain "+format, args...)
}

// String returns the domain in lower case.
func (d Domain) String() string { return d.name }

// Namespace returns the domain in reverse order, as names of servers begin with it: com.example for
// example.com.
func (d Domain) Namespace() string {
	labels := strings.Split(d.name, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// Patterns returns the patterns of the names that a proof of the domain by the method proves: by
// DNS those of the domain and of the domains below it, by HTTP those of the domain alone. A
// namespace that is too long for a name yields nothing.
func (d Domain) Patterns(m Method) []registry.Pattern {
	suffixes := []string{"/*"}
	if m == DNS {
		suffixes = append(suffixes, ".*")
	}
	var list []registry.Pattern
	for _, suffix := range suffixes {
		if p, err := registry.ParsePattern(d.Namespace() + suffix); err == nil {
			list = append(list, p)
		}
	}
	return list
}
