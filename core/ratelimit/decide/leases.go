package decide

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// addWithLeases counts the hits of the call in the store, those of rules with leases by means of their
// leases (contract L-70). Under contract L-10 there are no leases: there the store must see all counters
// of a request together.
func (d *Decider) addWithLeases(ctx context.Context, w *work) error {
	if d.ports.Leases == nil || d.config.StopWhenOver || !d.findLeases(w) {
		return d.addToStore(ctx, d.ports.Counters, w)
	}
	b := lease.Batch{Hits: w.hits, IDs: w.leases, After: w.after, Now: w.now}
	if !w.admits {
		return d.ports.Leases.Add(ctx, b)
	}
	return d.addMixed(ctx, w, b)
}

// addMixed counts hits of which some are of other algorithms, which have no leases: the store decides
// about all hits without a lease, while those with leases are counted.
func (d *Decider) addMixed(ctx context.Context, w *work, all lease.Batch) error {
	var leased lease.Batch
	var others []counter.Hit
	var places []int // in w, first those of the others
	for i, id := range all.IDs {
		if id == 0 {
			others, places = append(others, all.Hits[i]), append(places, i)
		}
	}
	for i, id := range all.IDs {
		if id != 0 {
			leased.Hits, leased.IDs, places = append(leased.Hits, all.Hits[i]), append(leased.IDs, id), append(places, i)
		}
	}
	leased.Now, leased.After = all.Now, make([]uint64, len(leased.Hits))
	results := make([]counter.Admitted, len(others), len(places))
	ctx = d.ports.Leases.Bound(ctx)
	var admitting sync.WaitGroup
	var refused error // of Admit
	admitting.Go(func() { refused = d.ports.Counters.Admit(ctx, others, results) })
	err := d.ports.Leases.Add(ctx, leased)
	admitting.Wait()
	if refused != nil {
		return refused
	}
	if err != nil {
		return err
	}
	for _, n := range leased.After {
		results = append(results, counter.Admitted{Count: n})
	}
	return w.admit(ctx, func(_ context.Context, _ []counter.Hit, admitted []counter.Admitted) error {
		for i, place := range places {
			admitted[place] = results[i]
		}
		return nil
	})
}

// findLeases sets the IDs of the hits whose counters may have a lease, and reports whether there are any.
func (d *Decider) findLeases(w *work) bool {
	found := false
	for i := range w.targets {
		t := &w.targets[i]
		if t.kind != limited || t.knownOver {
			continue
		}
		id := lease.ID(0)
		if d.mayLease(t) {
			id, found = d.leaseID(w, i), true
		}
		w.leases = append(w.leases, id)
	}
	return found
}

// mayLease reports whether the counter of a target may have a lease. That of a limit in the request has
// none.
func (d *Decider) mayLease(t *target) bool {
	if t.rule == nil || t.limit.Algorithm != ratelimit.FixedWindow {
		return false
	}
	return t.rule.Lease == ratelimit.LeaseAuto || d.config.Leases && t.rule.Lease == ratelimit.LeaseDefault
}

// leaseID returns the ID of the counter of a target, which is the same in all windows.
func (d *Decider) leaseID(w *work, descriptor int) lease.ID {
	t := &w.targets[descriptor]
	h := hashText(uint64(t.limit.Unit), d.seed, string(w.request.Domain))
	for _, e := range w.counterEntries(t.rule, w.request.Descriptors[descriptor].Entries) {
		h = hashText(hashText(h, d.seed, e.Key), d.seed, e.Value)
	}
	return lease.ID(h | 1) // not 0, which is no lease
}

// hashText returns a hash of a text and of what came before it.
func hashText(before uint64, seed maphash.Seed, text string) uint64 {
	return before*0x9E3779B97F4A7C15 ^ maphash.String(seed, text)
}
