package decide

import (
	"context"
	"errors"
	"slices"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// countHits counts in the store, and handles a failure of the store according to FailureMode.
func (d *Decider) countHits(ctx context.Context, w *work) error {
	if d.relief != nil {
		d.relief.skipKnownOver(w)
	}
	if !w.collectHits() {
		return nil
	}
	err := d.countInStore(ctx, w)
	if err == nil {
		if d.relief != nil {
			d.relief.noteOver(w)
		}
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) { // the caller cancelled: the store did not fail
		return err
	}
	return d.handleStoreFailure(ctx, w, err)
}

// countInStore counts in the store that all instances share, by means of leases if there are any.
func (d *Decider) countInStore(ctx context.Context, w *work) error {
	if d.relief != nil && d.relief.findLeases(w) {
		return d.relief.countLeased(ctx, w)
	}
	return d.countIn(ctx, d.ports.Counters, w)
}

// collectHits collects the hits that a store counts, with room for their results. It returns false
// if there are none.
func (w *work) collectHits() bool {
	w.hits = w.hits[:0]
	for i := range w.lines {
		if w.lines[i].isCounted() {
			w.hits = append(w.hits, w.lines[i].hit)
		}
	}
	w.results = slices.Grow(w.results[:0], len(w.hits))[:len(w.hits)]
	return len(w.hits) > 0
}

// countIn counts the hits in a store, in the way that StopWhenOver requires.
func (d *Decider) countIn(ctx context.Context, store counter.Store, w *work) error {
	mode := counter.Each
	if d.config.StopWhenOver {
		mode = counter.AllOrNone
		// A descriptor that adds no hits to a limit of zero is over it, whatever the store returns.
		if w.countNothing = w.checksZeroLimit(); w.countNothing {
			return w.readCounts(ctx, store)
		}
	}
	if err := store.Count(ctx, w.hits, w.results, mode); err != nil {
		return err
	}
	w.storeResults()
	return nil
}

// storeResults stores the results of the hits in their lines.
func (w *work) storeResults() {
	next := 0
	for i := range w.lines {
		if w.lines[i].isCounted() {
			w.lines[i].result = w.results[next]
			next++
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

// readCounts counts nothing (contract L-10), because a descriptor is over its limit whatever the
// store returns. A descriptor whose hits would exceed the limit gets the count that it would have
// reached.
func (w *work) readCounts(ctx context.Context, store counter.Store) error {
	for i := range w.hits {
		w.hits[i].Addend = 0
	}
	if err := store.Count(ctx, w.hits, w.results, counter.Each); err != nil {
		return err
	}
	w.storeResults()
	for i := range w.lines {
		l := &w.lines[i]
		if !l.isCounted() || l.givesBack {
			continue
		}
		if l.admits() {
			l.result.Verdict.Admitted = l.addend <= l.result.Verdict.Remaining
		} else if reached := l.result.Count + l.addend; reached > l.hit.Limit {
			l.result.Count = reached
		}
	}
	return nil
}
