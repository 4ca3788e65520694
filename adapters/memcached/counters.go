package memcached

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/adapters/internal/merge"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Add implements counter.Store.
func (c *Client) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := validateHits(hits, after); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return storeUnavailable(err)
	}
	now := time.Now()
	ctx = c.deadlines.Call(ctx, now)
	if len(hits) == 1 && hits[0].Addend > 0 {
		return c.addMerged(ctx, hits, after, now)
	}
	return c.addBatch(ctx, batch{hits, after})
}

// addMerged counts one hit, together with other hits of its key that are in progress.
func (c *Client) addMerged(ctx context.Context, hits []counter.Hit, after []uint64, now time.Time) error {
	h := &hits[0]
	ticket := c.merged.Begin(h.Key, h.TTL, h.Addend, now)
	if !ticket.Waits() {
		err := c.addBatch(ctx, batch{hits, after})
		c.merged.End(ticket)
		return err
	}
	var err error
	if after[0], err = ticket.Wait(ctx); err != nil && !fault.Is(err, fault.Unavailable) {
		err = storeUnavailable(err) // the caller gave up, or the time is over
	}
	return err
}

// addSum counts the hits of several callers on one key.
func (c *Client) addSum(ctx context.Context, s merge.Sum[time.Duration]) (uint64, error) {
	b := batch{[]counter.Hit{{Key: s.Key, Addend: s.N, TTL: s.Counter}}, make([]uint64, 1)}
	err := c.addBatch(c.deadlines.Call(ctx, time.Now()), b)
	return b.after[0], err
}

// AddUnlessOver implements counter.Store. The package documentation describes what it does not
// guarantee.
func (c *Client) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := validateHits(hits, after); err != nil {
		return err
	}
	if haveSameKey(hits) { // hits of one key are always counted together
		return c.addBatch(c.deadlines.Call(ctx, time.Now()), batch{hits, after})
	}
	return c.addBatchUnlessOver(c.deadlines.Bound(ctx), batch{hits, after})
}

// batch contains hits and the room for their counts.
type batch struct {
	hits  []counter.Hit
	after []uint64
}

// selectHits returns the hits at the given indices, with room for their counts.
func (b batch) selectHits(indices []int) batch {
	part := batch{make([]counter.Hit, len(indices)), make([]uint64, len(indices))}
	for i, at := range indices {
		part.hits[i] = b.hits[at]
	}
	return part
}

// storeCountsAt copies the counts of part to the given indices of b.
func (b batch) storeCountsAt(indices []int, part batch) {
	for i, at := range indices {
		b.after[at] = part.after[i]
	}
}

func haveSameKey(hits []counter.Hit) bool {
	for i := 1; i < len(hits); i++ {
		if hits[i].Key != hits[0].Key {
			return false
		}
	}
	return true
}

func (c *Client) addBatchUnlessOver(ctx context.Context, b batch) error {
	if err := c.runForEachHit(ctx, b, readCommand); err != nil {
		return err
	}
	deadline.NextStep(ctx)
	if over := findKeysToBeOver(b); len(over) > 0 {
		return c.addHitsOfKeys(ctx, b, over)
	}
	if err := c.addBatch(ctx, b); err != nil {
		return err
	}
	if over := findKeysOver(b); len(over) > 0 {
		return c.subtractHits(ctx, b, over)
	}
	return nil
}

// findKeysToBeOver returns the keys that the hits would bring over a limit, starting from the
// counts in b.after.
func findKeysToBeOver(b batch) map[string]bool {
	var over map[string]bool
	running := make(map[string]uint64, len(b.hits))
	for i := range b.hits {
		h := &b.hits[i]
		count, earlier := running[h.Key]
		if !earlier {
			count = b.after[i]
		}
		count = addToCount(count, h.Addend)
		running[h.Key] = count
		if count > h.Limit {
			over = addToSet(over, h.Key)
		}
	}
	return over
}

// findKeysOver returns the keys whose counts after the hits are over a limit.
func findKeysOver(b batch) map[string]bool {
	var over map[string]bool
	for i := range b.hits {
		if b.after[i] > b.hits[i].Limit {
			over = addToSet(over, b.hits[i].Key)
		}
	}
	return over
}

