package inprocess

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

const lineParts = 16

// lines count the tries of a key that come at once in one call to the store: while one call for the key is under way, those
// that come meanwhile wait, and go together in the next. Each still learns a count that no other has, as if each had been sent
// for itself in the order in which they came. A busy caller thereby costs the store, and the way to it, a call a round trip
// rather than a call a request.
//
// The zero value is not ready: see newLines.
type requestQueues struct {
	store counter.Store
	seed  maphash.Seed
	parts [lineParts]queueShard
}

// linePart is the part of the keys under one lock.
type queueShard struct {
	mu   sync.Mutex
	next map[string]*round // by key, while a call for it is under way; nil while nobody waits
}

// round is one call that several wait for.
type round struct {
	hit   counter.Hit   // its addend grows until the round is sent
	done  chan struct{} // closed when the fields below are set
	after uint64
	err   error
}

func newRequestQueues(store counter.Store) *requestQueues {
	l := &requestQueues{store: store, seed: maphash.MakeSeed()}
	for i := range l.parts {
		l.parts[i].next = make(map[string]*round)
	}
	return l
}

// count adds one to a counter and returns the count after it. h.Addend must be 1. A caller whose context ends while it waits gets
// fault.Unavailable, and its try is counted.
func (l *requestQueues) countTogether(ctx context.Context, h counter.Hit) (uint64, error) {
	p := &l.parts[maphash.String(l.seed, h.Key)%lineParts]
	p.mu.Lock()
	r, busy := p.next[h.Key]
	if !busy {
		p.next[h.Key] = nil
		p.mu.Unlock()
		defer l.sendNext(ctx, p, h.Key) // whatever becomes of this call
		return addHit(ctx, l.store, h)
	}
	if r == nil {
		r = &round{hit: h, done: make(chan struct{})}
		p.next[h.Key] = r
	} else {
		r.hit.Addend++
	}
	place := r.hit.Addend
	p.mu.Unlock()
	select {
	case <-r.done:
		return r.after - uint64(r.hit.Addend-place), r.err
	case <-ctx.Done():
		return 0, fault.Wrap(fault.Unavailable, "", "the attempt was not counted in time", ctx.Err())
	}
}

// sendNext sends the round that waits for a key, if there is one, from a goroutine of its own: whoever was before has an answer and
// must not wait for others.
func (l *requestQueues) sendNext(ctx context.Context, p *queueShard, key string) {
	r := p.takeRound(key)
	if r == nil {
		return
	}
	ctx = context.WithoutCancel(ctx) // it is the business of many by now; the store has a deadline of its own
	go func() {
		for ; r != nil; r = p.takeRound(key) {
			r.after, r.err = addHit(ctx, l.store, r.hit)
			close(r.done)
		}
	}()
}

// take returns the round that waits for a key and lets nobody join it any more. Without one the key's line ends.
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

// add is Add of a store for one hit.
func addHit(ctx context.Context, store counter.Store, h counter.Hit) (uint64, error) {
	after := make([]uint64, 1)
	err := store.Add(ctx, []counter.Hit{h}, after)
	return after[0], err
}
