package oidc

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/ports/clock"
)

const (
	keyLife      = time.Hour // after that time keys are read again, unless their headers say another
	minKeyLife   = 5 * time.Minute
	maxKeyLife   = 24 * time.Hour   // also that of a discovery document
	retryPause   = time.Second      // minimum time after a reading that failed
	rereadEvery  = 10 * time.Second // time between two readings because of unknown keys
	rereadsBurst = 5                // readings that may follow each other without that time
)

// keyCache keeps the keys of one issuer. At most one reading runs at a time; it does not end with
// the context of a caller. It is safe for concurrent use.
type keyCache struct {
	read    func(context.Context) (*keySet, error)
	clock   clock.Clock
	timeout time.Duration // of a reading
	rereads *rate.Limiter // readings because of unknown keys, which anybody can invent

	mu       sync.Mutex
	keys     *keySet   // of the last reading that succeeded; nil before it
	failure  error     // of the last reading; nil if it succeeded
	failedAt time.Time // the time of that failure
	running  *reading  // nil if no reading runs
}

func newKeyCache(
	clk clock.Clock, timeout time.Duration, rereads *rate.Limiter, read func(context.Context) (*keySet, error),
) *keyCache {
	return &keyCache{read: read, clock: clk, timeout: timeout, rereads: rereads}
}

// reading is a reading that may have several waiting callers.
type reading struct {
	done chan struct{} // closed when keys and err are set
	keys *keySet
	err  error
}

// currentKeys returns the keys. Old ones are returned while a reading replaces them, so that a slow
// issuer delays no token whose key is known. The first call waits for the reading, and returns its
// error.
func (c *keyCache) currentKeys(ctx context.Context) (*keySet, error) {
	c.mu.Lock()
	if c.running == nil && c.isDue(c.clock.Now()) {
		c.startReading()
	}
	keys, running, failure := c.keys, c.running, c.failure
	c.mu.Unlock()
	switch {
	case keys != nil:
		return keys, nil
	case running != nil:
		return running.wait(ctx)
	}
	return nil, failure
}

// newerKeys returns the keys after another reading. It returns old itself if keys were read too
// often, and the error of the reading if it failed.
func (c *keyCache) newerKeys(ctx context.Context, old *keySet) (*keySet, error) {
	c.mu.Lock()
	if c.keys != old {
		defer c.mu.Unlock()
		return c.keys, nil
	}
	if c.running == nil {
		now := c.clock.Now()
		if c.hasJustFailed(now) || !c.rereads.AllowN(now, 1) {
			defer c.mu.Unlock()
			return old, c.failure
		}
		c.startReading()
	}
	running := c.running
	c.mu.Unlock()
	return running.wait(ctx)
}

func (c *keyCache) isDue(now time.Time) bool {
	return !c.hasJustFailed(now) && (c.keys == nil || !isWithin(c.keys.life, c.keys.readAt, now))
}

func (c *keyCache) hasJustFailed(now time.Time) bool {
	return c.failure != nil && isWithin(retryPause, c.failedAt, now)
}

// isWithin reports whether less than d has passed since at. It is false if the clock was set back
// before at, so that nothing waits until the clock is there again.
func isWithin(d time.Duration, at, now time.Time) bool {
	passed := now.Sub(at)
	return passed >= 0 && passed < d
}

// startReading starts a reading. The caller holds the lock.
func (c *keyCache) startReading() {
	started := &reading{done: make(chan struct{})}
	c.running = started
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		defer cancel()
		started.keys, started.err = c.read(ctx)
		c.finishReading(started)
		close(started.done)
	}()
}

func (c *keyCache) finishReading(ended *reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.running, c.failure = nil, ended.err
	if ended.err != nil {
		c.failedAt = now
		return
	}
	ended.keys.readAt = now
	c.keys = ended.keys
}

// wait returns the result of a reading, or the error of the context if it ends before.
func (r *reading) wait(ctx context.Context) (*keySet, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.done:
		return r.keys, r.err
	}
}
