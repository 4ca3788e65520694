package memcached

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Add implements ports/counter.
func (c *Client) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := check(hits, after); err != nil {
		return err
	}
	return c.countBatch(ctx, batch{hits, after}, time.Now().Add(c.timeout))
}

// AddUnlessOver implements ports/counter; the package documentation tells what it cannot promise.
func (c *Client) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := check(hits, after); err != nil {
		return err
	}
	deadline := time.Now().Add(c.timeout)
	if oneKey(hits) {
		return c.countBatch(ctx, batch{hits, after}, deadline) // over or not, all of them are counted
	}
	return c.countUnlessOver(ctx, batch{hits, after}, deadline)
}

// batch is hits with the room for their counts.
type batch struct {
	hits  []counter.Hit
	after []uint64
}

// pick returns the hits of some indices, with room for counts of their own.
func (b batch) pick(indices []int) batch {
	part := batch{make([]counter.Hit, len(indices)), make([]uint64, len(indices))}
	for i, at := range indices {
		part.hits[i] = b.hits[at]
	}
	return part
}

// put writes the counts of a part into their places.
func (b batch) put(indices []int, part batch) {
	for i, at := range indices {
		b.after[at] = part.after[i]
	}
}

func oneKey(hits []counter.Hit) bool {
	for i := 1; i < len(hits); i++ {
		if hits[i].Key != hits[0].Key {
			return false
		}
	}
	return true
}

func (c *Client) countUnlessOver(ctx context.Context, b batch, deadline time.Time) error {
	if err := c.each(ctx, b, appendLook, deadline); err != nil {
		return err
	}
	if over := wouldBeOver(b); len(over) > 0 {
		return c.addOnly(ctx, b, over, deadline)
	}
	if err := c.countBatch(ctx, b, deadline); err != nil {
		return err
	}
	if over := isOver(b); len(over) > 0 {
		return c.giveBack(ctx, b, over, deadline)
	}
	return nil
}

// wouldBeOver returns the keys that the hits would bring over a limit, from the counts as they stand.
func wouldBeOver(b batch) map[string]bool {
	var over map[string]bool
	running := make(map[string]uint64, len(b.hits))
	for i := range b.hits {
		h := &b.hits[i]
		count, earlier := running[h.Key]
		if !earlier {
			count = b.after[i]
		}
		count = sum(count, h.Addend)
		running[h.Key] = count
		if count > h.Limit {
			over = with(over, h.Key)
		}
	}
	return over
}

// isOver returns the keys that are over a limit by the counts after the hits.
func isOver(b batch) map[string]bool {
	var over map[string]bool
	for i := range b.hits {
		if b.after[i] > b.hits[i].Limit {
			over = with(over, b.hits[i].Key)
		}
	}
	return over
}

func with(set map[string]bool, key string) map[string]bool {
	if set == nil {
		set = make(map[string]bool)
	}
	set[key] = true
	return set
}

// sum adds an addend to a count, never below zero and never above the greatest count.
func sum(count uint64, addend int64) uint64 {
	if addend >= 0 {
		return min(count+uint64(addend), math.MaxInt64)
	}
	if back := -uint64(addend); back < count {
		return count - back
	}
	return 0
}

// addOnly counts the hits of some keys; the other counts stay as they were looked at.
func (c *Client) addOnly(ctx context.Context, b batch, keys map[string]bool, deadline time.Time) error {
	var indices []int
	for i := range b.hits {
		if keys[b.hits[i].Key] {
			indices = append(indices, i)
		}
	}
	part := b.pick(indices)
	if err := c.countBatch(ctx, part, deadline); err != nil {
		return err
	}
	b.put(indices, part)
	return nil
}

// giveBack takes back what was counted beside keys that turned out to be over.
func (c *Client) giveBack(ctx context.Context, b batch, over map[string]bool, deadline time.Time) error {
	var indices []int
	for i := range b.hits {
		if !over[b.hits[i].Key] && b.hits[i].Addend > 0 {
			indices = append(indices, i)
		}
	}
	part := b.pick(indices)
	for i := range part.hits {
		part.hits[i].Addend = -part.hits[i].Addend
	}
	if err := c.each(ctx, part, appendCommand, deadline); err != nil {
		return err
	}
	stand := make(map[string]uint64, len(indices))
	for i := range part.hits {
		stand[part.hits[i].Key] = part.after[i]
	}
	for i := range part.hits {
		part.after[i] = stand[part.hits[i].Key]
	}
	b.put(indices, part)
	return nil
}

