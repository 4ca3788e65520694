package valkey

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/adapters/internal/merge"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Add implements counter.Store. It sends the hits of each node to that node, all nodes in parallel.
func (c *Client) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := checkLength(hits, after); err != nil {
		return err
	}
	if len(hits) == 0 {
		return nil
	}
	if len(hits) == 1 && hits[0].Addend > 0 {
		return c.addMerged(ctx, hits, after)
	}
	if len(hits) > maxPipeline {
		ctx = c.store.deadlines.Bound(ctx)
	}
	if n := c.store.findCommonNode(hits); n != nil {
		return c.addOnNode(ctx, n, hits, after)
	}
	return callEachGroup(c.store.groupByNode(hits), batch{hits: hits, after: after}, func(n *node, hits []counter.Hit, after []uint64) error {
		return c.addOnNode(ctx, n, hits, after)
	})
}

// maxPipeline is the greatest number of hits that are sent at once, so that calls which share the
// connection do not wait for long.
const maxPipeline = 1000

// addMerged counts one hit, together with other hits of its key that are in progress.
func (c *Client) addMerged(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := ctx.Err(); err != nil {
		return storeUnavailable(err)
	}
	h, now := &hits[0], time.Now()
	ctx = c.store.deadlines.Call(ctx, now)
	ticket := c.merged.Begin(h.Key, life{h.Window, h.TTL}, h.Addend, now)
	if !ticket.Waits() {
		err := c.addOnNode(ctx, c.store.findNode(h.Key), hits, after)
		c.merged.End(ticket)
		return err
	}
	var err error
	if after[0], err = ticket.Wait(ctx); err != nil && !fault.Is(err, fault.Unavailable) {
		err = storeUnavailable(err) // the caller gave up, or the time is over
	}
	return err
}

// life is how long a counter counts, and how long the store keeps it.
type life struct{ window, ttl time.Duration }

// addSum counts the hits of several callers on one key.
func (c *Client) addSum(ctx context.Context, s merge.Sum[life]) (uint64, error) {
	hits := []counter.Hit{{Key: s.Key, Addend: s.N, Window: s.Counter.window, TTL: s.Counter.ttl}}
	after := make([]uint64, 1)
	err := c.addOnNode(ctx, c.store.findNode(s.Key), hits, after)
	return after[0], err
}

// addOnNode counts hits whose keys are all on node n. Many hits are several calls, in turn.
func (c *Client) addOnNode(ctx context.Context, n *node, hits []counter.Hit, after []uint64) error {
	for len(hits) > maxPipeline {
		if err := c.addInCall(ctx, n, hits[:maxPipeline], after[:maxPipeline]); err != nil {
			return err
		}
		deadline.NextStep(ctx)
		hits, after = hits[maxPipeline:], after[maxPipeline:]
	}
	return c.addInCall(ctx, n, hits, after)
}

func (c *Client) addInCall(ctx context.Context, n *node, hits []counter.Hit, after []uint64) error {
	return c.store.call(ctx, newRoute(n, hits), func(ctx context.Context, client valkey.Client) error {
		if len(hits) == 1 && hits[0].Addend > 0 && c.known.contains(hits[0].Key) {
			result := client.Do(ctx, newCountCommand(client.B(), &hits[0]))
			return c.storeCounts(ctx, client, batch{hits: hits, after: after}, []valkey.ValkeyResult{result})
		}
		return c.addInPipelines(ctx, client, hits, after)
	})
}

// callEachGroup runs call for each group of hits, in parallel, and copies the counts to b.after. It
// returns one of the errors, if any.
func callEachGroup[K comparable](groups map[K][]int, b batch, call func(K, []counter.Hit, []uint64) error) error {
	return inParallel(groups, func(group K, indices []int) error {
		after := make([]uint64, len(indices))
		err := call(group, selectHits(b.hits, indices), after)
		for i, at := range indices {
			b.after[at] = after[i]
		}
		return err
	})
}

// maxParallel is the greatest number of groups of a request that are sent at the same time, so that a
// request with keys in very many slots leaves room for others.
const maxParallel = 32

// inParallel runs call for each group. It returns one of the errors, if any.
func inParallel[K comparable](groups map[K][]int, call func(K, []int) error) error {
	var all errgroup.Group
	all.SetLimit(maxParallel)
	for group, indices := range groups {
		all.Go(func() error { return call(group, indices) })
	}
	return all.Wait()
}

// addInPipelines counts the hits in one pipeline, or in several if pipelineLimit is set. Commands
// with the same key use the same connection, so they are executed in order.
func (c *Client) addInPipelines(ctx context.Context, client valkey.Client, hits []counter.Hit, after []uint64) error {
	size := len(hits)
	if c.pipelineLimit > 0 {
		size = max(c.pipelineLimit/2, 1) // a hit needs at most two commands
	}
	for from := 0; from < len(hits); from += size {
		to := min(from+size, len(hits))
		if err := c.sendPipeline(ctx, client, hits[from:to], after[from:to]); err != nil {
			return err
		}
	}
	return nil
}

