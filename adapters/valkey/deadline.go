package valkey

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// deadlineShards is the number of contexts that calls share, so that not all of them wait on one
	// channel.
	deadlineShards = 16
	// deadlineAges is the number of times that a shared context is renewed within the timeout.
	deadlineAges = 16
)

// deadlines gives each call a context that ends when the call has lasted for timeout. Calls that begin
// within a sixteenth of it share a context, because one for each call is much of what a call allocates.
// So the time of a call is up to a sixteenth shorter.
type deadlines struct {
	timeout time.Duration
	shards  [deadlineShards]atomic.Pointer[deadline]
}

// bound returns the context of a call. A caller whose own deadline comes first keeps its context. That of
// another caller does not end the call, which is short anyway.
func (d *deadlines) bound(ctx context.Context) context.Context {
	now := time.Now()
	if at, ok := ctx.Deadline(); ok && at.Sub(now) <= d.timeout {
		return ctx
	}
	shard := &d.shards[rand.Uint32()%deadlineShards]
	current := shard.Load()
	if current == nil || now.After(current.renew) {
		current = newDeadline(now, d.timeout)
		shard.Store(current)
	}
	return current
}

// deadline is a context that ends at a time. It has no parent, so it needs no resources that must be
// released.
type deadline struct {
	at, renew time.Time
	done      chan struct{}
}

var _ context.Context = (*deadline)(nil)

func newDeadline(now time.Time, timeout time.Duration) *deadline {
	d := &deadline{at: now.Add(timeout), renew: now.Add(timeout / deadlineAges), done: make(chan struct{})}
	time.AfterFunc(timeout, func() { close(d.done) })
	return d
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.done }

// Err implements context.Context.
func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context. There are no values.
func (*deadline) Value(any) any { return nil }
