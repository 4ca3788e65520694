package registry

import (
	"cmp"
	"slices"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// MaxPatterns is the greatest number of patterns that include servers, and of those that exclude
// servers (contract C-30).
const MaxPatterns = 100

// Selection is which servers a view has, or a mirror takes: exclusion wins, and without patterns that
// include servers, all are included. ParseSelection makes one.
type Selection struct{ Include, Exclude []Pattern }

// ParseSelection returns the selection by patterns. It returns fault.Invalid with the name of the
// field, include or exclude, if one is wrong.
func ParseSelection(include, exclude []string) (s Selection, err error) {
	if s.Include, err = parsePatterns("include", include); err != nil {
		return Selection{}, fault.In("include", err)
	}
	if s.Exclude, err = parsePatterns("exclude", exclude); err != nil {
		return Selection{}, fault.In("exclude", err)
	}
	return s, nil
}

// parsePatterns returns the patterns of a field, each once.
func parsePatterns(field string, texts []string) (patterns []Pattern, err error) {
	for _, s := range texts {
		p, err := ParsePattern(s)
		if err != nil {
			f, _ := fault.As(err)
			return nil, fault.Newf(fault.Invalid, "%s: %s", field, f.Message)
		}
		if !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
		}
	}
	if len(patterns) > MaxPatterns {
		return nil, fault.Newf(fault.Invalid, "%s must have at most %d patterns, and has %d", field, MaxPatterns,
			len(patterns))
	}
	return patterns, nil
}

// Equal reports whether two selections have the same patterns.
func (s Selection) Equal(t Selection) bool {
	return slices.Equal(s.Include, t.Include) && slices.Equal(s.Exclude, t.Exclude)
}

// Includes reports whether a server is selected: exclusion wins, and without patterns that
// include servers, all are (contract C-31).
func (s Selection) Includes(name Name) bool {
	matches := func(p Pattern) bool { return p.Matches(name) }
	return !slices.ContainsFunc(s.Exclude, matches) && (len(s.Include) == 0 || slices.ContainsFunc(s.Include, matches))
}

// Names returns the ranges of the names of the selected servers, in order and without common
// names; nil if it has all servers, and an empty list if it cannot have any.
func (s Selection) Names() []NameRange {
	if len(s.Include) == 0 && len(s.Exclude) == 0 {
		return nil
	}
	included := []NameRange{AllNames()}
	if len(s.Include) > 0 {
		included = union(s.Include)
	}
	rest := subtract(included, union(s.Exclude))
	if slices.Equal(rest, []NameRange{AllNames()}) {
		return nil
	}
	return rest
}

// union returns the names that one of the patterns selects, as ordered ranges without common names.
// The ranges of two patterns have no common names, or one of them is within the other.
func union(patterns []Pattern) []NameRange {
	ranges := each.Map(patterns, Pattern.Range)
	slices.SortFunc(ranges, func(a, b NameRange) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.Below, a.Below))
	})
	outer := ranges[:0]
	for _, r := range ranges {
		if len(outer) == 0 || r.From >= outer[len(outer)-1].Below {
			outer = append(outer, r)
		}
	}
	return outer
}

// subtract returns the names of all that are not in without. Both are ordered, without common
// names.
func subtract(all, without []NameRange) []NameRange {
	rest := make([]NameRange, 0, len(all)+len(without))
	for _, r := range all {
		for _, w := range without {
			if w.Below <= r.From || w.From >= r.Below {
				continue
			}
			if w.From > r.From {
				rest = append(rest, NameRange{From: r.From, Below: w.From})
			}
			r.From = w.Below
		}
		if r.From < r.Below {
			rest = append(rest, r)
		}
	}
	return rest
}
