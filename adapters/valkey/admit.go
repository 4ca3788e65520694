package valkey

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

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

// Admit implements counter.Admitter. The hits of each cluster slot are decided by one script.
func (c *Client) Admit(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	return c.admitBySlot(ctx, hits, results, admitEach)
}

// AdmitAll implements counter.Admitter with one script for all hits. Over several slots of a cluster it
// asks first, with the effect that the package documentation describes.
func (c *Client) AdmitAll(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	if c.store.cluster.Load() == nil || len(hits) == 0 || len(c.groupBySlot(hits)) == 1 {
		return c.admitBySlot(ctx, hits, results, admitTogether)
	}
	if err := c.admitBySlot(ctx, hits, results, admitNothing); err != nil {
		return err
	}
	over, fixed := map[string]bool{}, []int{}
	sums := map[string]int64{}
	for i := range hits {
		h := &hits[i]
		sums[h.Key] += h.Addend
		if h.Algorithm == ratelimit.FixedWindow {
			fixed = append(fixed, i)
			if addToCount(results[i].Count, sums[h.Key]) > h.Limit {
				over[h.Key] = true
			}
		} else if !results[i].Verdict.Admitted {
			over[h.Key] = true
		}
	}
	if len(over) == 0 {
		return c.admitBySlot(ctx, hits, results, admitTogether)
	}
	for _, i := range fixed {
		if !over[hits[i].Key] {
			continue
		}
		after := []uint64{0}
		if err := c.Add(ctx, hits[i:i+1], after); err != nil {
			return err
		}
		results[i].Count = after[0]
	}
	return nil
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
	var all sync.WaitGroup
	failures := make(chan error, len(groups))
	for _, indices := range groups {
		all.Go(func() {
			part := admission{selectHits(hits, indices), make([]counter.Admitted, len(indices))}
			failures <- c.admitOnNode(ctx, c.store.findNode(part.hits[0].Key), part, mode)
			for i, at := range indices {
				results[at] = part.results[i]
			}
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// admission is hits and the room for their results.
type admission struct {
	hits    []counter.Hit
	results []counter.Admitted
}

// admitOnNode runs a script on a node.
func (c *Client) admitOnNode(ctx context.Context, n *node, a admission, mode string) error {
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
			if of[n], err = numbers[3*i+n].AsInt64(); err != nil {
				return fmt.Errorf("admit: %w", err)
			}
		}
		if a.hits[i].Algorithm == ratelimit.FixedWindow {
			a.results[i] = counter.Admitted{Count: uint64(max(of[0], 0))}
			continue
		}
		a.results[i] = counter.Admitted{Verdict: ratelimit.Verdict{
			Admitted: of[0] == 1, Remaining: uint64(max(of[1], 0)), Reset: time.Duration(of[2]) * time.Microsecond,
		}}
	}
	return nil
}
