package decide

import (
	"context"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// recall takes the counters out of the batch that the process remembers as over their limit
// (contract L-24). A remembered counter is counted again if its limit was raised since.
//
// Two kinds of request are counted whole or not at all: one that gives hits back, since a counter
// may no longer be over after that, and, under contract L-10, one of which only some counters are
// remembered, since the store then holds the others back atomically.
func (d *Decider) recall(w *work) {
	if d.ports.OverLimit == nil || w.givesBack() {
		return
	}
	remembered := 0
	for i := range w.targets {
		if t := &w.targets[i]; t.kind == limited {
			t.recalled = d.ports.OverLimit.Over(w.hits[t.hit].Key, t.limit.RequestsPerUnit, w.now)
			if t.recalled {
				remembered++
			}
		}
	}
	switch {
	case remembered == 0:
	case d.config.StopWhenOver && remembered < len(w.hits):
		for i := range w.targets {
			w.targets[i].recalled = false
		}
	default:
		w.dropRecalled()
	}
}

func (w *work) givesBack() bool {
	for i := range w.targets {
		if w.targets[i].back {
			return true
		}
	}
	return false
}

// dropRecalled takes the hits out that the store need not count.
func (w *work) dropRecalled() {
	kept := 0
	for i := range w.targets {
		t := &w.targets[i]
		if t.kind != limited || t.recalled {
			continue
		}
		w.hits[kept] = w.hits[t.hit]
		t.hit = kept
		kept++
	}
	clear(w.hits[kept:])
	w.hits, w.after = w.hits[:kept], w.after[:kept]
}

// remember notes which counters the store has told to be over their limit, until
// their windows end, and forgets those that were given back to.
func (d *Decider) remember(w *work) {
	if d.ports.OverLimit == nil {
		return
	}
	for i := range w.targets {
		t := &w.targets[i]
		if t.kind != limited || t.recalled {
			continue
		}
		switch h := &w.hits[t.hit]; {
		case t.back:
			d.ports.OverLimit.Forget(h.Key)
		case w.after[t.hit] > h.Limit && !w.blocked:
			d.ports.OverLimit.Note(h.Key, t.limit.RequestsPerUnit, t.window.End())
		}
	}
}

// looksAtZero reports whether a descriptor adds no hits to a limit of zero: that is over
// (contract L-4), although no count shows it.
func (w *work) looksAtZero() bool {
	for i := range w.hits {
		if w.hits[i].Limit == 0 && w.hits[i].Addend <= 0 {
			return true
		}
	}
	return false
}

// look does what AddUnlessOver does when a descriptor is over its limit without the store: it
// counts nothing (contract L-10). A hit that would be over gets the count that it would have
// reached, each by itself.
func (w *work) look(ctx context.Context, store counter.Store) error {
	for i := range w.hits {
		w.hits[i].Addend = 0
	}
	if err := store.Add(ctx, w.hits, w.after); err != nil {
		return err
	}
	for i := range w.targets {
		t := &w.targets[i]
		if t.kind != limited || t.recalled || t.back {
			continue
		}
		if would := w.after[t.hit] + t.addend; would > uint64(t.limit.RequestsPerUnit) {
			w.after[t.hit] = would
		}
	}
	return nil
}
