package valkey

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Admit implements counter.Admitter.
func (p *Pair) Admit(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	return p.admitInBoth(hits, results, func(s counter.Store, a admission) error { return s.Admit(ctx, a.hits, a.results) })
}

// AdmitAll implements counter.Admitter. With hits of both stores, each decides about its own; if only one
// refuses, what the other has counted is given back.
func (p *Pair) AdmitAll(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	var refused, admitted []share
	err := p.admitInBoth(hits, results, func(s counter.Store, a admission) error {
		if err := s.AdmitAll(ctx, a.hits, a.results); err != nil {
			return err
		}
		if a.isRefused() {
			refused = append(refused, share{s, a})
		} else {
			admitted = append(admitted, share{s, a})
		}
		return nil
	})
	if err != nil || len(refused) == 0 || len(admitted) == 0 {
		return err
	}
	return p.admitInBoth(hits, results, func(s counter.Store, a admission) error {
		for _, r := range refused {
			if r.store == s {
				copy(a.results, r.results)
				return nil
			}
		}
		for i := range a.hits {
			a.hits[i].Addend = -a.hits[i].Addend
		}
		return s.Admit(ctx, a.hits, a.results)
	})
}

// share is the part of an admission that one store has decided about.
type share struct {
	store counter.Store
	admission
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

// admitInBoth runs call for each store that has hits, one after the other.
func (p *Pair) admitInBoth(hits []counter.Hit, results []counter.Admitted, call func(counter.Store, admission) error) error {
	if len(hits) != len(results) {
		return fault.Newf(fault.Internal, "got %d hits but room for %d results", len(hits), len(results))
	}
	for _, s := range []counter.Store{p.second, p.other} {
		var indices []int
		for i := range hits {
			if isPerSecond(&hits[i]) == (s == p.second) {
				indices = append(indices, i)
			}
		}
		if len(indices) == 0 {
			continue
		}
		part := admission{slices.Clone(selectHits(hits, indices)), make([]counter.Admitted, len(indices))}
		if err := call(s, part); err != nil {
			return err
		}
		for i, at := range indices {
			results[at] = part.results[i]
		}
	}
	return nil
}
