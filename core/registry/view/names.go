package view

import (
	"cmp"
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Names returns the ranges of the names of the servers in the view, in order and without common
// names; nil if it has all servers, and an empty list if it cannot have any.
func (v View) Names() []registry.NameRange {
	if len(v.Include) == 0 && len(v.Exclude) == 0 {
		return nil
	}
	included := []registry.NameRange{registry.AllNames()}
	if len(v.Include) > 0 {
		included = union(v.Include)
	}
	rest := subtract(included, union(v.Exclude))
	if slices.Equal(rest, []registry.NameRange{registry.AllNames()}) {
		return nil
	}
	return rest
}

// union returns the names that one of the patterns selects, as ordered ranges without common names.
// The ranges of two patterns have no common names, or one of them is within the other.
func union(patterns []registry.Pattern) []registry.NameRange {
	ranges := make([]registry.NameRange, 0, len(patterns))
	for _, p := range patterns {
		ranges = append(ranges, p.Range())
	}
	slices.SortFunc(ranges, func(a, b registry.NameRange) int {
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
func subtract(all, without []registry.NameRange) []registry.NameRange {
	rest := make([]registry.NameRange, 0, len(all)+len(without))
	for _, r := range all {
		for _, w := range without {
			if w.Below <= r.From || w.From >= r.Below {
				continue
			}
			if w.From > r.From {
				rest = append(rest, registry.NameRange{From: r.From, Below: w.From})
			}
			r.From = w.Below
		}
		if r.From < r.Below {
			rest = append(rest, r)
		}
	}
	return rest
}