// countBatch counts the hits. A counter that went past the greatest count is brought back to it, far from where memcached would
// begin at zero again.
func (c *Client) countBatch(ctx context.Context, b batch, deadline time.Time) error {
	if err := c.each(ctx, b, appendCommand, deadline); err != nil {
		return err
	}
	for i, count := range b.after {
		if count <= math.MaxInt64 {
			continue
		}
		excess := counter.Hit{Key: b.hits[i].Key, Addend: -int64(count - math.MaxInt64)}
		if err := c.each(ctx, batch{[]counter.Hit{excess}, make([]uint64, 1)}, appendCommand, deadline); err != nil {
			return err
		}
		b.after[i] = math.MaxInt64
	}
	return nil
}

// each sends a command for each hit and reads the counts. The hits of one node travel together and in their order, and
// the nodes are asked at once.
func (c *Client) each(ctx context.Context, b batch, command encode, deadline time.Time) error {
	if len(b.hits) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	first, err := c.nodeOfAll(b.hits)
	if err != nil {
		return unavailable(err)
	}
	if first == nil {
		return c.spread(ctx, b, command, deadline)
	}
	f := c.begin(ctx, first, b.hits, command, deadline)
	return c.finish(ctx, f, b.after)
}

// nodeOfAll returns the node of all hits, nil when there are several.
func (c *Client) nodeOfAll(hits []counter.Hit) (*node, error) {
	first, err := c.ring.of(hits[0].Key)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(hits); i++ {
		// The list may change meanwhile; each look at it is whole.
		if n, err := c.ring.of(hits[i].Key); err != nil || n != first {
			return nil, err
		}
	}
	return first, nil
}

// spread is each over several nodes.
func (c *Client) spread(ctx context.Context, b batch, command encode, deadline time.Time) error {
	places := make(map[*node][]int)
	for i := range b.hits {
		n, err := c.ring.of(b.hits[i].Key)
		if err != nil {
			return unavailable(err)
		}
		places[n] = append(places[n], i)
	}
	type share struct {
		flight  flight
		indices []int
		batch
	}
	shares := make([]share, 0, len(places))
	for n, indices := range places {
		part := b.pick(indices)
		shares = append(shares, share{c.begin(ctx, n, part.hits, command, deadline), indices, part})
	}
	var failure error
	for _, s := range shares {
		if err := c.finish(ctx, s.flight, s.after); err != nil {
			failure = err // one says enough
		}
		b.put(s.indices, s.batch)
	}
	return failure
}

// flight is a call that is with a node, or the error that kept it from getting there.
type flight struct {
	node       *node
	call       *call
	connection *connection
	once       bool // it gives hits back, which must not happen twice
	err        error
}

// begin sends the commands of hits to a node.
func (c *Client) begin(ctx context.Context, n *node, hits []counter.Hit, command encode, deadline time.Time) flight {
	k := c.take()
	k.reset(len(hits))
	now := time.Now()
	f := flight{node: n, call: k}
	for i := range hits {
		k.commands = command(k.commands, &hits[i], now)
		f.once = f.once || hits[i].Addend < 0
	}
	k.timer.Reset(deadline.Sub(now))
	f.send(ctx)
	return f
}

// send gives the call to a live connection of its node.
func (f *flight) send(ctx context.Context) {
	for {
		if f.connection, f.err = f.node.connection(ctx, f.call); f.err != nil {
			return
		}
		if f.err = f.connection.begin(ctx, f.call); !errors.Is(f.err, errRetired) {
			return
		}
	}
}

// finish waits for the counts of a call. A node that restarts breaks all connections at once; the call is then made again
// over each of them within its deadline, and when the one before was carried out after all, its hits count twice, which
// never admits more than the limit. A call that gives hits back is not made again, since giving back twice would.
func (c *Client) finish(ctx context.Context, f flight, after []uint64) error {
	gone := false
	if f.err == nil {
		gone, f.err = f.connection.finish(ctx, f.call)
	}
	for n := 0; n < len(f.node.slots) && errors.Is(f.err, errLostCall) && !f.once; n++ {
		if f.send(ctx); f.err == nil {
			gone, f.err = f.connection.finish(ctx, f.call)
		}
	}
	f.call.timer.Stop()
	if gone {
		return unavailable(f.err)
	}
	err := f.err
	if err == nil {
		err = settle(f.call.answers, after)
	}
	c.give(f.call)
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// settle reads the counts out of the answers.
func settle(answers []answer, after []uint64) error {
	for i := range answers {
		if err := answers[i].err; err != nil {
			return err
		}
		after[i] = answers[i].count
	}
	return nil
}

// take returns a call to use; give takes back one that no connection has any more.
func (c *Client) take() *call { return c.calls.Get().(*call) } //nolint:errcheck // the pool holds nothing else

func (c *Client) give(k *call) {
	if cap(k.answers) <= maxKept {
		c.calls.Put(k)
	}
}

// maxKept is how many answers a call has room for at most, for it to be used again.
const maxKept = 256