func addToSet(set map[string]bool, key string) map[string]bool {
	if set == nil {
		set = make(map[string]bool)
	}
	set[key] = true
	return set
}

// addToCount returns count plus addend, at least zero and at most the maximum count.
func addToCount(count uint64, addend int64) uint64 {
	if addend >= 0 {
		return min(count+uint64(addend), math.MaxInt64)
	}
	if back := -uint64(addend); back < count {
		return count - back
	}
	return 0
}

// addHitsOfKeys counts the hits of the given keys. All other counts stay as they were read.
func (c *Client) addHitsOfKeys(ctx context.Context, b batch, keys map[string]bool) error {
	var indices []int
	for i := range b.hits {
		if keys[b.hits[i].Key] {
			indices = append(indices, i)
		}
	}
	part := b.selectHits(indices)
	if err := c.addBatch(ctx, part); err != nil {
		return err
	}
	b.storeCountsAt(indices, part)
	return nil
}

// subtractHits undoes the hits of a batch, except those of keys that are over a limit.
func (c *Client) subtractHits(ctx context.Context, b batch, over map[string]bool) error {
	var indices []int
	for i := range b.hits {
		if !over[b.hits[i].Key] && b.hits[i].Addend > 0 {
			indices = append(indices, i)
		}
	}
	part := b.selectHits(indices)
	for i := range part.hits {
		part.hits[i].Addend = -part.hits[i].Addend
	}
	err := c.undo(ctx, func(ctx context.Context) error { return c.runForEachHit(ctx, part, countCommand) })
	if err != nil {
		return err
	}
	latest := make(map[string]uint64, len(indices))
	for i := range part.hits {
		latest[part.hits[i].Key] = part.after[i]
	}
	for i := range part.hits {
		part.after[i] = latest[part.hits[i].Key]
	}
	b.storeCountsAt(indices, part)
	return nil
}

// undo takes back what a call has counted. If ctx ends first, it is done anyway.
func (c *Client) undo(ctx context.Context, subtract func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- subtract(c.deadlines.Bound(context.WithoutCancel(ctx))) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return storeUnavailable(errTimeout)
	}
}

// addBatch counts the hits. It limits a counter beyond the maximum count to the maximum, far from
// where memcached would overflow to zero.
func (c *Client) addBatch(ctx context.Context, b batch) error {
	if err := c.runForEachHit(ctx, b, countCommand); err != nil {
		return err
	}
	for i, count := range b.after {
		if count <= math.MaxInt64 {
			continue
		}
		excess := counter.Hit{Key: b.hits[i].Key, Addend: -int64(count - math.MaxInt64)}
		if err := c.runForEachHit(ctx, batch{[]counter.Hit{excess}, make([]uint64, 1)}, countCommand); err != nil {
			return err
		}
		b.after[i] = math.MaxInt64
	}
	return nil
}

// runForEachHit runs a command for each hit and stores the counts. The hits of one node are sent
// together and in order, and all nodes run in parallel.
func (c *Client) runForEachHit(ctx context.Context, b batch, command command) error {
	if len(b.hits) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return storeUnavailable(err)
	}
	first, err := c.findCommonNode(b.hits)
	if err != nil {
		return storeUnavailable(err)
	}
	if first == nil {
		return c.runOnSeveralNodes(ctx, b, command)
	}
	f := c.startRequest(ctx, first, b.hits, command)
	return c.finishRequest(ctx, f, b.after)
}

// findCommonNode returns the node of all hits, or nil if there are several.
func (c *Client) findCommonNode(hits []counter.Hit) (*node, error) {
	first, err := c.ring.findNode(hits[0].Key)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(hits); i++ {
		// The list may change between two calls of findNode.
		if n, err := c.ring.findNode(hits[i].Key); err != nil || n != first {
			return nil, err
		}
	}
	return first, nil
}

