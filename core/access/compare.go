package access

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// Change says what other rules would do to a call that was decided before.
type Change struct {
	Same      bool // both do the same
	Uncertain bool // it depends on groups or grants of the caller, or on its tool, which are not known
	Old, New  Verdict
}

// Verdict is what a set of rules does to a call. Rule is empty for the default.
type Verdict struct {
	Effect Effect
	Rule   RuleName
}

// Compare returns how two sets of rules differ about a call of a server that is listed. Unless the
// caller is Member.Whole, groups and grants that it does not have are not known, and the tools of the server never
// are: a rule that selects by them may match or not, the same in both.
func Compare(before, after *Snapshot, q *Question, of *Listing) Change {
	old, changed := before.outcomes(q, of), after.outcomes(q, of)
	if slices.EqualFunc(old, changed, outcome.equals) {
		return Change{Same: true}
	}
	c := Change{Old: old[len(old)-1].Verdict, New: changed[len(changed)-1].Verdict}
	effects := func(all []outcome) (e []Effect) {
		for _, one := range all {
			e = append(e, one.Effect)
		}
		slices.Sort(e)
		return slices.Compact(e)
	}
	a, b := effects(old), effects(changed)
	if len(a) > 1 || len(b) > 1 {
		c.Uncertain = true
		return c
	}
	c.Same = a[0] == b[0]
	return c
}

// outcome is what a rule does to a call if it is reached.
type outcome struct {
	Verdict

	needs string // the selectors and hints that must match, which are not known; empty if it matches
}

func (o outcome) equals(p outcome) bool { return o.Effect == p.Effect && o.needs == p.needs }

// outcomes returns what the rules that may match a call do, up to the first that does, or the default.
func (s *Snapshot) outcomes(q *Question, of *Listing) (all []outcome) {
	if q.Subject.Trust() == trustlevel.HighRisk {
		return []outcome{{Verdict: Verdict{Effect: Challenge}}}
	}
	for i := range s.rules {
		r := &s.rules[i]
		open := *r // to all subjects
		open.Subjects, open.Hints = []Selector{{Kind: SelectAnyone}}, nil
		if s.passes(r) || len(r.Hints) > 0 && q.Call.Tool() == "" || open.failed(q, of.Name, noTool) != "" {
			continue
		}
		effect, _, _ := r.apply(q.Subject)
		one := outcome{Verdict: Verdict{effect, r.Name}}
		for _, h := range slices.Sorted(slices.Values(r.Hints)) { // by lists that are not known
			one.needs += string(h) + "\n"
		}
		if r.selects(q.Subject, of.Name) == (Selector{}) {
			unknown := q.Subject.unknownIn(r.Subjects)
			if unknown == "" {
				continue
			}
			one.needs += unknown
		}
		if all = append(all, one); one.needs == "" {
			return all
		}
	}
	effect := cmp.Or(s.options.Default, Deny)
	if effect == Deny && q.Subject.Kind() == Anonymous {
		effect = Challenge
	}
	return append(all, outcome{Verdict: Verdict{Effect: effect}})
}

// unknownIn returns the selectors that match the subject if it has a group or a grant.
func (s *Subject) unknownIn(selectors []Selector) string {
	var found []string
	if s.member.Whole {
		return ""
	}
	for _, one := range selectors {
		if one.Kind == SelectGroup && (s.Kind() == Person || s.Kind() == Foreign) ||
			one.Kind == SelectGrant && (s.Kind() == Person || s.Kind() == Service) {
			found = append(found, one.String())
		}
	}
	slices.Sort(found)
	return strings.Join(found, "\n")
}
