package memcached

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// runForEachHit runs a command for each hit and stores the counts. The hits of one node are sent
// together and in order, and all nodes run in parallel.
func (c *Client) runForEachHit(ctx context.Context, b batch, command command) error {
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
	return c.finishRequest(ctx, f, b.results)
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
		results []counter.Result
	}
	shares := make([]share, 0, len(places))
	for n, indices := range places {
		hits := make([]counter.Hit, len(indices))
		for i, at := range indices {
			hits[i] = b.hits[at]
		}
		shares = append(shares, share{
			c.startRequest(ctx, n, hits, command), indices, make([]counter.Result, len(hits)),
		})
	}
	var failure error
	for _, s := range shares {
		if err := c.finishRequest(ctx, s.flight, s.results); err != nil {
			failure = err // one error is enough
		}
		for i, at := range s.indices {
			b.results[at] = s.results[i]
		}
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
func (c *Client) finishRequest(ctx context.Context, f request, results []counter.Result) error {
	if c.awaitResponses(ctx, &f) {
		return storeUnavailable(f.err)
	}
	err := f.err
	if err == nil {
		err = f.storeCounts(results)
	}
	c.putPipeline(f.pipeline)
	if err != nil {
		return storeUnavailable(err)
	}
	return nil
}

// awaitResponses waits for the responses to a request. abandoned reports that the connection still
// uses its pipeline.
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

// storeCounts copies the counts from the responses to the results. A counter that is missing is
// zero, but an addition always has a count.
func (f *request) storeCounts(results []counter.Result) error {
	for i := range f.pipeline.responses {
		r := &f.pipeline.responses[i]
		switch {
		case r.err != nil:
			return r.err
		case !r.number && (!r.missing || f.counts && f.hits[i].Addend > 0):
			return errNoCount
		}
		results[i] = counter.Result{Count: r.count}
	}
	return nil
}

// getPipeline returns a pipeline from the pool.
func (c *Client) getPipeline() *pipeline {
	return c.pipelines.Get().(*pipeline) //nolint:errcheck // the pool holds nothing else
}

// putPipeline returns a pipeline to the pool. No connection may use it any more.
func (c *Client) putPipeline(k *pipeline) {
	if cap(k.responses) <= maxPooledResponses {
		c.pipelines.Put(k)
	}
}

// maxPooledResponses is the maximum capacity for responses of a pipeline in the pool.
const maxPooledResponses = 256
