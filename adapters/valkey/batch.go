package valkey

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// batch is hits and the room for their results.
type batch struct {
	hits    []counter.Hit
	results []counter.Result
}

// validate returns an error if there is not exactly one result for each hit.
func (b batch) validate() error {
	if len(b.hits) != len(b.results) {
		return fault.Newf(fault.Internal, "got %d hits but room for %d results", len(b.hits), len(b.results))
	}
	return nil
}

// isPlain reports whether all hits are of fixed windows and no hit is given back.
func (b batch) isPlain() bool {
	for i := range b.hits {
		if b.hits[i].Algorithm != ratelimit.FixedWindow || b.hits[i].Addend < 0 {
			return false
		}
	}
	return true
}

// selectHits returns a batch of the hits with the given indices.
func (b batch) selectHits(indices []int) batch {
	part := batch{make([]counter.Hit, len(indices)), make([]counter.Result, len(indices))}
	for i, at := range indices {
		part.hits[i], part.results[i] = b.hits[at], b.results[at]
	}
	return part
}

// groups are the hits of a batch that are counted by several calls.
type groups struct {
	batch
	indices [][]int // of the hits of each call
	atOnce  int     // how many calls are made at the same time
	count   func(context.Context, batch, counter.Mode) error
}

// groupHits returns the indices of the hits of each group: with all hits of a key, and not many
// more than most, with keys for which of returns the same.
func groupHits[K comparable](hits []counter.Hit, most int, of func(key string) K) [][]int {
	var indices [][]int
	ofKey, latest := map[string]int{}, map[K]int{}
	for i := range hits {
		key := hits[i].Key
		g, ok := ofKey[key]
		if !ok {
			k := of(key)
			if g, ok = latest[k]; !ok || len(indices[g]) >= most {
				g, indices = len(indices), append(indices, nil)
			}
			ofKey[key], latest[k] = g, g
		}
		indices[g] = append(indices[g], i)
	}
	return indices
}

// countEach counts the hits of each group. It returns one of the errors, if any.
func (g groups) countEach(ctx context.Context, m counter.Mode) error {
	var all errgroup.Group
	all.SetLimit(g.atOnce)
	for _, indices := range g.indices {
		all.Go(func() error {
			part := g.selectHits(indices)
			err := g.count(ctx, part, m)
			for i, at := range indices {
				g.results[at] = part.results[i]
			}
			if g.atOnce == 1 {
				deadline.NextStep(ctx)
			}
			return err
		})
	}
	return all.Wait()
}

// countAllOrNone first reads all counters. If hits of some groups are over their limits, it counts
// only these groups, else all. The package documentation describes what this does not guarantee.
func (g groups) countAllOrNone(ctx context.Context) error {
	looks := g
	looks.hits = slices.Clone(g.hits)
	for i := range looks.hits {
		looks.hits[i].Addend = 0
	}
	if err := looks.countEach(ctx, counter.Each); err != nil {
		return err
	}
	deadline.NextStep(ctx)
	isOver := func(indices []int) bool { return g.selectHits(indices).wouldBeOver() }
	if slices.ContainsFunc(g.indices, isOver) {
		g.indices = slices.DeleteFunc(g.indices, func(indices []int) bool { return !isOver(indices) })
	}
	return g.countEach(ctx, counter.AllOrNone)
}

// wouldBeOver reports whether the hits, counted in order, would be refused or take a counter over
// its limit. The results are those of a look at the counters.
func (b batch) wouldBeOver() bool {
	over := counter.FindOver(b.hits, make([]counter.Result, len(b.hits)), func(i int, addend int64) counter.Result {
		before := &b.results[i]
		return counter.Result{
			Count:   counter.AddTo(before.Count, addend),
			Verdict: ratelimit.Verdict{Admitted: addend <= toInt64(before.Verdict.Remaining)},
		}
	})
	return len(over) > 0
}
