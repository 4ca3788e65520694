package access

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Usage is what a subject may do with a server.
type Usage struct {
	Server toolserver.Name
	Rules  []Rule // that are about both, in the order in which they are tried
	Rest   Effect // of the calls that none of them decides: Allow or Deny
	// Changed are the tools that are denied whatever the rules say, because they are not as they were approved.
	Changed []string
}

// maxScanned is how many servers Usages looks at.
const maxScanned = 1000

// Usages returns what a subject may do with servers whose names are greater than after, ordered by
// name: at most limit of those that it may use. next is the name after which the following page
// begins; empty on the last one. A page may be empty and have a next one.
func (s *Snapshot) Usages(subject *Subject, at time.Time, after string, limit int) (page []Usage, next string) {
	scanned, last := 0, after
	for name, k := range s.servers.from(after) {
		if name == after {
			continue
		}
		if scanned == maxScanned || len(page) == limit {
			return page, last
		}
		if scanned, last = scanned+1, name; !k.Quarantined && !k.Deleted {
			if u := s.usage(subject, k, at); u.AllowsSome() {
				page = append(page, u)
			}
		}
	}
	return page, ""
}

// usage returns what a subject may do with a server, by the rules up to the first that decides all
// calls.
func (s *Snapshot) usage(subject *Subject, k *knownServer, at time.Time) Usage {
	u := Usage{Server: k.Name, Rest: Deny}
	if s.deniesTools(k) {
		for _, t := range k.tools.tools {
			if t.changed {
				u.Changed = append(u.Changed, t.name)
			}
		}
	}
	for _, i := range slices.Compact(slices.Sorted(s.about(subject, k))) {
		r := &s.rules[i]
		if r.hasExpired(at) || r.isNever() || r.selects(subject, k.Name) == (Selector{}) || !r.covers(k.Name) ||
			subject.client != "" && !r.isOfClient(subject) { // else the person can use the client
			continue
		}
		all := r.isUnconditional()
		if r.Effect == Allow || !all {
			u.Rules = append(u.Rules, *r)
		}
		if all {
			return u
		}
	}
	if s.options.Default == Allow {
		u.Rest = Allow
	}
	return u
}

// AllowsSome reports whether some call may be allowed.
func (u *Usage) AllowsSome() bool {
	return u.Rest == Allow || slices.ContainsFunc(u.Rules, func(r Rule) bool { return r.Effect == Allow })
}

// maxLines is how many rules are in words.
const maxLines = 10

// Lines returns in words what the subject may do, each as a sentence. The first that is about a call
// holds. A long list is shortened.
func (u *Usage) Lines() (lines []string) {
	if len(u.Changed) > 0 {
		lines = append(lines, "May not call the tools "+enumerate(u.Changed, "and")+", which are not as they were approved.")
	}
	for i := range u.Rules {
		r := &u.Rules[i]
		verb := map[Effect]string{Allow: "May ", Deny: "May not "}[r.Effect]
		acts := r.acts()
		if acts == "" {
			acts = "use everything"
		}
		if line := verb + acts + r.conditions() + "."; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		if len(lines) == maxLines {
			return append(lines, "And more, by later rules.")
		}
	}
	switch {
	case u.Rest == Allow && len(u.Rules)+len(u.Changed) == 0:
		lines = append(lines, "May use everything.")
	case u.Rest == Allow:
		lines = append(lines, "May do everything else.")
	}
	return lines
}
