package ruleset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one rule of the configuration that is broken, and where.
type Fault struct {
	At Position
	// Rule is a sentence in lower case without a full stop that says which rule
	// is broken.
	Rule string
}

// String returns the fault as file:line:column: rule, leaving out what is not
// known.
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

// Faults is everything that is wrong with a configuration, in the order of files and lines
// (contract L-34). As an error it is never empty.
type Faults []Fault

// Error returns one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

func (f Faults) sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(
			strings.Compare(a.At.File, b.At.File),
			cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Column, b.At.Column),
		)
	})
	return f
}
