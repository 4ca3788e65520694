package lease

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// The rates at which keys become cool (contract L-70).
const (
	coolBelow = 10 // decisions a second
	coolAfter = 5 * time.Second
)

// hotKey is a key with a lease.
type hotKey struct {
	id ID

	mutex   sync.Mutex
	window  *window // the latest; nil before the first hit
	removed bool

	decisions float64   // since the last look at the rate
	looked    time.Time // when that was
	slowSince time.Time // since when the rate is below coolBelow; zero if it is not
	local     uint64    // decisions without the store since then
}

// window is one window of a hot key.
type window struct {
	key  *hotKey
	hit  counter.Hit // without an addend
	ends time.Time

	// The mutex of key protects what follows.
	lease   ratelimit.Lease
	flight  *flight // the call in progress, or nil
	waiting uint64  // hits of the callers that wait for it
}

// flight is a call to the store in progress. err is set when done is closed.
type flight struct {
	givesBack bool // until it has ended, no hit is known to be over the limit
	done      chan struct{}
	err       error
}

// windowOf returns the window of a hit, which may be a new one. It returns nil if the key is not
// hot any more, and for the hit of an earlier window or of another key with the same ID. The mutex
// must be held.
func (k *hotKey) windowOf(h *counter.Hit, now time.Time) *window {
	if k.removed {
		return nil
	}
	k.decisions++
	if k.window != nil && k.window.hit.Key == h.Key {
		return k.window
	}
	ends := now.Add(h.Left)
	next := &window{key: k, hit: *h, ends: ends}
	next.hit.Key, next.hit.Addend = strings.Clone(h.Key), 0
	switch {
	case k.window == nil:
		k.looked = now
	case ends.After(k.window.ends):
		next.lease = k.window.lease.Turn()
	default:
		return nil
	}
	k.window = next
	return next
}

// count counts the hit of a batch without the store, if possible. The mutex must be held.
func (w *window) count(b *Batch, index int) (ok bool) {
	h := &b.Hits[index]
	if h.Addend < 0 || w.flight != nil && w.flight.givesBack {
		return false
	}
	if b.Results[index].Count, ok = w.lease.Count(uint64(h.Addend), h.Limit, b.Now); ok {
		w.key.local++
	}
	return ok
}

// progress says how a hit goes on.
type progress uint8

const (
	isCounted progress = iota
	calls              // it needs a call of its own
	waits              // it waits for a call in progress
)

// begin counts the hit if possible. Else it begins the call that the hit needs, or joins those who
// wait for the call in progress.
func (p *pending) begin(b *Batch) progress {
	w := p.window
	if w == nil {
		return calls
	}
	w.key.mutex.Lock()
	defer w.key.mutex.Unlock()
	p.stopWaiting(b)
	h := &b.Hits[p.index]
	switch {
	case w.key.removed:
		p.window = nil
		return calls
	case w.count(b, p.index):
		return isCounted
	case w.flight != nil && w.lease.IsUnsure() && h.Addend > 0:
		// The store may be away: it learns how many callers get no answer, and calls soon fail at
		// once.
		p.window = nil
		return calls
	case w.flight != nil:
		p.startWaiting(b, w.flight)
		return waits
	case h.Addend < 0:
		p.call = w.lease.GiveBack(-uint64(h.Addend))
	default:
		p.call = w.lease.Take(ratelimit.Want{Hits: uint64(h.Addend), Waiting: w.waiting, Limit: h.Limit, Now: b.Now})
	}
	w.flight = &flight{givesBack: h.Addend < 0, done: make(chan struct{})}
	return calls
}

// join makes the hit wait for the call that an earlier hit of its key in the batch waits for: hits
// of one key are counted in order.
func (p *pending) join(b *Batch, f *flight) {
	p.window.key.mutex.Lock()
	defer p.window.key.mutex.Unlock()
	p.startWaiting(b, f)
}

// startWaiting records that the hit waits for a call. The mutex must be held.
func (p *pending) startWaiting(b *Batch, f *flight) {
	p.stopWaiting(b)
	p.flight = f
	p.window.waiting += uint64(max(b.Hits[p.index].Addend, 0))
}

