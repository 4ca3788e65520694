package valkey

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
// No copy is served longer than sessioncache.MaxAge after it was read from the records. Two bounds stand for that, so that
// neither a message that was long on its way nor a clock that is wrong breaks it alone: the store's expiry, which also ends
// the copy in the process, and the time of reading inside the copy, which Get checks against its own clock. Where two
// instances' clocks are apart by more than MaxAge, they do not serve each other's copies.
//
// A session that was dropped leaves a mark in the store, and a script refuses copies that were read before it, on whatever
// instance: as far as the clocks of two agree, no copy from before is served once Drop has returned.
type Sessions struct {
	link  *link
	clock clock.Clock
	put   *valkey.Lua
	floor floor
}

// putSource keeps a copy unless the session was dropped since it was read. Arguments: the copy, the time of its reading in
// microseconds, its life in milliseconds.
const putSource = `
local there = redis.call('GET', KEYS[1])
if there and string.byte(there) == 2 and (tonumber(string.sub(there, 2)) or 0) >= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1`

// OpenSessions returns a cache in the store of cfg and what closes it. As with Open, a store that is away is no error.
func OpenSessions(ctx context.Context, cfg Config, c clock.Clock, log *logrus.Entry) (*Sessions, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	options, err := cfg.options(log)
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
	return &Sessions{link: l, clock: c, put: valkey.NewLuaScript(putSource)}, end, nil
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
	var read time.Time
	key := sessionKey + string(id)
	err := s.link.do(ctx, place{node: s.link.nodeOf(key), key: key}, func(ctx context.Context, client valkey.Client) error {
		found, err := client.DoCache(ctx, client.B().Get().Key(key).Cache(), sessionLife).AsBytes()
		if err != nil {
			if valkey.IsValkeyNil(err) {
				return nil
			}
			return fmt.Errorf("read a copy: %w", err)
		}
		if session, read, err = readCopy(found); err != nil {
			session = auth.Session{} // a mark, or of another format: a miss
		}
		return nil
	})
	if err != nil || read.IsZero() || session.ID != id {
		return auth.Session{}, false
	}
	if age := s.clock.Now().Sub(read); age > sessioncache.MaxAge || age < -sessioncache.MaxAge || s.floor.hides(id, read) {
		return auth.Session{}, false
	}
	return session, true
}

// Put implements ports/sessioncache.
func (s *Sessions) Put(ctx context.Context, session auth.Session, read time.Time) {
	life := sessionLife - max(s.clock.Now().Sub(read), 0)
	if life < time.Millisecond {
		return // it was too long on its way
	}
	s.floor.raise(read, read, session.ID)
	key := sessionKey + string(session.ID)
	args := []string{
		valkey.BinaryString(appendCopy(make([]byte, 0, 256), &session, read)),
		strconv.FormatInt(read.UnixMicro(), 10), strconv.FormatInt(life.Milliseconds(), 10),
	}
	_ = s.link.do(ctx, place{node: s.link.nodeOf(key), key: key}, func(ctx context.Context, client valkey.Client) error { // the link logs a store that is away
		return s.put.Exec(ctx, client, []string{key}, args).Error()
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
	mark := string(rune(dropFormat)) + strconv.FormatInt(now.UnixMicro(), 10)
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = sessionKey + string(id)
	}
	for n, keys := range s.link.keysByNode(keys) {
		_ = s.link.do(context.WithoutCancel(ctx), place{node: n, key: keys[0]}, func(ctx context.Context, client valkey.Client) error { // as in Put
			return drop(ctx, client, keys, mark)
		})
	}
}

// drop puts a mark in the place of each copy, for as long as a copy of before may still come.
func drop(ctx context.Context, client valkey.Client, keys []string, mark string) error {
	commands := make([]valkey.Completed, len(keys))
	for i, key := range keys {
		commands[i] = client.B().Set().Key(key).Value(mark).Px(sessioncache.MaxAge).Build()
	}
	for _, r := range client.DoMulti(ctx, commands...) {
		if err := r.Error(); err != nil {
			return fmt.Errorf("drop a copy: %w", err)
		}
	}
	return nil
}

// floor remembers, for sessions put or dropped here lately, the time of reading below which copies are outdated. It covers the
// moments until the store has called copies back, and a store that cannot be told. Older entries go by generations: what
// is older than MaxAge is not served anyway.
type floor struct {
	mu            sync.RWMutex
	young, old    map[auth.SessionID]time.Time
	youngestBegan time.Time
}

// raise hides copies of the sessions that were read before a time. It never lowers what is hidden.
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

func (f *floor) hides(id auth.SessionID, read time.Time) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return read.Before(f.young[id]) || read.Before(f.old[id])
}
