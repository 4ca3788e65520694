package valkey

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Pair counts per-second limits in one store and all other limits in another (KVSTORE_PERSECOND).
// A call in the mode AllOrNone that needs both stores is not atomic: it first reads both, with the
// effect on contract L-10 that contract L-42 describes.
type Pair struct {
	second, other counter.Store
	deadlines     *deadline.Source
}

// NewPair returns a store that sends hits with a window of a second to second, and all others to
// other. All calls for the hits of a request together have the timeout.
func NewPair(second, other counter.Store, timeout time.Duration) *Pair {
	return &Pair{second, other, deadline.NewSource(timeout)}
}

// Count implements counter.Store. It calls both stores at the same time.
func (p *Pair) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	b := batch{hits, results}
	if err := b.validate(); err != nil || len(hits) == 0 {
		return err
	}
	var seconds, others []int
	for i := range hits {
		if isPerSecond(&hits[i]) {
			seconds = append(seconds, i)
		} else {
			others = append(others, i)
		}
	}
	if len(seconds) == 0 || len(others) == 0 {
		return p.countInOne(ctx, b, m)
	}
	g := groups{b, [][]int{seconds, others}, 2, p.countInOne}
	ctx = p.deadlines.Bound(ctx)
	if m == counter.AllOrNone {
		return g.countAllOrNone(ctx)
	}
	return g.countEach(ctx, m)
}

// countInOne counts hits of one store.
func (p *Pair) countInOne(ctx context.Context, b batch, m counter.Mode) error {
	if isPerSecond(&b.hits[0]) {
		return p.second.Count(ctx, b.hits, b.results, m)
	}
	return p.other.Count(ctx, b.hits, b.results, m)
}

// Ping implements counter.Store. It fails if either store does not answer.
func (p *Pair) Ping(ctx context.Context) error {
	return errors.Join(p.second.Ping(ctx), p.other.Ping(ctx))
}

func isPerSecond(h *counter.Hit) bool { return h.Window == time.Second }
