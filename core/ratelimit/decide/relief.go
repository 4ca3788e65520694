package decide

import (
	"context"
	"hash/maphash"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// relief decides hits without the counter store: those of counters that are known to be over their
// limits (contract L-24), and those of rules with leases (contract L-70). Both are optional.
type relief struct {
	overLimit counter.OverLimitCache // nil without one
	leases    *lease.Leases          // nil without any
	// leaseAll is what a rule means that does not say lease.
	leaseAll     bool
	stopWhenOver bool
	seed         maphash.Seed // of the IDs of leases
}

// newRelief returns the relief of a Decider, otherwise nil.
func newRelief(c Config, p Ports) *relief {
	if p.OverLimit == nil && p.Leases == nil {
		return nil
	}
	r := &relief{p.OverLimit, p.Leases, c.Leases, c.StopWhenOver, maphash.MakeSeed()}
	if c.StopWhenOver { // the store must see all counters of a request together
		r.leases = nil
	}
	return r
}

// skipKnownOver marks those lines that the local cache has over their limits. A cached counter is
// counted again if its limit was raised since. Of an algorithm that does not count what it refuses,
// only single hits are skipped: that they do not fit is what is known.
//
// Two kinds of request skip all of their counters or no counter. After a request that gives hits
// back, a counter may no longer be over its limit. And under contract L-10 the store must see all
// counters of a request to add no hits to any.
func (r *relief) skipKnownOver(w *work) {
	if r.overLimit == nil || w.anyGivesBack() {
		return
	}
	counted, known := 0, 0
	for i := range w.lines {
		l := &w.lines[i]
		if l.kind != limited {
			continue
		}
		counted++
		if !l.admits() || l.addend == 1 {
			l.left, l.knownOver = r.overLimit.Over(l.hit.Key, l.limit, w.now)
		}
		if l.knownOver {
			known++
		}
	}
	if r.stopWhenOver && known < counted {
		for i := range w.lines {
			w.lines[i].knownOver = false
		}
	}
}

// anyGivesBack reports whether a descriptor gives hits back.
func (w *work) anyGivesBack() bool {
	for i := range w.lines {
		if w.lines[i].givesBack {
			return true
		}
	}
	return false
}

// noteOver caches the counters that are over their limits until their windows end, and removes
// those that hits were given back to.
func (r *relief) noteOver(w *work) {
	if r.overLimit == nil {
		return
	}
	// Under contract L-10 the store decides about all hits of a counter together: the verdict about
	// a later one does not say that it does not fit alone.
	var earlier map[string]bool
	if r.stopWhenOver && len(w.hits) > 1 && w.anyHitOver() {
		earlier = make(map[string]bool, len(w.hits))
	}
	for i := range w.lines {
		l := &w.lines[i]
		if !l.isCounted() {
			continue
		}
		switch {
		case l.givesBack:
			r.overLimit.Forget(l.hit.Key)
		case w.countNothing || !l.result.IsOver(&l.hit):
		case !l.admits():
			r.overLimit.Note(l.hit.Key, l.limit, l.window.End())
		case l.addend == 1 && !earlier[l.hit.Key]:
			r.overLimit.Note(l.hit.Key, l.limit, w.now.Add(l.result.Verdict.Reset))
		}
		if earlier != nil {
			earlier[l.hit.Key] = true
		}
	}
}

// findLeases finds the leases of the collected hits, and reports whether there are any.
func (r *relief) findLeases(w *work) bool {
	if r.leases == nil {
		return false
	}
	w.leases = w.leases[:0]
	found := false
	for i := range w.lines {
		l := &w.lines[i]
		if !l.isCounted() {
			continue
		}
		id := lease.ID(0)
		if r.mayLease(l) {
			id, found = r.leaseID(w, i), true
		}
		w.leases = append(w.leases, id)
	}
	return found
}

// countLeased counts the collected hits by means of leases.
func (r *relief) countLeased(ctx context.Context, w *work) error {
	err := r.leases.Add(ctx, lease.Batch{Hits: w.hits, IDs: w.leases, Results: w.results, Now: w.now})
	w.storeResults()
	return err
}

// mayLease reports whether the counter of a line may have a lease. That of a limit in the request
// has none.
func (r *relief) mayLease(l *line) bool {
	if l.rule == nil || l.limit.Algorithm != ratelimit.FixedWindow {
		return false
	}
	return l.rule.Lease == ratelimit.LeaseAuto || r.leaseAll && l.rule.Lease == ratelimit.LeaseDefault
}

// leaseID returns the ID of the counter of a line, which is the same in all windows.
func (r *relief) leaseID(w *work, descriptor int) lease.ID {
	l := &w.lines[descriptor]
	h := hashText(uint64(l.limit.Unit), r.seed, string(w.request.Domain))
	for _, e := range w.counterEntries(l.rule, w.request.Descriptors[descriptor].Entries) {
		h = hashText(hashText(h, r.seed, e.Key), r.seed, e.Value)
	}
	return lease.ID(h | 1) // not 0, which is no lease
}

// hashText returns a hash of a text and of what came before it.
func hashText(before uint64, seed maphash.Seed, text string) uint64 {
	return before*0x9E3779B97F4A7C15 ^ maphash.String(seed, text)
}
