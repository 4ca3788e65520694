package lease

import (
	"context"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

const (
	sweepEvery = 500 * time.Millisecond
	// maxReturns is the greatest number of shares that one call gives back.
	maxReturns = 100
)

// giveBackTimeout is how long an instance that stops waits for calls that take shares.
const giveBackTimeout = 2 * time.Second

// Start returns Leases that run until the returned function is called, which gives back what this
// instance holds. It returns nil without deadlines: a store in the process is fast.
func Start(store counter.Store, c clock.Clock, w clock.Waiter, d counter.Deadlines) (*Leases, func()) {
	if d == nil {
		return nil, func() {}
	}
	l := New(store, c, d)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { l.Run(ctx, w) })
	return l, func() {
		cancel()
		done.Wait()
		bounded, release := context.WithTimeout(context.Background(), giveBackTimeout)
		defer release()
		l.Close(bounded)
	}
}

// Run sweeps until ctx ends.
func (l *Leases) Run(ctx context.Context, w clock.Waiter) {
	for w.Wait(ctx, sweepEvery) {
		l.Sweep(ctx)
	}
}

// Sweep gives back the shares of keys that have become cool, and shares that are not needed. If the
// store fails, they are lost until their windows end.
func (l *Leases) Sweep(ctx context.Context) {
	now := l.clock.Now()
	l.giveBackAll(ctx, func(k *hotKey) (rest, remove bool) {
		cool := k.isCool(now)
		return cool || k.window != nil && k.window.lease.IsIdle(now), cool
	})
}

// Close gives back all shares, and waits for calls in progress until ctx ends. Hits after it are
// counted one by one.
func (l *Leases) Close(ctx context.Context) {
	l.closed.Store(true)
	for {
		l.giveBackAll(ctx, func(*hotKey) (rest, remove bool) { return true, true })
		f := l.findFlight()
		if f == nil {
			return
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return
		}
	}
}

// findFlight returns a call in progress, or nil.
func (l *Leases) findFlight() *flight {
	for i := range l.keys {
		k := l.keys[i].Load()
		if k == nil {
			continue
		}
		k.mutex.Lock()
		f := k.window.currentFlight()
		k.mutex.Unlock()
		if f != nil {
			return f
		}
	}
	return nil
}

// currentFlight returns the call in progress, or nil. The mutex of the key must be held.
func (w *window) currentFlight() *flight {
	if w == nil {
		return nil
	}
	return w.flight
}

// returned is a share on its way back to the store.
type returned struct {
	window *window
	call   ratelimit.LeaseCall
}

// giveBackAll gives back the shares of the keys that choose selects, and removes keys. choose is
// called with the mutex of the key.
func (l *Leases) giveBackAll(ctx context.Context, choose func(*hotKey) (rest, remove bool)) {
	if l.stats.Keys.Load() == 0 {
		return
	}
	var list []returned
	for i := range l.keys {
		k := l.keys[i].Load()
		if k == nil {
			continue
		}
		r, removed := l.beginReturn(k, choose)
		if removed {
			l.removeKey(k)
		}
		if r.window != nil {
			list = append(list, r)
		}
		if len(list) == maxReturns {
			l.sendReturns(ctx, list)
			list = list[:0]
		}
	}
	if len(list) > 0 {
		l.sendReturns(ctx, list)
	}
}

// beginReturn begins to give back the share of a key; without a share, the window of the result is
// nil. A key whose call is in progress is in use: it stays as it is.
func (l *Leases) beginReturn(k *hotKey, choose func(*hotKey) (rest, remove bool)) (r returned, removed bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	l.stats.Hits.Add(k.local)
	k.local = 0
	rest, remove := choose(k)
	w := k.window
	if w.currentFlight() != nil {
		return returned{}, false
	}
	k.removed = remove
	if w == nil || !rest || !l.clock.Now().Before(w.ends) {
		return returned{}, remove
	}
	if r = (returned{window: w, call: w.lease.GiveBack(0)}); r.call.Addend == 0 {
		return returned{}, remove
	}
	w.flight = &flight{givesBack: true, done: make(chan struct{})}
	return r, remove
}

// sendReturns gives back shares with one call to the store. The context does not end it, because
// what it gives back would be lost.
func (l *Leases) sendReturns(ctx context.Context, list []returned) {
	now := l.clock.Now()
	hits, results := make([]counter.Hit, len(list)), make([]counter.Result, len(list))
	for i, r := range list {
		hits[i] = r.window.hit
		hits[i].Addend, hits[i].Left = r.call.Addend, max(r.window.ends.Sub(now), 1)
		l.stats.Given.Add(uint64(max(-r.call.Addend, 0)))
	}
	err := l.store.Count(context.WithoutCancel(ctx), hits, results, counter.Each)
	for i, r := range list {
		r.window.settle(r.call, results[i].Count, l.clock.Now(), err)
	}
}
