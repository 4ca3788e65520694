package valkey

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

const (
	// sessionPatience is how long a call waits at most; the database is not much slower.
	sessionPatience = 50 * time.Millisecond
	// sessionLife is how long the store keeps a copy. What it lacks to MaxAge is for the way to the store and back, each
	// within sessionPatience.
	sessionLife = sessioncache.MaxAge - 2*sessionPatience
	// sessionCacheBytes bounds the copies that a connection keeps in the process.
	sessionCacheBytes = 16 << 20
	sessionKey        = "tollgate:session:"
)

// Sessions keeps copies of sessions in the store, and those in use also in the process, from where the store calls them
// back when they change (server-assisted client side caching). A server that offers no such thing is asked each time.
//
// No copy is served longer than sessioncache.MaxAge after Put. Two bounds stand for that, so that neither a message that
// was long on its way nor a clock that is wrong breaks it alone: the store's expiry, which also ends the copy in the
// process, and the time of Put inside the copy, which Get checks against its own clock. Where two instances' clocks are
// apart by more than MaxAge, they do not serve each other's copies.
type Sessions struct {
	link  *link
	clock clock.Clock
	floor floor
}

// OpenSessions returns a cache in the store of cfg and what closes it. As with Open, a store that is away is no error.
func OpenSessions(ctx context.Context, cfg Config, c clock.Clock, log *logrus.Entry) (*Sessions, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	options, err := cfg.options()
	if err != nil {
		return nil, nil, err
	}
	options.DisableCache = false
	options.CacheSizeEachConn = sessionCacheBytes
	options.MaxFlushDelay = 0      // the window is meant for counters, and longer than these calls may wait
	options.PipelineMultiplex = -1 // what the store calls back then arrives in the order of what was asked
	l := &link{timeout: min(cfg.Timeout, sessionPatience), dial: cfg.Timeout, log: log}
	l.connect = func() (valkey.Client, error) { return connectCaching(options) }
	end := openLink(ctx, l)
	return &Sessions{link: l, clock: c}, end, nil
}

// connectCaching does without client side caching where the server has none.
func connectCaching(options valkey.ClientOption) (valkey.Client, error) {
	client, err := connect(options)
	if errors.Is(err, valkey.ErrNoCache) {
		options.DisableCache = true
		return connect(options)
	}
	return client, err
}

// Get implements ports/sessioncache.
func (s *Sessions) Get(ctx context.Context, id auth.SessionID) (auth.Session, bool) {
	var session auth.Session
	var put time.Time
	key := sessionKey + string(id)
	err := s.link.do(ctx, place{s.link.nodeOf(key), key}, func(ctx context.Context, client valkey.Client) error {
		found, err := client.DoCache(ctx, client.B().Get().Key(key).Cache(), sessionLife).AsBytes()
		if err != nil {
			if valkey.IsValkeyNil(err) {
				return nil
			}
			return fmt.Errorf("read a copy: %w", err)
		}
		if session, put, err = readCopy(found); err != nil {
			session = auth.Session{} // of another format: a miss
		}
		return nil
	})
	if err != nil || put.IsZero() || session.ID != id {
		return auth.Session{}, false
	}
	if age := s.clock.Now().Sub(put); age > sessioncache.MaxAge || age < -sessioncache.MaxAge || s.floor.hides(id, put) {
		return auth.Session{}, false
	}
	return session, true
}

// Put implements ports/sessioncache.
func (s *Sessions) Put(ctx context.Context, session auth.Session) {
	put := s.clock.Now()
	s.floor.raise(put, put, session.ID)
	value := valkey.BinaryString(appendCopy(make([]byte, 0, 256), &session, put))
	key := sessionKey + string(session.ID)
	_ = s.link.do(ctx, place{s.link.nodeOf(key), key}, func(ctx context.Context, client valkey.Client) error { // the link logs a store that is away
		return client.Do(ctx, client.B().Set().Key(key).Value(value).Px(sessionLife).Build()).Error()
	})
}

// Drop implements ports/sessioncache. On this instance it works also while the store is away; there the copies age out. It
// does its work also for a caller that has gone.
func (s *Sessions) Drop(ctx context.Context, ids ...auth.SessionID) {
	if len(ids) == 0 {
		return
	}
	now := s.clock.Now()
	s.floor.raise(now, now.Add(time.Nanosecond), ids...)
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = sessionKey + string(id)
	}
	for n, keys := range s.link.keysByNode(keys) {
		_ = s.link.do(context.WithoutCancel(ctx), place{n, keys[0]}, func(ctx context.Context, client valkey.Client) error { // as in Put
			return drop(ctx, client, keys)
		})
	}
}

func drop(ctx context.Context, client valkey.Client, keys []string) error {
	commands := make([]valkey.Completed, len(keys))
	for i, key := range keys {
		commands[i] = client.B().Del().Key(key).Build()
	}
	for _, r := range client.DoMulti(ctx, commands...) {
		if err := r.Error(); err != nil {
			return fmt.Errorf("drop a copy: %w", err)
		}
	}
	return nil
}

// floor remembers, for sessions put or dropped here lately, the time of Put below which copies are outdated. It covers the
// moments until the store has called copies back, and a store that cannot be told. Older entries go by generations: what
// is older than MaxAge is not served anyway.
type floor struct {
	mu            sync.RWMutex
	young, old    map[auth.SessionID]time.Time
	youngestBegan time.Time
}

// raise hides copies of the sessions that were put before a time. It never lowers what is hidden.
func (f *floor) raise(now, least time.Time, ids ...auth.SessionID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.young == nil || now.Sub(f.youngestBegan) > sessioncache.MaxAge {
		f.old, f.young, f.youngestBegan = f.young, make(map[auth.SessionID]time.Time), now
	}
	for _, id := range ids {
		if least.After(f.young[id]) {
			f.young[id] = least
		}
	}
}

func (f *floor) hides(id auth.SessionID, put time.Time) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return put.Before(f.young[id]) || put.Before(f.old[id])
}