// stopWaiting records that the hit no longer waits, if it did. It is called when the hit goes on,
// and not when the call has ended: the first waiting hit that goes on makes a call for all of them.
// The mutex must be held.
func (p *pending) stopWaiting(b *Batch) {
	if p.flight != nil {
		p.flight = nil
		p.window.waiting -= uint64(max(b.Hits[p.index].Addend, 0))
	}
}

// giveUp ends hits that are not counted.
func giveUp(b *Batch, left []pending) {
	for i := range left {
		left[i].leave(b)
	}
}

// leave ends the waiting of a hit, if it waits.
func (p *pending) leave(b *Batch) {
	if p.window == nil {
		return
	}
	p.window.key.mutex.Lock()
	defer p.window.key.mutex.Unlock()
	p.stopWaiting(b)
}

// wait waits for the call in progress, and returns its error. When patience ends first, the hit is
// to be counted by itself.
func (p *pending) wait(ctx, patience context.Context, b *Batch) error {
	select {
	case <-p.flight.done:
		return p.flight.err
	default:
	}
	select {
	case <-p.flight.done:
		return p.flight.err
	case <-patience.Done():
	}
	if err := ctx.Err(); err != nil {
		return notInTime(err)
	}
	p.leave(b)
	p.window = nil
	return nil
}

// settle ends a call to the store and returns the count for its caller.
func (w *window) settle(c ratelimit.LeaseCall, after uint64, now time.Time, err error) (count uint64) {
	w.key.mutex.Lock()
	defer w.key.mutex.Unlock()
	if err == nil {
		count = w.lease.Settle(c, after, now)
	} else {
		w.lease.Fail(c)
	}
	f := w.flight
	w.flight, f.err = nil, err
	close(f.done)
	return count
}

// isCool looks at the rate of the key, and reports whether it has been below coolBelow for
// coolAfter. The mutex must be held.
func (k *hotKey) isCool(now time.Time) bool {
	elapsed := now.Sub(k.looked)
	if elapsed <= 0 {
		return false
	}
	slow := k.decisions < coolBelow*elapsed.Seconds()
	if slow && k.slowSince.IsZero() {
		k.slowSince = k.looked
	} else if !slow {
		k.slowSince = time.Time{}
	}
	k.decisions, k.looked = 0, now
	return slow && now.Sub(k.slowSince) >= coolAfter
}

const (
	// hotDecisions is the number of decisions within a second that makes a key hot (contract L-70).
	hotDecisions = 50

	heatSlots = 1 << 16 // of 8 bytes
	heatTick  = 16 * time.Millisecond
	heatTicks = int64(time.Second / heatTick) // in a second

	// A slot has the upper half of an ID, the tick of its first decision, and the number of
	// decisions.
	countBits = 10
	tickBits  = 22
	countMask = 1<<countBits - 1
	tickMask  = 1<<tickBits - 1
)

// heatTable finds the keys that become hot, in bounded memory. A slot counts the decisions of one
// key; those of other keys with the same slot are subtracted, so that a key which is not hot loses
// its slot.
type heatTable [heatSlots]atomic.Uint64

// isHot counts a decision, and reports whether there were hotDecisions within a second.
func (t *heatTable) isHot(id ID, now time.Time) bool {
	slot := &t[id%heatSlots]
	tick := now.UnixMilli() / heatTick.Milliseconds() & tickMask
	for range 4 { // a decision that is not counted does little harm
		before := slot.Load()
		after, hot := nextHeat(before, id, tick)
		if hot {
			return true
		}
		if slot.CompareAndSwap(before, after) {
			return false
		}
	}
	return false
}

// nextHeat returns a slot after a decision at a tick.
func nextHeat(slot uint64, id ID, tick int64) (after uint64, hot bool) {
	owner, first, count := slot>>(tickBits+countBits), int64(slot>>countBits&tickMask), slot&countMask
	recent := (tick-first)&tickMask < heatTicks
	switch {
	case owner == uint64(id>>32) && recent:
		return slot + 1, count+1 >= hotDecisions
	case recent && count > 1:
		return slot - 1, false
	default:
		return uint64(id>>32)<<(tickBits+countBits) | uint64(tick)<<countBits | 1, false //nolint:gosec // not negative
	}
}
