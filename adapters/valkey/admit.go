package valkey

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

var (
	//go:embed admit.lua
	admitSource string
	//go:embed admit_one.lua
	admitOneSource string

	admitScript    = valkey.NewLuaScript(admitSource)
	admitOneScript = valkey.NewLuaScript(admitOneSource)
)

// The modes of the script.
const (
	admitEach     = "0"
	admitTogether = "1"
	admitNothing  = "2"
)

var _ counter.Admitter = (*Client)(nil)

// maxScriptHits is the greatest number of hits that one script decides about, each by itself: about 2 ms
// of the server.
const maxScriptHits = 100

// Admit implements counter.Admitter. The hits of each cluster slot are decided by one script, or by
// several if there are many.
func (c *Client) Admit(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	if len(hits) > maxScriptHits {
		ctx = c.store.deadlines.Bound(ctx)
	}
	return c.admitBySlot(ctx, hits, results, admitEach)
}

// AdmitAll implements counter.Admitter with one script for all hits. Over several slots of a cluster, and
// for very many hits, it looks first, with the effect that the package documentation describes.
func (c *Client) AdmitAll(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	atOnce := len(hits) <= maxAtomic
	if atOnce && (c.store.cluster.Load() == nil || len(hits) == 0 || len(c.groupBySlot(hits)) == 1) {
		return c.admitBySlot(ctx, hits, results, admitTogether)
	}
	ctx = c.store.deadlines.Bound(ctx)
	if err := c.admitBySlot(ctx, hits, results, admitNothing); err != nil {
		return err
	}
	deadline.NextStep(ctx)
	over, full := admission{hits, results}.findRefused()
	switch {
	case len(over) == 0 && atOnce:
		return c.admitBySlot(ctx, hits, results, admitTogether)
	case len(over) == 0:
		return c.admitBySlot(ctx, hits, results, admitEach)
	case len(full) == 0:
		return nil
	}
	after := make([]uint64, len(full))
	if err := c.Add(ctx, selectHits(hits, full), after); err != nil {
		return err
	}
	for i, at := range full {
		results[at].Count = after[i]
	}
	return nil
}

// findRefused returns the keys whose hits together are refused or go over a limit, after a look at all
// counters, and the indices of the fixed windows among them. Where the hits of a key were looked at in
// several parts, it corrects the results.
func (a admission) findRefused() (over map[string]bool, full []int) {
	over = map[string]bool{}
	sums := map[string]int64{}
	for i := range a.hits {
		h, r := &a.hits[i], &a.results[i]
		sums[h.Key] += h.Addend
		switch {
		case h.Algorithm == ratelimit.FixedWindow:
			if addToCount(r.Count, sums[h.Key]) > h.Limit {
				over[h.Key] = true
			}
		case !r.Verdict.Admitted:
			over[h.Key] = true
		case h.Addend > 0 && sums[h.Key] > toInt64(r.Verdict.Remaining):
			over[h.Key], r.Verdict.Admitted, r.Verdict.Reset = true, false, h.Window
		}
	}
	for i := range a.hits {
		if h := &a.hits[i]; h.Algorithm == ratelimit.FixedWindow && over[h.Key] {
			full = append(full, i)
		}
	}
	return over, full
}

// admitBySlot runs the script for the hits of each slot; for all hits if the store is not a cluster.
func (c *Client) admitBySlot(ctx context.Context, hits []counter.Hit, results []counter.Admitted, mode string) error {
	switch {
	case len(hits) != len(results):
		return fault.Newf(fault.Internal, "got %d hits but room for %d results", len(hits), len(results))
	case len(hits) == 0:
		return ctx.Err()
	case c.store.cluster.Load() == nil:
		return c.admitOnNode(ctx, c.store.defaultNode, admission{hits, results}, mode)
	}
	groups := c.groupBySlot(hits)
	if len(groups) == 1 {
		return c.admitOnNode(ctx, c.store.findNode(hits[0].Key), admission{hits, results}, mode)
	}
	return inParallel(groups, func(_ uint16, indices []int) error {
		part := admission{selectHits(hits, indices), make([]counter.Admitted, len(indices))}
		err := c.admitOnNode(ctx, c.store.findNode(part.hits[0].Key), part, mode)
		for i, at := range indices {
			results[at] = part.results[i]
		}
		return err
	})
}

