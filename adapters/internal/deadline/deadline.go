// Package deadline bounds the time of calls to a store, and of decisions that need several of them.
// It neither makes nor repeats calls.
package deadline

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// shards is the number of contexts that calls share, so that not all of them wait on one
	// channel.
	shards = 16
	// slack is the part of the timeout by which a deadline is later, at most: 1/16. Half of it is
	// for calls that begin later than the context which they share, and the other half is in every
	// deadline, so that a call which waits a little to be combined with others still has the whole
	// timeout.
	slack = 16
)

// Source makes the deadlines of calls. Calls that begin at nearly the same time share a context,
// because one for each call is much of what a call allocates. It is safe for concurrent use.
type Source struct {
	timeout time.Duration
	shards  [shards]atomic.Pointer[shared]
}

// NewSource returns a Source of deadlines that are later by timeout, and by up to a sixteenth more.
func NewSource(timeout time.Duration) *Source { return &Source{timeout: timeout} }

// Timeout returns the timeout.
func (s *Source) Timeout() time.Duration { return s.timeout }

// Bound returns a context for several calls, which together have the timeout. It has the values of
// ctx. A context that ends earlier, or is bound already, is returned as it is. Otherwise the end of
// ctx does not end the calls, which are short anyway.
func (s *Source) Bound(ctx context.Context) context.Context {
	now := time.Now()
	if s.endsInTime(ctx, now) {
		return ctx
	}
	return &decision{Context: ctx, shared: s.share(now)}
}

// Call returns the context of one call, without the values of ctx. A context that ends earlier, or
// is bound already, is returned as it is. now is the current time.
func (s *Source) Call(ctx context.Context, now time.Time) context.Context {
	if isCall(ctx) || s.endsInTime(ctx, now) {
		return ctx
	}
	return s.share(now)
}

// isCall reports whether a context is the result of Call.
func isCall(ctx context.Context) bool {
	_, ok := ctx.(*shared)
	return ok
}

// NextStep records that the calls which follow have a part of the timeout only, because others of
// the same decision came before.
func NextStep(ctx context.Context) {
	if d := decisionOf(ctx); d != nil {
		d.late.Store(true)
	}
}

// HasWhole reports whether a call with this context of a Source has the whole timeout. That a store
// does not answer a call which has less says little about the store.
func HasWhole(ctx context.Context) bool {
	if isCall(ctx) {
		return true
	}
	d := decisionOf(ctx)
	return d != nil && !d.late.Load()
}

// endsInTime reports whether the context has ended, or ends no later than one of Bound.
func (s *Source) endsInTime(ctx context.Context, now time.Time) bool {
	at, ok := ctx.Deadline()
	return ok && at.Sub(now) <= s.timeout+s.timeout/slack || ctx.Err() != nil
}

// share returns a context that others may have too.
func (s *Source) share(now time.Time) *shared {
	shard := &s.shards[rand.Uint32()%shards]
	current := shard.Load()
	if current == nil || now.After(current.renew) {
		current = newShared(now, s.timeout)
		shard.Store(current)
	}
	return current
}

// decision is the context of the calls of one decision.
type decision struct {
	context.Context // for its values
	shared          *shared
	late            atomic.Bool // there were calls before
}

// decisionKey is the key of the value that is the decision itself.
type decisionKey struct{}

// decisionOf returns the decision that a context belongs to, or nil.
func decisionOf(ctx context.Context) *decision {
	if d, ok := ctx.(*decision); ok {
		return d
	}
	d, _ := ctx.Value(decisionKey{}).(*decision) // nil if it is not there
	return d
}

func (d *decision) Deadline() (time.Time, bool) { return d.shared.at, true }

func (d *decision) Done() <-chan struct{} { return d.shared.done }

func (d *decision) Err() error { return d.shared.Err() }

func (d *decision) Value(key any) any {
	if key == (decisionKey{}) {
		return d
	}
	return d.Context.Value(key)
}

// shared is a context that ends at a time. It has no parent, so it needs no resources that must be
// released.
type shared struct {
	at, renew time.Time
	done      chan struct{}
}

func newShared(now time.Time, timeout time.Duration) *shared {
	life := timeout + timeout/slack
	c := &shared{at: now.Add(life), renew: now.Add(timeout / slack / 2), done: make(chan struct{})}
	time.AfterFunc(life, func() { close(c.done) })
	return c
}

func (c *shared) Deadline() (time.Time, bool) { return c.at, true }

func (c *shared) Done() <-chan struct{} { return c.done }

func (c *shared) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context. There are no values.
func (*shared) Value(any) any { return nil }
