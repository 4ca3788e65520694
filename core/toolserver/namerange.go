package toolserver

import "strings"

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