// admission is hits and the room for their results.
type admission struct {
	hits    []counter.Hit
	results []counter.Admitted
}

// admitOnNode runs scripts on a node, in turn: one, if all hits are decided together.
func (c *Client) admitOnNode(ctx context.Context, n *node, a admission, mode string) error {
	for mode != admitTogether && len(a.hits) > maxScriptHits {
		if err := c.admitInCall(ctx, n, admission{a.hits[:maxScriptHits], a.results[:maxScriptHits]}, mode); err != nil {
			return err
		}
		deadline.NextStep(ctx)
		a = admission{a.hits[maxScriptHits:], a.results[maxScriptHits:]}
	}
	return c.admitInCall(ctx, n, a, mode)
}

// admitInCall runs a script on a node.
func (c *Client) admitInCall(ctx context.Context, n *node, a admission, mode string) error {
	return c.store.call(ctx, newRoute(n, a.hits), func(ctx context.Context, client valkey.Client) error {
		numbers, err := a.run(ctx, client, mode).ToArray()
		if err != nil {
			return fmt.Errorf("admit: %w", err)
		}
		if len(numbers) != 3*len(a.hits) {
			return fault.Newf(fault.Internal, "the script returned %d numbers for %d hits", len(numbers), len(a.hits))
		}
		return a.store(numbers)
	})
}

// run runs the script for all hits, or the faster one for one hit.
func (a admission) run(ctx context.Context, client valkey.Client, mode string) valkey.ValkeyResult {
	if len(a.hits) == 1 && a.hits[0].Algorithm != ratelimit.FixedWindow && mode == admitEach {
		args := newHitArguments(&a.hits[0])
		return admitOneScript.Exec(ctx, client, []string{a.hits[0].Key}, args[:len(args)-1])
	}
	keys, args := make([]string, len(a.hits)), make([]string, 0, len(hitArguments{})*len(a.hits)+1)
	for i := range a.hits {
		keys[i] = a.hits[i].Key
		one := newHitArguments(&a.hits[i])
		args = append(args, one[:]...)
	}
	return admitScript.Exec(ctx, client, keys, append(args, mode))
}

// hitArguments are the arguments of one hit: algorithm, addend, limit, window, burst and time to live.
type hitArguments [6]string

// newHitArguments returns the arguments of a hit. They are parts of one string.
func newHitArguments(h *counter.Hit) (args hitArguments) {
	var memory [128]byte
	var ends [len(args)]int
	text := memory[:0]
	for i, n := range [len(args)]int64{
		int64(h.Algorithm), h.Addend, toInt64(h.Limit), h.Window.Microseconds(), toInt64(h.Burst), counterTTL(h).Milliseconds(),
	} {
		text = strconv.AppendInt(text, n, 10)
		ends[i] = len(text)
	}
	all, from := string(text), 0
	for i, end := range ends {
		args[i], from = all[from:end], end
	}
	return args
}

// toInt64 returns a number, or the greatest one that fits.
func toInt64(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // it fits

// store writes the numbers of a script to the results.
func (a admission) store(numbers []valkey.ValkeyMessage) error {
	for i := range a.hits {
		var of [3]int64
		for n := range of {
			var err error
			if of[n], err = numbers[3*i+n].AsInt64(); err != nil || of[n] < 0 {
				return fmt.Errorf("admit: %w", errors.Join(errNoCount, err))
			}
		}
		if a.hits[i].Algorithm == ratelimit.FixedWindow {
			a.results[i] = counter.Admitted{Count: uint64(of[0])}
			continue
		}
		a.results[i] = counter.Admitted{Verdict: ratelimit.Verdict{
			Admitted: of[0] == 1, Remaining: uint64(of[1]), Reset: time.Duration(of[2]) * time.Microsecond,
		}}
	}
	return nil
}