// step describes the commands of one hit in a pipeline.
type step struct {
	countIndex int  // index of the command that returns the count
	created    bool // the command before it created the counter
}

// sendPipeline sends the commands of all hits in one pipeline. If a counter is unknown, the command
// that creates it comes first.
func (c *Client) sendPipeline(ctx context.Context, client valkey.Client, hits []counter.Hit, after []uint64) error {
	commands := make([]valkey.Completed, 0, 2*len(hits))
	steps := make([]step, len(hits))
	for i := range hits {
		h := &hits[i]
		if h.Addend > 0 && !c.known.contains(h.Key) {
			commands = append(commands, client.B().Set().Key(h.Key).Value("0").Nx().Px(counterTTL(h)).Build())
			steps[i].created = true
		}
		steps[i].countIndex = len(commands)
		commands = append(commands, newCountCommand(client.B(), h))
	}
	results := client.DoMulti(ctx, commands...)
	for i, s := range steps {
		if !s.created {
			continue
		}
		err := results[s.countIndex-1].Error()
		if err != nil && !valkey.IsValkeyNil(err) {
			return fmt.Errorf("create a counter: %w", err)
		}
		steps[i].created = err == nil // else it existed, and may have expired since
		c.known.remember(hits[i].Key)
	}
	return c.storeCounts(ctx, client, batch{hits, after, steps}, results)
}

// newCountCommand returns the command that counts one hit and returns the count.
func newCountCommand(b valkey.Builder, h *counter.Hit) valkey.Completed {
	switch {
	case h.Addend > 0:
		return b.Incrby().Key(h.Key).Increment(h.Addend).Build()
	case h.Addend == 0:
		return b.Get().Key(h.Key).Build()
	default:
		// EVAL, not EVALSHA: if the server did not know the script, the repeated command would be
		// executed after the commands that follow it.
		return b.Eval().Script(giveBackSource).Numkeys(1).Key(h.Key).Arg(strconv.FormatInt(h.Addend, 10)).Build()
	}
}

// batch contains hits and the room for their counts. Steps is nil if each hit has exactly one
// command.
type batch struct {
	hits  []counter.Hit
	after []uint64
	steps []step
}

// storeCounts copies the counts from the results to b.after. If a known counter had disappeared, so
// that its hit created it again, it sets the expiry.
func (c *Client) storeCounts(ctx context.Context, client valkey.Client, b batch, results []valkey.ValkeyResult) error {
	var repairs []valkey.Completed
	for i := range b.hits {
		s := step{countIndex: i}
		if b.steps != nil {
			s = b.steps[i]
		}
		h := &b.hits[i]
		n, err := parseCount(results[s.countIndex], h.Addend)
		if err != nil {
			return err
		}
		b.after[i] = n
		if h.Addend > 0 && !s.created && n == uint64(h.Addend) {
			repairs = append(repairs, client.B().Pexpire().Key(h.Key).Milliseconds(counterTTL(h).Milliseconds()).Build())
		}
	}
	for _, r := range client.DoMulti(ctx, repairs...) {
		if err := r.Error(); err != nil {
			return fmt.Errorf("set an expiry: %w", err)
		}
	}
	return nil
}

// errNoCount means that the server replied to a hit with what is not the count after it.
var errNoCount = errors.New("the counter store did not return the count")

// parseCount returns the count in the result of a hit: the maximum if it cannot grow further, and 0 for a
// counter that was read and does not exist. After an addition there is one.
func parseCount(r valkey.ValkeyResult, addend int64) (uint64, error) {
	n, err := r.AsInt64()
	switch {
	case err == nil && n < max(addend, 0):
		return 0, errNoCount
	case err == nil:
		return uint64(n), nil //nolint:gosec // not negative
	case valkey.IsValkeyNil(err) && addend == 0:
		return 0, nil
	case isOverflow(err):
		return math.MaxInt64, nil
	default:
		return 0, fmt.Errorf("count: %w", err)
	}
}

func isOverflow(err error) bool {
	reply, ok := serverError(err)
	return ok && strings.Contains(reply.Error(), "would overflow")
}

// isReadOnly reports whether the server is a replica, or a replica without its primary.
func isReadOnly(reply *valkey.ValkeyError) bool {
	return strings.HasPrefix(reply.Error(), "READONLY") || strings.HasPrefix(reply.Error(), "MASTERDOWN")
}

// counterTTL returns how long the store keeps a counter, at least a second. The port promises no
// finer precision.
func counterTTL(h *counter.Hit) time.Duration { return max(h.TTL, time.Second) }
