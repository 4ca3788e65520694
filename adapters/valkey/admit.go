package valkey

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

//go:embed admit.lua
var admitSource string

var admitScript = valkey.NewLuaScript(admitSource)

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

// admitOnNode runs the script on a node.
func (c *Client) admitOnNode(ctx context.Context, n *node, a admission, mode string) error {
	keys, args := a.arguments(mode)
	return c.store.call(ctx, newRoute(n, a.hits), func(ctx context.Context, client valkey.Client) error {
		numbers, err := admitScript.Exec(ctx, client, keys, args).AsIntSlice()
		if err != nil {
			return fmt.Errorf("admit: %w", err)
		}
		if len(numbers) != 3*len(a.hits) {
			return fault.Newf(fault.Internal, "the script returned %d numbers for %d hits", len(numbers), len(a.hits))
		}
		a.store(numbers)
		return nil
	})
}

// arguments returns the keys and arguments of the script.
func (a admission) arguments(mode string) (keys, args []string) {
	keys, args = make([]string, len(a.hits)), make([]string, 0, 6*len(a.hits)+1)
	for i := range a.hits {
		h := &a.hits[i]
		keys[i] = h.Key
		args = append(args, strconv.Itoa(int(h.Algorithm)), strconv.FormatInt(h.Addend, 10), strconv.FormatUint(h.Limit, 10),
			strconv.FormatInt(h.Window.Microseconds(), 10), strconv.FormatUint(h.Burst, 10), strconv.FormatInt(counterTTL(h).Milliseconds(), 10))
	}
	return keys, append(args, mode)
}

// store writes the numbers of the script to the results.
func (a admission) store(numbers []int64) {
	for i := range a.hits {
		first, room, reset := numbers[3*i], numbers[3*i+1], numbers[3*i+2]
		if a.hits[i].Algorithm == ratelimit.FixedWindow {
			a.results[i] = counter.Admitted{Count: uint64(max(first, 0))}
			continue
		}
		a.results[i] = counter.Admitted{Verdict: ratelimit.Verdict{
			Admitted: first == 1, Remaining: uint64(max(room, 0)), Reset: time.Duration(reset) * time.Microsecond,
		}}
	}
}
