// Package merge combines additions to one counter that are in progress at the same time into one call
// to a store. It does not make calls that are needed any other time: an addition that is alone is sent
// at once.
package merge

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"
)

// slotCount is the number of counters whose additions can be combined at the same time. Of counters with
// the same slot, only one can.
const slotCount = 1 << 12

// Sum is what several callers add together to the counter of a key.
type Sum[H any] struct {
	Key     string
	Counter H // what else the store must know of the counter
	N       int64
	Callers int
}

// Send adds a sum to its counter and returns the count after it.
type Send[H any] func(ctx context.Context, s Sum[H]) (uint64, error)

// ErrTimeout is the error of an addition that has waited for too long.
var ErrTimeout = errors.New("the call for the counter was not answered in time")

// Adder combines additions. While a call for a key is in progress, new additions to it wait, and the
// next call makes them together. Each still gets its own count, as if they had been made one by one in
// the order in which they arrived. It is safe for concurrent use.
type Adder[H any] struct {
	send    Send[H]
	timeout time.Duration
	seed    maphash.Seed
	slots   [slotCount]slot[H]
}

// slot is the state of one key whose additions are in progress.
type slot[H any] struct {
	mutex sync.Mutex
	busy  bool
	key   string
	next  *round[H] // the additions that wait, or nil
	_     [24]byte  // so that two slots do not share a cache line
}

// round is one call on behalf of several callers.
type round[H any] struct {
	sum     Sum[H] // without its key; N and Callers grow until the call begins
	timer   *time.Timer
	expired chan struct{} // closed when its callers have waited for too long
	done    chan struct{} // closed when the fields below are set
	after   uint64
	err     error
}

// New returns an Adder that makes combined calls with send, whose calls must end by themselves. An
// addition waits no longer than timeout, counted from when the first of its combined call began to wait.
func New[H any](timeout time.Duration, send Send[H]) *Adder[H] {
	return &Adder[H]{send: send, timeout: timeout, seed: maphash.MakeSeed()}
}

// Ticket is the place of one addition. If it does not wait, the caller must add by itself and then call
// End.
type Ticket[H any] struct {
	slot     *slot[H] // that the caller keeps busy, or nil
	round    *round[H]
	position int64
}

// Waits reports whether another caller makes the addition.
func (t *Ticket[H]) Waits() bool { return t.round != nil }

// Begin begins to add n, which is positive, to the counter of a key.
func (a *Adder[H]) Begin(key string, h H, n int64) Ticket[H] {
	s := &a.slots[maphash.String(a.seed, key)%slotCount]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case !s.busy:
		s.busy, s.key = true, key
		return Ticket[H]{slot: s}
	case s.key != key:
		return Ticket[H]{}
	case s.next == nil:
		s.next = newRound(h, a.timeout)
	}
	s.next.sum.N += n
	s.next.sum.Callers++
	return Ticket[H]{round: s.next, position: s.next.sum.N}
}

func newRound[H any](h H, timeout time.Duration) *round[H] {
	r := &round[H]{sum: Sum[H]{Counter: h}, expired: make(chan struct{}), done: make(chan struct{})}
	r.timer = time.AfterFunc(timeout, func() { close(r.expired) })
	return r
}

// Waiting returns the number of additions that wait for that of the ticket to end.
func (t *Ticket[H]) Waiting() int {
	if t.slot == nil {
		return 0
	}
	t.slot.mutex.Lock()
	defer t.slot.mutex.Unlock()
	if t.slot.next == nil {
		return 0
	}
	return t.slot.next.sum.Callers
}

// Wait returns the count after the addition of a ticket that waits. If ctx ends or the time is over
// first, the addition is made anyway, and the error is that of ctx or ErrTimeout.
func (t *Ticket[H]) Wait(ctx context.Context) (uint64, error) {
	select {
	case <-t.round.done:
		r := t.round
		return r.after - min(uint64(r.sum.N-t.position), r.after), r.err //nolint:gosec // not negative
	case <-t.round.expired:
		return 0, ErrTimeout
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for another call for the counter: %w", ctx.Err())
	}
}

// End ends the addition of a ticket that did not wait. Those that wait are sent in a new goroutine,
// because the caller has its own result.
func (a *Adder[H]) End(ctx context.Context, t Ticket[H]) {
	if t.slot == nil {
		return
	}
	if r := t.slot.takeRound(); r != nil {
		go a.sendRounds(context.WithoutCancel(ctx), t.slot, r)
	}
}

// sendRounds sends rounds until none waits.
func (a *Adder[H]) sendRounds(ctx context.Context, s *slot[H], r *round[H]) {
	for ; r != nil; r = s.takeRound() {
		r.sum.Key = s.key
		r.after, r.err = a.send(ctx, r.sum)
		r.timer.Stop()
		close(r.done)
	}
}

// takeRound returns the round that waits; no addition can join it after that. If none waits, the slot
// becomes free.
func (s *slot[H]) takeRound() *round[H] {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.next
	s.next = nil
	if r == nil {
		s.busy, s.key = false, ""
	} else {
		s.key = strings.Clone(s.key) // the caller that chose it may have returned
	}
	return r
}
