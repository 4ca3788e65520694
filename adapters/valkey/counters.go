package valkey

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Count implements counter.Store. Hits of fixed windows that are not given back need one command
// each; the script counts the others, and several hits in the mode AllOrNone. One hit is counted
// together with others of its key that are in progress.
func (c *Client) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	b := batch{hits, results}
	err := b.validate()
	switch {
	case err != nil || len(hits) == 0:
		return err
	case len(hits) == 1 && hits[0].Addend > 0:
		return c.countMerged(ctx, b)
	case !b.isPlain() || m == counter.AllOrNone && len(hits) > 1:
		return c.countByScript(ctx, b, m)
	case len(hits) > maxPipeline:
		ctx = c.store.deadlines.Bound(ctx)
	case c.store.findCommonNode(hits) != nil:
		return c.countOnNode(ctx, b, m)
	}
	return c.newGroups(b, groupHits(hits, maxPipeline, c.store.findNode), c.countOnNode).countEach(ctx, m)
}

// maxPipeline is the greatest number of hits that are sent at once, so that calls which share the
// connection do not wait for long.
const maxPipeline = 1000

// maxParallel is the greatest number of groups of a request that are sent to a cluster at the same
// time, so that a request with keys in very many slots leaves room for others.
const maxParallel = 32

// newGroups returns groups of hits that count counts: in a cluster many at the same time.
func (c *Client) newGroups(b batch, indices [][]int, count func(context.Context, batch, counter.Mode) error) groups {
	g := groups{b, indices, 1, count}
	if c.store.cluster.Load() != nil {
		g.atOnce = maxParallel
	}
	return g
}

// countMerged counts one hit, together with other hits of its key that are in progress.
func (c *Client) countMerged(ctx context.Context, b batch) error {
	if err := ctx.Err(); err != nil {
		return storeUnavailable(err)
	}
	now := time.Now()
	ctx = c.store.deadlines.Call(ctx, now)
	result, err := c.merged.Add(ctx, b.hits[0].Key, &b.hits[0], now, func() (counter.Result, error) {
		err := c.countAlone(ctx, b)
		return b.results[0], err
	})
	b.results[0] = result
	return err
}

// countAlone counts one hit.
func (c *Client) countAlone(ctx context.Context, b batch) error {
	if b.isPlain() {
		return c.countOnNode(ctx, b, counter.Each)
	}
	return c.runScript(ctx, b, counter.Each)
}

// countTogether counts the hits of several callers on one key: those of a fixed window as one, and
// others by as few scripts as may be.
func (c *Client) countTogether(ctx context.Context, key string, hits []counter.Hit, results []counter.Result) error {
	if hits[0].Algorithm == ratelimit.FixedWindow {
		return counter.CountTogether(hits, results, func(h counter.Hit) (uint64, error) {
			h.Key = key
			b := batch{[]counter.Hit{h}, make([]counter.Result, 1)}
			err := c.countOnNode(ctx, b, counter.Each)
			return b.results[0].Count, err
		})
	}
	ctx = c.store.deadlines.Bound(ctx)
	for i := range hits {
		hits[i].Key = key
	}
	for from := 0; from < len(hits); from += maxScriptHits {
		to := min(from+maxScriptHits, len(hits))
		if err := c.runScript(ctx, batch{hits[from:to], results[from:to]}, counter.Each); err != nil {
			return err
		}
		deadline.NextStep(ctx)
	}
	return nil
}

// countOnNode counts hits whose keys are all on one node.
func (c *Client) countOnNode(ctx context.Context, b batch, _ counter.Mode) error {
	at := newRoute(c.store.findNode(b.hits[0].Key), b.hits)
	return c.store.call(ctx, at, func(ctx context.Context, client valkey.Client) error {
		if len(b.hits) == 1 && b.hits[0].Addend > 0 && c.known.contains(b.hits[0].Key) {
			result := client.Do(ctx, newCountCommand(client.B(), &b.hits[0]))
			return c.storeCounts(ctx, client, b, make([]step, 1), []valkey.ValkeyResult{result})
		}
		return c.countInPipelines(ctx, client, b)
	})
}

// countInPipelines counts the hits in one pipeline, or in several if pipelineLimit is set. Commands
// with the same key use the same connection, so they are executed in order.
func (c *Client) countInPipelines(ctx context.Context, client valkey.Client, b batch) error {
	size := len(b.hits)
	if c.pipelineLimit > 0 {
		size = max(c.pipelineLimit/2, 1) // a hit needs at most two commands
	}
	for from := 0; from < len(b.hits); from += size {
		to := min(from+size, len(b.hits))
		if err := c.sendPipeline(ctx, client, batch{b.hits[from:to], b.results[from:to]}); err != nil {
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
func (c *Client) sendPipeline(ctx context.Context, client valkey.Client, b batch) error {
	commands := make([]valkey.Completed, 0, 2*len(b.hits))
	steps := make([]step, len(b.hits))
	for i := range b.hits {
		h := &b.hits[i]
		if h.Addend > 0 && !c.known.contains(h.Key) {
			commands = append(commands, client.B().Set().Key(h.Key).Value("0").Nx().Px(counterTTL(h)).Build())
			steps[i].created = true
		}
		steps[i].countIndex = len(commands)
		commands = append(commands, newCountCommand(client.B(), h))
	}
	replies := client.DoMulti(ctx, commands...)
	for i, s := range steps {
		if !s.created {
			continue
		}
		err := replies[s.countIndex-1].Error()
		if err != nil && !valkey.IsValkeyNil(err) {
			return fmt.Errorf("create a counter: %w", err)
		}
		steps[i].created = err == nil // else it existed, and may have expired since
		c.known.remember(b.hits[i].Key)
	}
	return c.storeCounts(ctx, client, b, steps, replies)
}

// newCountCommand returns the command that counts one hit, which is not given back, and returns the
// count.
func newCountCommand(b valkey.Builder, h *counter.Hit) valkey.Completed {
	if h.Addend == 0 {
		return b.Get().Key(h.Key).Build()
	}
	return b.Incrby().Key(h.Key).Increment(h.Addend).Build()
}

// storeCounts writes the counts in the replies to b.results. If a known counter had disappeared, so
// that its hit created it again, it sets the expiry.
func (c *Client) storeCounts(
	ctx context.Context, client valkey.Client, b batch, steps []step, replies []valkey.ValkeyResult,
) error {
	var repairs []valkey.Completed
	for i, s := range steps {
		h := &b.hits[i]
		n, err := parseCount(replies[s.countIndex], h.Addend)
		if err != nil {
			return err
		}
		b.results[i] = counter.Result{Count: n}
		if h.Addend > 0 && !s.created && n == uint64(h.Addend) {
			repairs = append(repairs,
				client.B().Pexpire().Key(h.Key).Milliseconds(counterTTL(h).Milliseconds()).Build())
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

// parseCount returns the count in the result of a hit: the maximum if it cannot grow further, and 0
// for a counter that was read and does not exist. After an addition there is one.
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