// runOnSeveralNodes is runForEachHit for hits of several nodes.
func (c *Client) runOnSeveralNodes(ctx context.Context, b batch, command command) error {
	places := make(map[*node][]int)
	for i := range b.hits {
		n, err := c.ring.findNode(b.hits[i].Key)
		if err != nil {
			return storeUnavailable(err)
		}
		places[n] = append(places[n], i)
	}
	type share struct {
		flight  request
		indices []int
		batch
	}
	shares := make([]share, 0, len(places))
	for n, indices := range places {
		part := b.selectHits(indices)
		shares = append(shares, share{c.startRequest(ctx, n, part.hits, command), indices, part})
	}
	var failure error
	for _, s := range shares {
		if err := c.finishRequest(ctx, s.flight, s.after); err != nil {
			failure = err // one error is enough
		}
		b.storeCountsAt(s.indices, s.batch)
	}
	return failure
}

// request is a pipeline in progress on a node, or the error that prevented it from being sent.
type request struct {
	node       *node
	pipeline   *pipeline
	connection *connection
	noRetry    bool // it subtracts hits, which must not happen twice
	hits       []counter.Hit
	counts     bool // it counts the hits, and does not only read
	err        error
}

// startRequest sends the commands of hits to a node.
func (c *Client) startRequest(ctx context.Context, n *node, hits []counter.Hit, command command) request {
	k := c.getPipeline()
	k.reset(len(hits))
	now := time.Now()
	f := request{node: n, pipeline: k, hits: hits, counts: command.counts}
	for i := range hits {
		k.commands = command.encode(k.commands, &hits[i], now)
		f.noRetry = f.noRetry || hits[i].Addend < 0
	}
	f.sendPipeline(ctx)
	return f
}

// sendPipeline sends the pipeline over an open connection of its node.
func (f *request) sendPipeline(ctx context.Context) {
	for {
		if f.connection, f.err = f.node.waitForConnection(ctx); f.err != nil {
			return
		}
		if f.err = f.connection.send(ctx, f.pipeline); !errors.Is(f.err, errClosed) {
			return
		}
	}
}

// finishRequest waits for the counts of a request. A node that restarts breaks all its connections
// at once, so the request is repeated over each of them within its deadline. If the first attempt
// was executed after all, its hits count twice, which never lets more requests through than the
// limit. A request that subtracts hits is not repeated, because subtracting twice would.
func (c *Client) finishRequest(ctx context.Context, f request, after []uint64) error {
	if c.awaitResponses(ctx, &f) {
		return storeUnavailable(f.err)
	}
	err := f.err
	if err == nil {
		err = f.storeCounts(after)
	}
	c.putPipeline(f.pipeline)
	if err != nil {
		return storeUnavailable(err)
	}
	return nil
}

// awaitResponses waits for the responses to a request. abandoned reports that the connection still uses
// its pipeline.
func (*Client) awaitResponses(ctx context.Context, f *request) (abandoned bool) {
	if f.err == nil {
		abandoned, f.err = f.connection.receive(ctx, f.pipeline)
	}
	for n := 0; n < len(f.node.slots) && errors.Is(f.err, errConnectionLost) && !f.noRetry; n++ {
		if f.sendPipeline(ctx); f.err == nil {
			abandoned, f.err = f.connection.receive(ctx, f.pipeline)
		}
	}
	return abandoned
}

// storeCounts copies the counts from the responses to after. A counter that is missing is zero, but an
// addition always has a count.
func (f *request) storeCounts(after []uint64) error {
	for i := range f.pipeline.responses {
		r := &f.pipeline.responses[i]
		switch {
		case r.err != nil:
			return r.err
		case !r.number && (!r.missing || f.counts && f.hits[i].Addend > 0):
			return errNoCount
		}
		after[i] = r.count
	}
	return nil
}

// getPipeline returns a pipeline from the pool.
func (c *Client) getPipeline() *pipeline { return c.pipelines.Get().(*pipeline) } //nolint:errcheck // the pool holds nothing else

// putPipeline returns a pipeline to the pool. No connection may use it any more.
func (c *Client) putPipeline(k *pipeline) {
	if cap(k.responses) <= maxPooledResponses {
		c.pipelines.Put(k)
	}
}

// maxPooledResponses is the maximum capacity for responses of a pipeline in the pool.
const maxPooledResponses = 256
