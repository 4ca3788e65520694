// Package toolserver has what all of the core knows of tool servers: their names, the patterns that
// select names, and the actions that grants allow over them. What a server is otherwise, package
// registry knows.
package toolserver

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Bounds of names in characters (contract R-40).
const (
	MinName = 3
	MaxName = 200
)

// Name is the name of a server, valid by contract R-40. ParseName makes one; the zero value is not
// a valid name.
type Name struct{ value string }

// ParseName returns the name that s contains. It returns fault.Invalid, with the broken rule, when
// s is not a valid name.
func ParseName(s string) (Name, error) {
	if _, sentence := CheckName(s); sentence != "" {
		return Name{}, fault.New(fault.Invalid, "name "+sentence)
	}
	return Name{s}, nil
}

// String returns the name as it was given.
func (n Name) String() string { return n.value }

// Namespace returns the part of the name before the slash.
func (n Name) Namespace() string {
	namespace, _, _ := strings.Cut(n.value, "/")
	return namespace
}

// Clone returns the name in memory of its own. A record may share the memory of many others.
func (n Name) Clone() Name { return Name{strings.Clone(n.value)} }

// CheckName returns the rule of server names that s breaks (contract R-40) with a sentence about it,
// or empty texts for a name.
func CheckName(s string) (rule, sentence string) {
	switch n, slashes := utf8.RuneCountInString(s), strings.Count(s, "/"); {
	case n < MinName:
		return "minLength", fmt.Sprintf("must have at least %d characters, and has %d", MinName, n)
	case n > MaxName:
		return "maxLength", fmt.Sprintf("must have at most %d characters, and has %d", MaxName, n)
	case slashes != 1:
		return "pattern", fmt.Sprintf("must have exactly one \"/\" between namespace and server name, and has %d", slashes)
	case !IsNamespaced(s):
		return "pattern", "must be a reverse-DNS namespace of letters, digits, \".\" and \"-\", a \"/\", " +
			"and a server name of letters, digits, \".\", \"_\" and \"-\""
	}
	return "", ""
}

// IsNamespaced reports whether s has the form of a server name, ^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$.
// It uses no regular expression, because stores call it for every row.
func IsNamespaced(s string) bool {
	namespace, name, _ := strings.Cut(s, "/")
	return namespace != "" && name != "" &&
		!strings.ContainsFunc(namespace, func(r rune) bool { return r == '_' || notInName(r) }) &&
		!strings.ContainsFunc(name, notInName)
}

// CanBeInName reports whether a name can contain the text s. It checks the characters, the length
// and the number of slashes. The empty text is accepted.
func CanBeInName(s string) bool {
	return len(s) <= MaxName && strings.Count(s, "/") <= 1 && !strings.ContainsFunc(s, notInFullName)
}

// notInName reports whether the part of a name after its slash must not contain r.
func notInName(r rune) bool {
	return !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9') && r != '.' &&
		r != '_' && r != '-'
}

// notInFullName reports whether a name must not contain r.
func notInFullName(r rune) bool { return r != '/' && notInName(r) }

// NameRange selects the names from From, inclusive, to Below, exclusive, in the order of their
// bytes. A range whose Below is not after From selects nothing.
type NameRange struct{ From, Below string }

// The bounds of names. Every character of a name is after afterName and before belowAll.
const (
	afterName = "!" // a name with this text after it is after the name and before all longer ones
	belowAll  = "~"
)

// AllNames returns the range of all names.
func AllNames() NameRange { return NameRange{"", belowAll} }

// Contains reports whether the range selects a name.
func (r NameRange) Contains(name string) bool { return r.From <= name && name < r.Below }

// Range returns the range of the names that the pattern selects. The zero Pattern has an empty one.
func (p Pattern) Range() NameRange {
	prefix, wild := strings.CutSuffix(p.value, "*")
	switch {
	case p.value == "":
		return NameRange{}
	case !wild:
		return NameRange{p.value, p.value + afterName}
	case prefix == "":
		return AllNames()
	}
	last := len(prefix) - 1
	return NameRange{prefix, prefix[:last] + string([]byte{prefix[last] + 1})}
}
