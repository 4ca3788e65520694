package valkey

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Pair counts per-second limits in one store and all other limits in another (KVSTORE_PERSECOND).
// An AddUnlessOver that needs both stores is not atomic: it first reads both, with the effect on
// contract L-10 that contract L-42 describes.
type Pair struct {
	second, other counter.Store
	deadlines     *deadline.Source
}

// NewPair returns a store that sends hits with a window of a second to second, and all others to
// other. All calls for the hits of a request together have the timeout.
func NewPair(second, other counter.Store, timeout time.Duration) *Pair {
	return &Pair{second, other, deadline.NewSource(timeout)}
}

// Add implements counter.Store.
func (p *Pair) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	return p.callBothStores(ctx, batch{hits: hits, after: after}, counter.Store.Add)
}

// AddUnlessOver implements counter.Store.
func (p *Pair) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := checkLength(hits, after); err != nil {
		return err
	}
	b := batch{hits: hits, after: after}
	if p.findCommonStore(hits) != nil {
		return p.callBothStores(ctx, b, counter.Store.AddUnlessOver)
	}
	ctx = p.deadlines.Bound(ctx)
	over, err := readKeysOverLimit(ctx, p, b)
	if err != nil {
		return err
	}
	if len(over) > 0 {
		return addHitsOfKeys(ctx, p, over, b)
	}
	return p.callBothStores(ctx, b, counter.Store.AddUnlessOver)
}

// Ping implements counter.Store. It fails if either store does not answer.
func (p *Pair) Ping(ctx context.Context) error {
	return errors.Join(p.second.Ping(ctx), p.other.Ping(ctx))
}

// callBothStores runs call for each store that has hits, for both at the same time.
func (p *Pair) callBothStores(ctx context.Context, b batch, call func(counter.Store, context.Context, []counter.Hit, []uint64) error) error {
	if err := checkLength(b.hits, b.after); err != nil {
		return err
	}
	if s := p.findCommonStore(b.hits); s != nil {
		return call(s, ctx, b.hits, b.after)
	}
	ctx = p.deadlines.Bound(ctx)
	return callEachGroup(p.groupByStore(b.hits), b, func(s counter.Store, hits []counter.Hit, after []uint64) error {
		return call(s, ctx, hits, after)
	})
}

// groupByStore returns the indices of the hits of each store.
func (p *Pair) groupByStore(hits []counter.Hit) map[counter.Store][]int {
	groups := make(map[counter.Store][]int, 2)
	for i := range hits {
		s := p.other
		if isPerSecond(&hits[i]) {
			s = p.second
		}
		groups[s] = append(groups[s], i)
	}
	return groups
}

// findCommonStore returns the store of all hits, or nil if they need both.
func (p *Pair) findCommonStore(hits []counter.Hit) counter.Store {
	for i := range hits {
		if isPerSecond(&hits[i]) != isPerSecond(&hits[0]) {
			return nil
		}
	}
	if len(hits) > 0 && isPerSecond(&hits[0]) {
		return p.second
	}
	return p.other
}

func isPerSecond(h *counter.Hit) bool { return h.Window == time.Second }
