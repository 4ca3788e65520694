// Package merge combines hits on one counter that are in progress at the same time into fewer calls
// to a store. It does not make calls that are needed any other time: an addition that is
// alone is sent at once.
package merge

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	// slotCount is the number of counters whose additions can be combined at the same time. Of
	// counters with the same slot, only one can.
	slotCount = 1 << 12
	// spacing is the time between two calls for a key, while others for it are in progress; it is
	// longer the more there are: with 8 calls in progress twice as long.
	spacing      = 250 * time.Microsecond
	spacingCalls = 8
	// maxPart is the part of the timeout that an addition waits at most: 1/32.
	maxPart = 32
)

// Send makes the hits of a key with one call, in their order, and writes the result of each. It may
// change hits.
type Send[H, R any] func(ctx context.Context, key string, hits []H, results []R) error

// Adder combines additions. While a call for a key is in progress, new additions to it wait for a
// moment, or until the call has ended, and one call then makes them together. So an addition takes
// hardly longer than a call, however slow the store is. Each still gets its own result, as if they
// had been made one by one. It is safe for concurrent use.
type Adder[H, R any] struct {
	send    Send[H, R]
	maxWait time.Duration
	seed    maphash.Seed
	slots   [slotCount]slot[H, R]
}

// slot is the state of one key whose additions are in progress.
type slot[H, R any] struct {
	mutex  sync.Mutex
	calls  int // in progress
	key    string
	latest time.Time    // when the latest call began
	next   *round[H, R] // the additions that wait, or nil
}

// round is one call on behalf of several callers.
type round[H, R any] struct {
	key     string
	hits    []H // grows until the call begins
	due     time.Time
	timer   *time.Timer   // begins the call when it is due
	done    chan struct{} // closed when the fields below are set
	results []R
	err     error
}

// New returns an Adder that makes combined calls with send, whose calls must end by themselves. An
// addition waits for its call to begin at most for a thirty-second of timeout.
func New[H, R any](timeout time.Duration, send Send[H, R]) *Adder[H, R] {
	return &Adder[H, R]{send: send, maxWait: timeout / maxPart, seed: maphash.MakeSeed()}
}

// Add adds a hit on a key, and returns its result. alone does it if it is not done together with
// others. now is the current time. If ctx ends while the addition waits for others, it is made
// anyway, and the error has the kind fault.Unavailable.
func (a *Adder[H, R]) Add(
	ctx context.Context, key string, h *H, now time.Time, alone func() (R, error),
) (result R, err error) {
	t := a.begin(key, h, now)
	if t.round == nil {
		result, err = alone()
		a.end(t)
		return result, err
	}
	select {
	case <-t.round.done:
		return t.round.results[t.position], t.round.err
	case <-ctx.Done():
		return result, fault.Wrap(fault.Unavailable, "the counter store does not answer", ctx.Err())
	}
}

// ticket is the place of one addition. Without a round the caller must add by itself and then call
// end.
type ticket[H, R any] struct {
	slot     *slot[H, R] // that counts the call of the caller, or nil
	round    *round[H, R]
	position int // in the round
}

// begin begins to add.
func (a *Adder[H, R]) begin(key string, h *H, now time.Time) ticket[H, R] {
	s := &a.slots[maphash.String(a.seed, key)%slotCount]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.calls == 0 {
		s.key = key
	} else if s.key != key {
		return ticket[H, R]{}
	}
	due := s.latest.Add(a.spacingOf(s.calls))
	switch {
	case s.next != nil:
	case s.calls == 0 || !now.Before(due):
		s.calls, s.latest = s.calls+1, now
		return ticket[H, R]{slot: s}
	default:
		r := &round[H, R]{key: strings.Clone(key), due: due, done: make(chan struct{})}
		r.timer = time.AfterFunc(due.Sub(now), func() { a.sendDue(s, r) })
		s.next = r
	}
	r := s.next
	t := ticket[H, R]{round: r, position: len(r.hits)}
	r.hits = append(r.hits, *h)
	if !now.Before(r.due) { // the timer is late
		s.beginRound(now)
		go a.sendRounds(s, r)
	}
	return t
}

// spacingOf returns the time between the beginnings of two calls for a key.
func (a *Adder[H, R]) spacingOf(calls int) time.Duration {
	return min(spacing+spacing*time.Duration(calls)/spacingCalls, a.maxWait)
}

// end ends the addition of a ticket without a round. Those that wait are sent in a new goroutine,
// because the caller has its own result.
func (a *Adder[H, R]) end(t ticket[H, R]) {
	if t.slot == nil {
		return
	}
	if r := t.slot.endCall(); r != nil {
		go a.sendRounds(t.slot, r)
	}
}

// sendDue sends a round that is due, unless it was sent before.
func (a *Adder[H, R]) sendDue(s *slot[H, R], r *round[H, R]) {
	s.mutex.Lock()
	waits := s.next == r
	if waits {
		s.beginRound(time.Now())
	}
	s.mutex.Unlock()
	if waits {
		a.sendRounds(s, r)
	}
}

// sendRounds sends a round, and then those that wait because it was the only call for the key. No
// caller ends them, because they are for several.
func (a *Adder[H, R]) sendRounds(s *slot[H, R], r *round[H, R]) {
	for ; r != nil; r = s.endCall() {
		r.results = make([]R, len(r.hits))
		r.err = a.send(context.Background(), r.key, r.hits, r.results)
		close(r.done)
	}
}

// beginRound begins the call of the round that waits; no addition can join it after that. The mutex
// must be held.
func (s *slot[H, R]) beginRound(now time.Time) {
	s.next.timer.Stop()
	s.next = nil
	s.calls, s.latest = s.calls+1, now
}

// endCall ends a call. It returns the round that waits if no other call is in progress, and begins
// it.
func (s *slot[H, R]) endCall() *round[H, R] {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls--
	if s.calls > 0 {
		return nil
	}
	r := s.next
	if r == nil {
		s.key = ""
	} else {
		s.beginRound(time.Now())
	}
	return r
}
