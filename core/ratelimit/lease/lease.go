// Package lease counts hits in the counter store and holds shares of the limits of hot keys, so
// that their hits need no call to the store (contract L-70, L-71). It decides neither what is
// counted nor what an exceeded limit means; decide and the limits of the API do.
package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// ID identifies a counter whatever its window, within this process. 0 means that the counter has no
// lease. Two counters should have different IDs: of those with the same one, only one has a lease.
type ID uint64

// Batch is hits that are counted together.
type Batch struct {
	Hits []counter.Hit // with Left, which says which window is the later one
	IDs  []ID          // of the hits; as long as Hits
	// Results receives the result of each hit, as counter.Store writes it, but without what this
	// instance holds; as long as Hits.
	Results []counter.Result
	Now     time.Time // of the decision, from which Left was computed
}

const (
	// maxLeases is the number of places for keys with a lease. A hot key that finds no place is
	// counted one by one.
	maxLeases = 1 << 13
	// places is the number of places that one key may have.
	places = 8
)

// Leases counts hits in a store. It is safe for concurrent use.
type Leases struct {
	store     counter.Store
	clock     clock.Clock
	deadlines counter.Deadlines // nil without any
	heat      heatTable

	mutex  sync.Mutex // protects changes of keys
	keys   [maxLeases]atomic.Pointer[hotKey]
	closed atomic.Bool
	stats  Stats
}

// Stats are counts since the start. They are live.
type Stats struct {
	Keys  atomic.Int64  // that are hot now
	Hits  atomic.Uint64 // descriptors and requests that were decided without the store
	Taken atomic.Uint64 // hits that were taken from the store as a share
	Given atomic.Uint64 // hits of shares that were given back
}

// New returns Leases on a store. Call Run, so that shares are given back, and Close. Deadlines are
// those of the store; nil for a store that always answers at once.
func New(store counter.Store, c clock.Clock, d counter.Deadlines) *Leases {
	return &Leases{store: store, clock: c, deadlines: d}
}

// Bound returns the context of a decision that needs several calls, as counter.Deadlines does.
func (l *Leases) Bound(ctx context.Context) context.Context {
	if l.deadlines == nil {
		return ctx
	}
	return l.deadlines.Bound(ctx)
}

// Stats returns the counts, which stay zero for nil Leases.
func (l *Leases) Stats() *Stats {
	if l == nil {
		return new(Stats)
	}
	return &l.stats
}

// Add counts hits: those of hot keys from the shares of this instance as far as these suffice, all
// others with one call to the store. If the store fails, so do the hits that wait for that call,
// with the same error; the hits that a share sufficed for stay counted.
//
// A call that takes a share goes on when the context of its caller ends, because its outcome
// matters to other callers.
func (l *Leases) Add(ctx context.Context, b Batch) error {
	var few [4]pending
	left := few[:0]
	var known smallMap[string, *window] // of the hits that are not counted yet
	for i := range b.Hits {
		w := known.get(b.Hits[i].Key) // hits of one key are counted in order
		if w == nil {
			var done bool
			if w, done = l.countHere(&b, i); done {
				continue
			}
			if w != nil {
				known.put(b.Hits[i].Key, w)
			}
		}
		left = append(left, pending{index: i, window: w})
	}
	switch {
	case len(left) == 0:
		return nil
	case known.isEmpty() && len(left) == len(b.Hits):
		return l.store.Count(ctx, b.Hits, b.Results, counter.Each)
	case ctx.Err() != nil:
		return fault.Wrap(fault.Unavailable, "the caller gave up", ctx.Err())
	}
	return l.addPending(ctx, &b, left)
}

// countHere counts a hit from the share of this instance, and reports whether that was possible. It
// returns the window of the hit, which is nil if its key has no lease.
func (l *Leases) countHere(b *Batch, index int) (w *window, ok bool) {
	id, h := b.IDs[index], &b.Hits[index]
	if id == 0 || l.closed.Load() {
		return nil, false
	}
	k := l.findKey(id)
	if k == nil {
		if h.Addend < 0 || !l.heat.isHot(id, b.Now) {
			return nil, false
		}
		if k = l.addKey(id); k == nil {
			return nil, false
		}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if w = k.windowOf(h, b.Now); w != nil {
		ok = w.count(b, index)
	}
	return w, ok
}

// findKey returns a hot key, or nil.
func (l *Leases) findKey(id ID) *hotKey {
	for i := range ID(places) {
		if k := l.keys[(id+i)%maxLeases].Load(); k != nil && k.id == id {
			return k
		}
	}
	return nil
}

// addKey returns the hot key that has the ID from now on, or nil if there is no place for it.
func (l *Leases) addKey(id ID) *hotKey {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if k := l.findKey(id); k != nil {
		return k
	}
	for i := range ID(places) {
		if place := &l.keys[(id+i)%maxLeases]; !l.closed.Load() && place.Load() == nil {
			k := &hotKey{id: id}
			place.Store(k)
			l.stats.Keys.Add(1)
			return k
		}
	}
	return nil
}

// removeKey frees the place of a key.
func (l *Leases) removeKey(k *hotKey) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for i := range ID(places) {
		if l.keys[(k.id+i)%maxLeases].CompareAndSwap(k, nil) {
			l.stats.Keys.Add(-1)
		}
	}
}
