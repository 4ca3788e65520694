package access

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Filter selects rules for people who look at them. The zero value selects all.
type Filter struct {
	Server  toolserver.Name // only rules that cover it; the zero value for all servers
	Subject *Subject        // only rules that can select it; nil for all subjects
}

// Select returns the rules of a filter in the order in which they are tried, from an offset on and at
// most limit of them, and how many there are.
func (s *Snapshot) Select(f Filter, offset, limit int) (page []Rule, total int) {
	for i := range s.rules {
		if r := &s.rules[i]; f.selects(r) {
			if total >= offset && len(page) < limit {
				page = append(page, *r)
			}
			total++
		}
	}
	return page, total
}

func (f *Filter) selects(r *Rule) bool {
	given := f.Server != toolserver.Name{}
	if given && !r.covers(f.Server) {
		return false
	}
	return f.Subject == nil || slices.ContainsFunc(r.Subjects, func(one Selector) bool {
		if one.Kind == SelectGrant && !given {
			return f.Subject.hasGrantWithin(one, r.Servers)
		}
		return f.Subject.matches(one, f.Server)
	})
}

// hasGrantWithin reports whether the subject has a grant of a selector for a server of the patterns.
func (s *Subject) hasGrantWithin(one Selector, servers []toolserver.Pattern) bool {
	return slices.ContainsFunc(s.member.Grants, func(g Grant) bool {
		return string(g.Action) == one.Value && slices.ContainsFunc(servers, g.Pattern.Overlaps)
	})
}

// Options returns how calls are decided where no rule decides.
func (s *Snapshot) Options() Options { return s.options }

// HasEnded reports whether the rule has ended at a time.
func (r *Rule) HasEnded(at time.Time) bool { return r.hasExpired(at) }

// LocksOut reports whether a change of the rule with a name allows no call with a token any
// more, although some call is allowed before. next is the rule after the change; nil if it is
// removed.
func (s *Snapshot) LocksOut(name RuleName, next *Rule, at time.Time) bool {
	return s.allowsSome("", nil, at) && !s.allowsSome(name, next, at)
}

// allowsSome reports whether some call with a token is allowed, with a rule in place of the one with
// a name. It may report true although other conditions of rules cannot hold.
func (s *Snapshot) allowsSome(without RuleName, with *Rule, at time.Time) bool {
	try := func(r *Rule) (decided, allows bool) {
		if s.passes(r) || r.hasExpired(at) || r.isNever() {
			return false, false
		}
		return r.Effect == Allow || r.deniesAll(), r.Effect == Allow
	}
	for i := range s.rules {
		r := &s.rules[i]
		if r.Name == without {
			continue
		}
		if with != nil && precedes(with, r) < 0 {
			if decided, allows := try(with); decided {
				return allows
			}
			with = nil
		}
		if decided, allows := try(r); decided {
			return allows
		}
	}
	if with != nil {
		if decided, allows := try(with); decided {
			return allows
		}
	}
	return s.options.Default == Allow
}

// deniesAll reports whether the rule denies all calls with a token.
func (r *Rule) deniesAll() bool {
	return r.Effect == Deny && r.isUnconditional() &&
		slices.ContainsFunc(r.Servers, toolserver.Pattern.IsEverything) &&
		slices.ContainsFunc(r.Subjects, func(one Selector) bool {
			return one.Kind == SelectEveryone || one.Kind == SelectAnyone
		})
}

// isUnconditional reports whether the rule matches all calls of its subjects and servers.
func (r *Rule) isUnconditional() bool {
	return !r.isAboutSomeCalls() && len(r.Networks)+len(r.Clients) == 0
}

// isAboutSomeCalls reports whether the rule matches only some methods or tools.
func (r *Rule) isAboutSomeCalls() bool { return len(r.Methods)+len(r.Tools)+len(r.Hints) > 0 }
