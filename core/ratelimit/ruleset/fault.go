package ruleset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is a mistake in the configuration and its position.
type Fault struct {
	At Position
	// Rule is a sentence in lower case without a full stop that says which rule is broken.
	Rule string
}

// String returns the fault as file:line:column: rule, without the parts that are not known.
func (f Fault) String() string {
	switch {
	case f.At.File == "":
		return f.Rule
	case f.At.Line == 0:
		return f.At.File + ": " + f.Rule
	default:
		return fmt.Sprintf("%s:%d:%d: %s", f.At.File, f.At.Line, f.At.Column, f.Rule)
	}
}

// Faults are all mistakes of a configuration, in the order of files and lines (contract L-34). As
// an error it is never empty.
type Faults []Fault

// Error returns all faults, one on each line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// sortedByPosition sorts the faults by file, line and column, and returns them.
func (f Faults) sortedByPosition() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(
			strings.Compare(a.At.File, b.At.File),
			cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Column, b.At.Column),
		)
	})
	return f
}
