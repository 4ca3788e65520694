package access

import (
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// Permits reports whether some call of a server could be allowed to a subject from an address, whatever its
// method and tool, and returns the least trust level of the rules that allow them; 0 for any. The
// trust of the subject and its resource do not matter.
func (s *Snapshot) Permits(
	subject *Subject, of toolserver.Name, from netip.Addr, at time.Time,
) (least trustlevel.Level, ok bool) {
	k, known := s.servers.get(of.String())
	if !known || k.Deleted || k.Quarantined || subject.problem != "" {
		return 0, false
	}
	rules := s.applying(subject, k, from, at)
	for c := range samples(rules, k) {
		if s.deniesTools(k) && k.tools.refuses(&c) {
			continue
		}
		level, allows := s.firstOf(rules, &c, k)
		if allows && (!ok || level < least) {
			least, ok = level, true
		}
		if ok && least == 0 {
			break
		}
	}
	return least, ok
}

// applying returns the rules that may decide a call of a server, in their order and up to the first that
// decides all calls.
func (s *Snapshot) applying(subject *Subject, k *knownServer, from netip.Addr, at time.Time) (all []*Rule) {
	for _, i := range slices.Compact(slices.Sorted(s.about(subject, k))) {
		r := &s.rules[i]
		if r.hasExpired(at) || !r.isAbout(subject, k.Name) || len(r.Networks) > 0 && !r.admits(from) {
			continue
		}
		if all = append(all, r); !r.isAboutSomeCalls() {
			break
		}
	}
	return all
}

// fresh is in no name of a rule, so that what ends with it matches only the rules that match all names with
// the same beginning.
const fresh = "\x00"

// samples returns calls of which rules allow one if they allow any call: for each class, and for the tools
// of each rule that allows, and those of approved lists.
func samples(rules []*Rule, k *knownServer) iter.Seq[Call] {
	return func(yield func(Call) bool) {
		for _, class := range Classes() {
			if !yield(Call{Class: class, Name: fresh}) {
				return
			}
		}
		if k.tools != nil {
			for _, t := range k.tools.tools {
				if !yield(Call{Class: CallsTools, Name: t.name}) {
					return
				}
			}
		}
		for _, r := range rules {
			if r.Effect != Allow {
				continue
			}
			for _, tool := range r.Tools {
				if prefix, wild := strings.CutSuffix(tool, "*"); wild {
					tool = prefix + fresh
				}
				if !yield(Call{Class: CallsTools, Name: tool}) {
					return
				}
			}
		}
	}
}

// firstOf returns whether the first of the rules that matches a call allows it, or else the default, and
// the trust level that this requires.
func (s *Snapshot) firstOf(rules []*Rule, c *Call, k *knownServer) (required trustlevel.Level, allows bool) {
	for _, r := range rules {
		if (len(r.Methods) == 0 || slices.Contains(r.Methods, c.Class)) && (len(r.Tools) == 0 || r.namesTool(c.Tool())) &&
			(len(r.Hints) == 0 || r.admitsTool(k.tools.traitsOf(c))) {
			return r.MinTrust, r.Effect == Allow
		}
	}
	return 0, s.options.Default == Allow
}
