package lease

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// patiencePart is the part of the timeout of the store for which a hit waits for the call of
// another caller: 1/8. After that it is counted by itself, so that the decision has its answer in
// time.
const patiencePart = 8

// pending is a hit of a batch that is not counted yet.
type pending struct {
	index  int
	window *window // nil if the key has no lease, or the hit is counted by itself
	call   ratelimit.LeaseCall
	flight *flight // the call of another caller that it waits for
}

// addPending counts hits with the store. In each round, one call counts the hits that need not wait
// for a call of another caller. No call of its own waits for others, so callers cannot wait for
// each other in a circle.
func (l *Leases) addPending(ctx context.Context, b *Batch, left []pending) error {
	ctx = l.Bound(ctx)
	patience, end := l.patience(ctx)
	defer end()
	var sent []*ownCall
	for len(left) > 0 {
		if err := ctx.Err(); err != nil {
			giveUp(b, left)
			return notInTime(err)
		}
		own, waiting := beginAll(b, left)
		if len(own) > 0 {
			sent = append(sent, l.send(ctx, b, own))
		}
		for i := range waiting {
			if err := waiting[i].wait(ctx, patience, b); err != nil {
				giveUp(b, waiting)
				return err
			}
		}
		left = waiting
	}
	var err error
	for _, c := range sent {
		if failed := c.wait(ctx, b); err == nil {
			err = failed
		}
	}
	return err
}

// patience returns the context of hits that wait for calls of others.
func (l *Leases) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.deadlines == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, l.deadlines.Timeout()/patiencePart)
}

// beginAll begins to count hits. It returns those that need a call of their own, and those that
// wait.
func beginAll(b *Batch, left []pending) (own, waiting []pending) {
	var flights smallMap[*window, *flight]
	for _, p := range left {
		if f := flights.get(p.window); f != nil {
			p.join(b, f)
			waiting = append(waiting, p)
			continue
		}
		switch p.begin(b) {
		case calls:
			own = append(own, p)
		case waits:
			flights.put(p.window, p.flight)
			waiting = append(waiting, p)
		case isCounted:
		}
	}
	return own, waiting
}

// ownCall is a call to the store of this caller. Its results and err are set when done is closed.
type ownCall struct {
	hits    []pending
	results []counter.Result
	done    chan struct{}
	err     error
}

// send counts hits with one call to the store. The call goes on when ctx ends.
func (l *Leases) send(ctx context.Context, b *Batch, own []pending) *ownCall {
	c := &ownCall{hits: own, results: make([]counter.Result, len(own)), done: make(chan struct{})}
	hits := make([]counter.Hit, len(own))
	for i, p := range own {
		hits[i] = b.Hits[p.index]
		if p.window != nil {
			hits[i].Addend = p.call.Addend
			l.stats.Taken.Add(p.call.Share())
		}
	}
	kept := context.WithoutCancel(ctx)
	go func() {
		c.err = l.store.Count(kept, hits, c.results, counter.Each)
		for i, p := range own {
			if p.window != nil {
				c.results[i].Count = p.window.settle(p.call, c.results[i].Count, l.clock.Now(), c.err)
			}
		}
		close(c.done)
	}()
	return c
}

// wait waits for the call, writes the results to the batch, and returns its error.
func (c *ownCall) wait(ctx context.Context, b *Batch) error {
	select {
	case <-c.done:
	default:
		select {
		case <-c.done:
		case <-ctx.Done():
			return notInTime(ctx.Err())
		}
	}
	for i, p := range c.hits {
		b.Results[p.index] = c.results[i]
	}
	return c.err
}

func notInTime(err error) error {
	return fault.Wrap(fault.Unavailable, "the hits were not counted in time", err)
}

// fewKeys is the number of keys that a smallMap compares one by one.
const fewKeys = 8

// smallMap is a map that needs no memory while it has few keys. The zero value is empty. A value
// must not be the zero value.
type smallMap[K, V comparable] struct {
	keys   [fewKeys]K
	values [fewKeys]V
	size   int
	many   map[K]V // nil while there are few keys
}

func (m *smallMap[K, V]) isEmpty() bool { return m.size == 0 }

// get returns the value of a key, or the zero value.
func (m *smallMap[K, V]) get(key K) (value V) {
	if m.many != nil {
		return m.many[key]
	}
	for i := range m.size {
		if m.keys[i] == key {
			return m.values[i]
		}
	}
	return value
}

// put sets the value of a new key.
func (m *smallMap[K, V]) put(key K, value V) {
	m.size++
	switch {
	case m.many != nil:
		m.many[key] = value
	case m.size <= fewKeys:
		m.keys[m.size-1], m.values[m.size-1] = key, value
	default:
		m.many = map[K]V{key: value}
		for i := range m.keys {
			m.many[m.keys[i]] = m.values[i]
		}
	}
}
