package readcache

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
)

const (
	renewGap = time.Second      // between two rounds of renewal
	usedFor  = 10 * time.Minute // how long an answer that no one reads is renewed
	maxUsual = 256              // answers that are renewed
	maxRound = 64               // answers that one round renews
)

// usualKeys returns the keys whose answers are renewed.
func (c *Cache[K, R]) usualKeys() []K {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := make([]K, 0, len(c.usual))
	for key := range c.usual {
		keys = append(keys, key)
	}
	return keys
}

// forgetUsual removes a key from those whose answers are renewed.
func (c *Cache[K, R]) forgetUsual(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.usual, key)
}

// renewUntil renews outdated answers that many clients read, until ctx ends. They are then kept if
// the database goes away.
func (c *Cache[K, R]) renewUntil(ctx context.Context) {
	for pause.For(ctx, renewGap) {
		c.renewUsual(ctx)
	}
}

// renewUsual renews outdated answers once. While the database is away it only checks whether it is
// back.
func (c *Cache[K, R]) renewUsual(ctx context.Context) {
	keys := c.usualKeys()
	if known := c.state.Load(); len(keys) == 0 && (known == nil || known.failure == nil) {
		return
	}
	s, err := c.currentState(ctx)
	if err != nil {
		return
	}
	renewed := 0
	for _, key := range keys {
		e, ok := c.entries.GetEntryQuietly(key)
		switch {
		case !ok || !e.Value.isUsed(c.clock.Now()):
			c.forgetUsual(key)
		case !e.Value.isCurrent(s) && renewed < maxRound && ctx.Err() == nil:
			used := e.Value.used.Load()
			if err := c.renew(ctx, key, s); err != nil {
				return
			}
			if made, ok := c.entries.GetEntryQuietly(key); ok {
				made.Value.used.Store(used) // a renewal is no use
			}
			renewed++
		}
	}
}

// renew makes an answer again. A panic ends neither the process nor later renewals: the next
// request for the answer has it too, and reports it.
func (c *Cache[K, R]) renew(ctx context.Context, key K, s *state) (err error) {
	defer func() {
		if recover() != nil {
			err = errInterrupted
		}
	}()
	_, err = c.makeAnswer(ctx, key, s)
	return err
}
