package memcached

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Count implements counter.Store. Hits of fixed windows need one command each; admissions decides
// about the others. The package documentation describes what it does not guarantee in the mode
// AllOrNone.
func (c *Client) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	if err := validateHits(hits, results); err != nil || len(hits) == 0 {
		return err
	}
	if err := ctx.Err(); err != nil {
		return storeUnavailable(err)
	}
	b, fixed := batch{hits, results}, counter.AllFixed(hits)
	// fixed windows of one key are counted together
	if m == counter.AllOrNone && len(hits) > 1 && !(fixed && b.hasOneKey()) {
		return c.countAllOrNone(c.deadlines.Bound(ctx), b)
	}
	now := time.Now()
	switch {
	case !fixed:
		return c.countEach(c.deadlines.Bound(ctx), b)
	case len(hits) == 1 && hits[0].Addend > 0:
		return c.countMerged(c.deadlines.Call(ctx, now), b, now)
	default:
		return c.countFixed(c.deadlines.Call(ctx, now), b)
	}
}

// countMerged counts one hit, together with other hits of its key that are in progress.
func (c *Client) countMerged(ctx context.Context, b batch, now time.Time) error {
	result, err := c.merged.Add(ctx, b.hits[0].Key, &b.hits[0], now, func() (counter.Result, error) {
		err := c.countFixed(ctx, b)
		return b.results[0], err
	})
	b.results[0] = result
	return err
}

// countTogether counts the hits of several callers on one key.
func (c *Client) countTogether(ctx context.Context, key string, hits []counter.Hit, results []counter.Result) error {
	return counter.CountTogether(hits, results, func(h counter.Hit) (uint64, error) {
		h.Key = key
		b := newBatch([]counter.Hit{h})
		err := c.countFixed(c.deadlines.Call(ctx, time.Now()), b)
		return b.results[0].Count, err
	})
}

// batch is hits and the room for their results.
type batch struct {
	hits    []counter.Hit
	results []counter.Result
}

func newBatch(hits []counter.Hit) batch { return batch{hits, make([]counter.Result, len(hits))} }

// countSelected calls count for the selected hits, and copies the results to b.
func (b batch) countSelected(selects func(h *counter.Hit) bool, count func(batch) error) error {
	var part batch
	var indices []int
	for i := range b.hits {
		if selects(&b.hits[i]) {
			part.hits, indices = append(part.hits, b.hits[i]), append(indices, i)
		}
	}
	if len(indices) == 0 {
		return nil
	}
	part.results = make([]counter.Result, len(indices))
	if err := count(part); err != nil {
		return err
	}
	for i, at := range indices {
		b.results[at] = part.results[i]
	}
	return nil
}

func (b batch) hasOneKey() bool {
	for i := range b.hits {
		if b.hits[i].Key != b.hits[0].Key {
			return false
		}
	}
	return true
}

func isFixed(h *counter.Hit) bool { return h.Algorithm == ratelimit.FixedWindow }

// countEach decides about each hit by itself.
func (c *Client) countEach(ctx context.Context, b batch) error {
	err := b.countSelected(isFixed, func(part batch) error { return c.countFixed(ctx, part) })
	if err != nil {
		return err
	}
	return b.countSelected(
		func(h *counter.Hit) bool { return !isFixed(h) },
		func(part batch) error { return c.admissions.run(ctx, c, part) })
}

// countAllOrNone looks at all counters first, and gives hits back if a counter was changed
// meanwhile.
func (c *Client) countAllOrNone(ctx context.Context, b batch) error {
	over, err := c.findOver(ctx, b)
	if err != nil {
		return err
	}
	deadline.NextStep(ctx)
	if len(over) > 0 {
		return b.countSelected(
			func(h *counter.Hit) bool { return isFixed(h) && over[h.Key] },
			func(part batch) error { return c.countFixed(ctx, part) })
	}
	if err := c.countEach(ctx, b); err != nil {
		return err
	}
	return c.giveBackIfOver(ctx, b)
}

// findOver looks at all counters without counting, writes what it finds to the results, and returns
// the keys whose hits together would be refused or go over a limit.
func (c *Client) findOver(ctx context.Context, b batch) (map[string]bool, error) {
	err := b.countSelected(isFixed, func(part batch) error { return c.runForEachHit(ctx, part, readCommand) })
	if err != nil {
		return nil, err
	}
	states, err := c.readStates(ctx, b.hits)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i := range b.hits {
		if h := &b.hits[i]; !isFixed(h) {
			b.results[i].Verdict = states[h.Key].look(h, now, 0)
		}
	}
	over := counter.FindOver(b.hits, b.results, func(i int, addend int64) (r counter.Result) {
		if h := &b.hits[i]; isFixed(h) {
			r.Count = counter.AddTo(b.results[i].Count, addend)
		} else {
			r.Verdict = states[h.Key].look(h, now, addend)
		}
		return r
	})
	_, err = c.storeStates(ctx, states, now) // those that are cut
	return over, err
}

// giveBackIfOver gives back the hits that were counted within their limits, if others of the batch
// were refused or went over theirs.
func (c *Client) giveBackIfOver(ctx context.Context, b batch) error {
	over := map[string]bool{}
	for i := range b.hits {
		if b.results[i].IsOver(&b.hits[i]) {
			over[b.hits[i].Key] = true
		}
	}
	if len(over) == 0 {
		return nil
	}
	back := batch{slices.Clone(b.hits), b.results}
	for i := range back.hits {
		h := &back.hits[i]
		counted := isFixed(h) && !over[h.Key] || !isFixed(h) && b.results[i].Verdict.Admitted
		if h.Addend = -h.Addend; h.Addend > 0 || !counted {
			h.Addend = 0
		}
	}
	return back.countSelected(func(h *counter.Hit) bool { return h.Addend < 0 }, func(part batch) error {
		if err := c.undo(ctx, func(ctx context.Context) error { return c.countEach(ctx, part) }); err != nil {
			return err
		}
		latest := map[string]counter.Result{}
		for i := range part.hits {
			latest[part.hits[i].Key] = part.results[i]
		}
		for i := range part.hits {
			part.results[i] = latest[part.hits[i].Key]
		}
		return nil
	})
}

// undo takes back what a call has counted. If ctx ends first, it is done anyway.
func (c *Client) undo(ctx context.Context, subtract func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- subtract(c.deadlines.Bound(context.WithoutCancel(ctx))) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return storeUnavailable(errTimeout)
	}
}

// countFixed counts hits of fixed windows. It limits a counter beyond the maximum count to the
// maximum, far from where memcached would overflow to zero.
func (c *Client) countFixed(ctx context.Context, b batch) error {
	if err := c.runForEachHit(ctx, b, countCommand); err != nil {
		return err
	}
	for i := range b.results {
		count := &b.results[i].Count
		if *count <= math.MaxInt64 {
			continue
		}
		excess := newBatch([]counter.Hit{{Key: b.hits[i].Key, Addend: -int64(*count - math.MaxInt64)}})
		if err := c.runForEachHit(ctx, excess, countCommand); err != nil {
			return err
		}
		*count = math.MaxInt64
	}
	return nil
}
