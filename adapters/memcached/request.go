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
	f, now := c.newRequest(first, len(b.hits)), time.Now()
	for i := range b.hits {
		f.addHit(command, &b.hits[i], now)
	}
	f.sendPipeline(ctx)
	if c.awaitResponses(ctx, &f) {
		return storeUnavailable(f.err)
	}
	defer c.putPipeline(f.pipeline)
	if f.err != nil {
		return storeUnavailable(f.err)
	}
	return b.storeCounts(f.pipeline.responses, command)
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
	keys, now := make([]string, len(b.hits)), time.Now()
	for i := range b.hits {
		keys[i] = b.hits[i].Key
	}
	answers, err := c.exchange(ctx, keys, func(f *request, i int) {
		f.addHit(command, &b.hits[i], now)
	})
	if err != nil {
		return err
	}
	return b.storeCounts(answers, command)
}

// exchange sends one command for each key to its node, and returns the responses. It calls encode
// to append each command to the request of its node.
func (c *Client) exchange(ctx context.Context, keys []string, encode func(f *request, i int)) ([]response, error) {
	if err := ctx.Err(); err != nil {
		return nil, storeUnavailable(err)
	}
	places := map[*node][]int{}
	for i, key := range keys {
		n, err := c.ring.findNode(key)
		if err != nil {
			return nil, storeUnavailable(err)
		}
		places[n] = append(places[n], i)
	}
	requests := make(map[*node]request, len(places))
	for n, indices := range places {
		f := c.newRequest(n, len(indices))
		for _, i := range indices {
			encode(&f, i)
		}
		f.sendPipeline(ctx)
		requests[n] = f
	}
	answers := make([]response, len(keys))
	var failure error
	for n, f := range requests {
		abandoned := c.awaitResponses(ctx, &f)
		if f.err != nil {
			failure = storeUnavailable(f.err)
		} else {
			for at, i := range places[n] {
				answers[i] = f.pipeline.responses[at]
			}
		}
		if !abandoned {
			c.putPipeline(f.pipeline)
		}
	}
	return answers, failure
}

// request is a pipeline in progress on a node, or the error that prevented it from being sent.
type request struct {
	node       *node
	pipeline   *pipeline
	connection *connection
	noRetry    bool // it subtracts hits, which must not happen twice
	err        error
}

// newRequest returns a request of n commands to a node, which are not appended yet.
func (c *Client) newRequest(to *node, n int) request {
	k := c.getPipeline()
	k.reset(n)
	return request{node: to, pipeline: k}
}

// addHit appends the command for a hit.
func (f *request) addHit(c command, h *counter.Hit, now time.Time) {
	f.pipeline.commands = c.encode(f.pipeline.commands, h, now)
	f.noRetry = f.noRetry || h.Addend < 0
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

// awaitResponses waits for the responses to a request. abandoned reports that the connection still
// uses its pipeline. A node that restarts breaks all its connections at once, so the request is
// repeated over each of them within its deadline. If the first attempt was executed after all, its
// hits count twice, which never lets more requests through than the limit. A request that subtracts
// hits is not repeated, because subtracting twice would.
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
func (b batch) storeCounts(responses []response, of command) error {
	for i := range responses {
		r := &responses[i]
		switch {
		case r.err != nil:
			return storeUnavailable(r.err)
		case !r.number && (!r.missing || of.counts && b.hits[i].Addend > 0):
			return storeUnavailable(errNoCount)
		}
		b.results[i] = counter.Result{Count: r.count}
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
