package valkey

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Pair counts per-second limits in one store and all other limits in another (KVSTORE_PERSECOND).
// An AddUnlessOver that needs both stores is not atomic: it first reads both, with the effect on
// contract L-10 that contract L-42 describes.
type Pair struct {
	second, other counter.Store
}

// NewPair returns a store that sends hits with a window of a second to second, and all others to
// other.
func NewPair(second, other counter.Store) *Pair { return &Pair{second, other} }

// Add implements counter.Store.
func (p *Pair) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	return p.callBothStores(hits, after, func(s counter.Store, hits []counter.Hit, after []uint64) error {
		return s.Add(ctx, hits, after)
	})
}

// AddUnlessOver implements counter.Store.
func (p *Pair) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	unlessOver := func(s counter.Store, hits []counter.Hit, after []uint64) error {
		return s.AddUnlessOver(ctx, hits, after)
	}
	if err := checkLength(hits, after); err != nil {
		return err
	}
	if p.findCommonStore(hits) != nil {
		return p.callBothStores(hits, after, unlessOver)
	}
	over, err := readKeysOverLimit(ctx, p, batch{hits: hits, after: after})
	if err != nil {
		return err
	}
	if len(over) > 0 {
		return addHitsOfKeys(ctx, p, over, batch{hits: hits, after: after})
	}
	return p.callBothStores(hits, after, unlessOver)
}

// Ping implements counter.Store. It fails if either store does not answer.
func (p *Pair) Ping(ctx context.Context) error {
	return errors.Join(p.second.Ping(ctx), p.other.Ping(ctx))
}

// callBothStores runs call for each store that has hits.
func (p *Pair) callBothStores(hits []counter.Hit, after []uint64, call func(counter.Store, []counter.Hit, []uint64) error) error {
	if err := checkLength(hits, after); err != nil {
		return err
	}
	if s := p.findCommonStore(hits); s != nil {
		return call(s, hits, after)
	}
	var second, other []int
	for i := range hits {
		if isPerSecond(&hits[i]) {
			second = append(second, i)
		} else {
			other = append(other, i)
		}
	}
	// One after the other: few requests have limits of both kinds, and a goroutine for each would
	// cost more than it saves.
	if err := callStore(p.second, second, batch{hits: hits, after: after}, call); err != nil {
		return err
	}
	return callStore(p.other, other, batch{hits: hits, after: after}, call)
}

func callStore(s counter.Store, indices []int, b batch, call func(counter.Store, []counter.Hit, []uint64) error) error {
	counts := make([]uint64, len(indices))
	if err := call(s, selectHits(b.hits, indices), counts); err != nil {
		return err
	}
	for i, at := range indices {
		b.after[at] = counts[i]
	}
	return nil
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
