package valkey

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Add implements ports/counter.
func (c *Client) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := checkLength(hits, after); err != nil {
		return err
	}
	if len(hits) == 0 {
		return nil
	}
	if n := c.link.nodeOfAll(hits); n != nil {
		return c.addAt(ctx, n, hits, after)
	}
	return parted(c.link.byNode(hits), batch{hits: hits, after: after}, func(n *node, hits []counter.Hit, after []uint64) error {
		return c.addAt(ctx, n, hits, after)
	})
}

// addAt counts hits of one node.
func (c *Client) addAt(ctx context.Context, n *node, hits []counter.Hit, after []uint64) error {
	return c.link.do(ctx, placeOf(n, hits), func(ctx context.Context, client valkey.Client) error {
		if len(hits) == 1 && hits[0].Addend > 0 && c.seen.has(hits[0].Key) {
			result := client.Do(ctx, count(client.B(), &hits[0]))
			return c.settle(ctx, client, batch{hits: hits, after: after}, []valkey.ValkeyResult{result})
		}
		return c.addBatch(ctx, client, hits, after)
	})
}

// parted calls for each group of hits, all at once, and fails when any of them does.
func parted[K comparable](groups map[K][]int, b batch, call func(K, []counter.Hit, []uint64) error) error {
	var all sync.WaitGroup
	failures := make(chan error, len(groups))
	for group, indices := range groups {
		all.Go(func() {
			after := make([]uint64, len(indices))
			failures <- call(group, pick(b.hits, indices), after)
			for i, at := range indices {
				b.after[at] = after[i]
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

// addBatch sends a batch in one pipeline, or in several where a limit is set. Commands for one key go to one connection
// of one node in their order.
func (c *Client) addBatch(ctx context.Context, client valkey.Client, hits []counter.Hit, after []uint64) error {
	size := len(hits)
	if c.chunk > 0 {
		size = max(c.chunk/2, 1) // a hit takes two commands at most
	}
	for from := 0; from < len(hits); from += size {
		to := min(from+size, len(hits))
		if err := c.addChunk(ctx, client, hits[from:to], after[from:to]); err != nil {
			return err
		}
	}
	return nil
}

// step is one hit's part of a pipeline.
type step struct {
	answer int  // the command that answers the count
	made   bool // the command before it makes the counter with its expiry; false again when it was there already
}

func (c *Client) addChunk(ctx context.Context, client valkey.Client, hits []counter.Hit, after []uint64) error {
	commands := make([]valkey.Completed, 0, 2*len(hits))
	steps := make([]step, len(hits))
	for i := range hits {
		h := &hits[i]
		if h.Addend > 0 && !c.seen.has(h.Key) {
			commands = append(commands, client.B().Set().Key(h.Key).Value("0").Nx().Px(life(h)).Build())
			steps[i].made = true
		}
		steps[i].answer = len(commands)
		commands = append(commands, count(client.B(), h))
	}
	results := client.DoMulti(ctx, commands...)
	for i, s := range steps {
		if !s.made {
			continue
		}
		err := results[s.answer-1].Error()
		if err != nil && !valkey.IsValkeyNil(err) {
			return fmt.Errorf("make a counter: %w", err)
		}
		steps[i].made = err == nil // else it was there, and may have ended since
		c.seen.note(hits[i].Key)
	}
	return c.settle(ctx, client, batch{hits, after, steps}, results)
}

// count returns the command that counts one hit and answers the count.
func count(b valkey.Builder, h *counter.Hit) valkey.Completed {
	switch {
	case h.Addend > 0:
		return b.Incrby().Key(h.Key).Increment(h.Addend).Build()
	case h.Addend == 0:
		return b.Get().Key(h.Key).Build()
	default:
		// Not by its hash: a server that does not know the script would answer this hit after the ones behind it.
		return b.Eval().Script(giveBackSource).Numkeys(1).Key(h.Key).Arg(strconv.FormatInt(h.Addend, 10)).Build()
	}
}

// batch is hits with the room for their counts and, unless each is one command, their steps.
type batch struct {
	hits  []counter.Hit
	after []uint64
	steps []step
}

// settle reads the counts, and sets the expiry of counters that had been seen and are made anew.
func (c *Client) settle(ctx context.Context, client valkey.Client, b batch, results []valkey.ValkeyResult) error {
	var repairs []valkey.Completed
	for i := range b.hits {
		s := step{answer: i}
		if b.steps != nil {
			s = b.steps[i]
		}
		n, err := readCount(results[s.answer])
		if err != nil {
			return err
		}
		b.after[i] = n
		if h := &b.hits[i]; h.Addend > 0 && !s.made && n == uint64(h.Addend) {
			repairs = append(repairs, client.B().Pexpire().Key(h.Key).Milliseconds(life(h).Milliseconds()).Build())
		}
	}
	for _, r := range client.DoMulti(ctx, repairs...) {
		if err := r.Error(); err != nil {
			return fmt.Errorf("set an expiry: %w", err)
		}
	}
	return nil
}

// readCount reads a count. A counter that is not there is zero; one that can grow no further is at its end.
func readCount(r valkey.ValkeyResult) (uint64, error) {
	n, err := r.AsInt64()
	switch {
	case err == nil:
		return uint64(max(n, 0)), nil
	case valkey.IsValkeyNil(err):
		return 0, nil
	case overflows(err):
		return math.MaxInt64, nil
	default:
		return 0, fmt.Errorf("count: %w", err)
	}
}

func overflows(err error) bool {
	reply, ok := replied(err)
	return ok && strings.Contains(reply.Error(), "would overflow")
}

// readOnly tells of a server that is no master, or has lost its own.
func readOnly(reply *valkey.ValkeyError) bool {
	return strings.HasPrefix(reply.Error(), "READONLY") || strings.HasPrefix(reply.Error(), "MASTERDOWN")
}

// life is how long a counter is kept; less than a second is more precise than the port promises.
func life(h *counter.Hit) time.Duration { return max(h.TTL, time.Second) }
