package decide

import (
	"context"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// skipKnownOver takes those counters out of the batch that the local cache has over their limits
// (contract L-24). A cached counter is counted again if its limit was raised since. Of an algorithm that
// does not count what it refuses, only single hits are skipped: that they do not fit is what is known.
//
// Two kinds of request skip all of their counters or none. After a request that gives hits back, a
// counter may no longer be over its limit. And under contract L-10 the store must see all counters
// of a request to add no hits to any.
func (d *Decider) skipKnownOver(w *work) {
	if d.ports.OverLimit == nil || w.anyGivesBack() {
		return
	}
	known := 0
	for i := range w.targets {
		if t := &w.targets[i]; t.kind == limited && (!t.admits || t.addend == 1) {
			t.left, t.knownOver = d.ports.OverLimit.Over(w.hits[t.hit].Key, t.limit, w.now)
			if t.knownOver {
				known++
			}
		}
	}
	switch {
	case known == 0:
	case d.config.StopWhenOver && known < len(w.hits):
		for i := range w.targets {
			w.targets[i].knownOver = false
		}
	default:
		w.dropKnownOver()
	}
}

// anyGivesBack reports whether a descriptor gives hits back.
func (w *work) anyGivesBack() bool {
	for i := range w.targets {
		if w.targets[i].givesBack {
			return true
		}
	}
	return false
}

// dropKnownOver removes the hits that the store need not count.
func (w *work) dropKnownOver() {
	kept := 0
	for i := range w.targets {
		t := &w.targets[i]
		if t.kind != limited || t.knownOver {
			continue
		}
		w.hits[kept] = w.hits[t.hit]
		t.hit = kept
		kept++
	}
	clear(w.hits[kept:])
	w.hits, w.after = w.hits[:kept], w.after[:kept]
}

// updateOverLimitCache caches the counters that are over their limits until their windows end, and
// removes those that hits were given back to.
func (d *Decider) updateOverLimitCache(w *work) {
	if d.ports.OverLimit == nil {
		return
	}
	// Under contract L-10 the store decides about all hits of a counter together: the verdict about a later
	// one does not say that it does not fit alone.
	var earlier map[string]bool
	if d.config.StopWhenOver && len(w.hits) > 1 && w.anyHitOver() {
		earlier = make(map[string]bool, len(w.hits))
	}
	for i := range w.targets {
		t := &w.targets[i]
		if t.kind != limited || t.knownOver {
			continue
		}
		switch h := &w.hits[t.hit]; {
		case t.givesBack:
			d.ports.OverLimit.Forget(h.Key)
		case t.admits:
			if v := &w.admitted[t.hit].Verdict; !v.Admitted && t.addend == 1 && !w.countNothing && !earlier[h.Key] {
				d.ports.OverLimit.Note(h.Key, t.limit, w.now.Add(v.Reset))
			}
		case w.after[t.hit] > h.Limit && !w.countNothing:
			d.ports.OverLimit.Note(h.Key, t.limit, t.window.End())
		}
		if earlier != nil {
			earlier[w.hits[t.hit].Key] = true
		}
	}
}

// checksZeroLimit reports whether a descriptor adds no hits to a limit of zero. That is over the
// limit (contract L-4), although no count shows it.
func (w *work) checksZeroLimit() bool {
	for i := range w.hits {
		if w.hits[i].Limit == 0 && w.hits[i].Addend <= 0 {
			return true
		}
	}
	return false
}

// readCounts replaces AddUnlessOver when a descriptor is over its limit whatever the store returns:
// it counts nothing (contract L-10). A descriptor whose hits would exceed the limit gets the count
// that it would have reached.
func (w *work) readCounts(ctx context.Context, store counter.Store) error {
	for i := range w.hits {
		w.hits[i].Addend = 0
	}
	if err := w.add(ctx, store); err != nil {
		return err
	}
	for i := range w.targets {
		t := &w.targets[i]
		if t.kind != limited || t.knownOver || t.givesBack {
			continue
		}
		if t.admits {
			v := &w.admitted[t.hit].Verdict
			v.Admitted = t.addend <= v.Remaining
			continue
		}
		if reached := w.after[t.hit] + t.addend; reached > uint64(t.limit.RequestsPerUnit) {
			w.after[t.hit] = reached
		}
	}
	return nil
}
