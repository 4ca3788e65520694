package valkey

import (
	"context"
	"slices"
	"sync"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Admit implements counter.Admitter.
func (p *Pair) Admit(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	return p.admitInBoth(ctx, admission{hits, results}, func(ctx context.Context, s counter.Store, a admission) error {
		return s.Admit(ctx, a.hits, a.results)
	})
}

// AdmitAll implements counter.Admitter. With hits of both stores, each decides about its own; if only one
// refuses, what the other has counted is given back.
func (p *Pair) AdmitAll(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	var mutex sync.Mutex
	refused := map[counter.Store]bool{}
	if p.findCommonStore(hits) == nil {
		ctx = p.deadlines.Bound(ctx)
	}
	all := admission{hits, results}
	err := p.admitInBoth(ctx, all, func(ctx context.Context, s counter.Store, a admission) error {
		err := s.AdmitAll(ctx, a.hits, a.results)
		mutex.Lock()
		defer mutex.Unlock()
		refused[s] = err == nil && a.isRefused()
		return err
	})
	if err != nil || len(refused) < 2 || refused[p.second] == refused[p.other] {
		return err
	}
	deadline.NextStep(ctx)
	s := p.second
	if refused[s] {
		s = p.other
	}
	return giveBack(ctx, s, all, p.groupByStore(hits)[s])
}

// giveBack gives hits back that a store has admitted. If ctx ends first, it is done anyway.
func giveBack(ctx context.Context, s counter.Store, of admission, indices []int) error {
	part := admission{slices.Clone(selectHits(of.hits, indices)), make([]counter.Admitted, len(indices))}
	for i := range part.hits {
		part.hits[i].Addend = -part.hits[i].Addend
	}
	done := make(chan error, 1)
	go func() { done <- s.Admit(context.WithoutCancel(ctx), part.hits, part.results) }()
	select {
	case err := <-done:
		for i, at := range indices {
			of.results[at] = part.results[i]
		}
		return err
	case <-ctx.Done():
		return storeUnavailable(ctx.Err())
	}
}

// isRefused reports whether a hit was refused, or took its fixed window over its limit.
func (a admission) isRefused() bool {
	for i := range a.hits {
		h, r := &a.hits[i], &a.results[i]
		if h.Algorithm == ratelimit.FixedWindow && r.Count > h.Limit || h.Algorithm != ratelimit.FixedWindow && !r.Verdict.Admitted {
			return true
		}
	}
	return false
}

// admitInBoth runs call for each store that has hits, for both at the same time.
func (p *Pair) admitInBoth(ctx context.Context, a admission, call func(context.Context, counter.Store, admission) error) error {
	if len(a.hits) != len(a.results) {
		return fault.Newf(fault.Internal, "got %d hits but room for %d results", len(a.hits), len(a.results))
	}
	if s := p.findCommonStore(a.hits); s != nil {
		return call(ctx, s, a)
	}
	ctx = p.deadlines.Bound(ctx)
	return inParallel(p.groupByStore(a.hits), func(s counter.Store, indices []int) error {
		part := admission{selectHits(a.hits, indices), make([]counter.Admitted, len(indices))}
		err := call(ctx, s, part)
		for i, at := range indices {
			a.results[at] = part.results[i]
		}
		return err
	})
}
