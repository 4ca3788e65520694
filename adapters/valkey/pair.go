package valkey

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Pair counts per-second limits in one store and all others in another (KVSTORE_PERSECOND). An
// AddUnlessOver that needs both cannot be atomic over the two: it reads both first, with the
// consequence for contract L-10 that contract L-42 states.
type Pair struct {
	second, other counter.Store
}

// NewPair returns a store that parts hits by their window.
func NewPair(second, other counter.Store) *Pair { return &Pair{second, other} }

// Add implements ports/counter.
func (p *Pair) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	return p.part(hits, after, func(s counter.Store, hits []counter.Hit, after []uint64) error {
		return s.Add(ctx, hits, after)
	})
}

// AddUnlessOver implements ports/counter.
func (p *Pair) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	unlessOver := func(s counter.Store, hits []counter.Hit, after []uint64) error {
		return s.AddUnlessOver(ctx, hits, after)
	}
	if err := checkLength(hits, after); err != nil {
		return err
	}
	if p.storeOfAll(hits) != nil {
		return p.part(hits, after, unlessOver)
	}
	over, err := lookAhead(ctx, p, batch{hits: hits, after: after})
	if err != nil {
		return err
	}
	if len(over) > 0 {
		return addOnly(ctx, p, over, batch{hits: hits, after: after})
	}
	return p.part(hits, after, unlessOver)
}

// Ping implements ports/counter: both stores answer.
func (p *Pair) Ping(ctx context.Context) error {
	return errors.Join(p.second.Ping(ctx), p.other.Ping(ctx))
}

// part calls each store with its hits.
func (p *Pair) part(hits []counter.Hit, after []uint64, call func(counter.Store, []counter.Hit, []uint64) error) error {
	if err := checkLength(hits, after); err != nil {
		return err
	}
	if s := p.storeOfAll(hits); s != nil {
		return call(s, hits, after)
	}
	var second, other []int
	for i := range hits {
		if perSecond(&hits[i]) {
			second = append(second, i)
		} else {
			other = append(other, i)
		}
	}
	// The two at once would save a round trip for the few requests that have limits of both kinds, and cost each a goroutine.
	if err := callPart(p.second, second, batch{hits: hits, after: after}, call); err != nil {
		return err
	}
	return callPart(p.other, other, batch{hits: hits, after: after}, call)
}

func callPart(s counter.Store, indices []int, b batch, call func(counter.Store, []counter.Hit, []uint64) error) error {
	counts := make([]uint64, len(indices))
	if err := call(s, pick(b.hits, indices), counts); err != nil {
		return err
	}
	for i, at := range indices {
		b.after[at] = counts[i]
	}
	return nil
}

// storeOfAll returns the store that all hits belong to, nil when there are two.
func (p *Pair) storeOfAll(hits []counter.Hit) counter.Store {
	for i := range hits {
		if perSecond(&hits[i]) != perSecond(&hits[0]) {
			return nil
		}
	}
	if len(hits) > 0 && perSecond(&hits[0]) {
		return p.second
	}
	return p.other
}

func perSecond(h *counter.Hit) bool { return h.Window == time.Second }
