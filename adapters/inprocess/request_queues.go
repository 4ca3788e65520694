package inprocess

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

const queueShardCount = 16

// requestQueues combines concurrent tries with the same key into one call to the store. While a
// call for a key is in progress, new tries wait, and the next call counts them together. Each try
// still gets its own count, as if the tries had been counted one by one in the order in which they
// arrived. So a busy caller costs the store one call per round trip, not one call per request.
//
// The zero value is not usable; call newRequestQueues.
type requestQueues struct {
	store  counter.Store
	seed   maphash.Seed
	shards [queueShardCount]queueShard
}

// queueShard is a part of the keys, protected by one lock.
type queueShard struct {
	mu   sync.Mutex
	next map[string]*round // has a key while a call for it is in progress; the value is nil if no try waits
}

// round is one call to the store on behalf of several tries.
type round struct {
	hit   counter.Hit   // its addend is the number of tries; it grows until the call
	done  chan struct{} // closed when the fields below are set
	after uint64
	err   error
}

func newRequestQueues(store counter.Store) *requestQueues {
	q := &requestQueues{store: store, seed: maphash.MakeSeed()}
	for i := range q.shards {
		q.shards[i].next = make(map[string]*round)
	}
	return q
}

// countTogether adds one to a counter and returns the new count. The addend of h must be 1. If ctx
// ends while the try waits, the error has the kind fault.Unavailable, and the try is counted
// anyway.
func (q *requestQueues) countTogether(ctx context.Context, h counter.Hit) (uint64, error) {
	p := &q.shards[maphash.String(q.seed, h.Key)%queueShardCount]
	p.mu.Lock()
	r, busy := p.next[h.Key]
	if !busy {
		p.next[h.Key] = nil
		p.mu.Unlock()
		defer q.sendNext(ctx, p, h.Key) // even if this call fails
		return addHit(ctx, q.store, h)
	}
	if r == nil {
		r = &round{hit: h, done: make(chan struct{})}
		p.next[h.Key] = r
	} else {
		r.hit.Addend++
	}
	position := r.hit.Addend
	p.mu.Unlock()
	select {
	case <-r.done:
		return r.after - uint64(r.hit.Addend-position), r.err
	case <-ctx.Done():
		return 0, fault.Wrap(fault.Unavailable, "the try was not counted in time", ctx.Err())
	}
}

// sendNext sends the waiting round of a key in a new goroutine, because the caller has its own
// result and must not wait for others. If no round waits, it removes the key.
func (q *requestQueues) sendNext(ctx context.Context, p *queueShard, key string) {
	r := p.takeRound(key)
	if r == nil {
		return
	}
	ctx = context.WithoutCancel(ctx) // the round belongs to several tries; the store has its own deadline
	go func() {
		for ; r != nil; r = p.takeRound(key) {
			r.after, r.err = addHit(ctx, q.store, r.hit)
			close(r.done)
		}
	}()
}

// takeRound returns the waiting round of a key; no try can join it after that. If no round
// waits, it removes the key.
func (p *queueShard) takeRound(key string) *round {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.next[key]
	if r == nil {
		delete(p.next, key)
		return nil
	}
	p.next[key] = nil
	return r
}

// addHit counts one hit in a store and returns the new count.
func addHit(ctx context.Context, store counter.Store, h counter.Hit) (uint64, error) {
	after := make([]uint64, 1)
	err := store.Add(ctx, []counter.Hit{h}, after)
	return after[0], err
}
