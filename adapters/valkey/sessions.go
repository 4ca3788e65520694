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

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

const (
	// sessionTimeout is the maximum time of a call. Reading the session from the database takes
	// little longer.
	sessionTimeout = 50 * time.Millisecond
	// sessionTTL is how long the store keeps a copy. The difference to MaxAge covers the way to the
	// store and back, at most sessionTimeout each.
	sessionTTL = sessioncache.MaxAge - 2*sessionTimeout
	// sessionCacheBytes is the maximum size of the copies that a connection keeps in the process.
	sessionCacheBytes = 16 << 20
	sessionKeyPrefix  = "tollgate:session:"
	// maxUsualCopy is the size of a copy in bytes with its tag that needs no second allocation.
	maxUsualCopy = 320
)

// Sessions keeps copies of sessions in the store. Copies in use are also kept in the process, and
// the store invalidates them when they change (server-assisted client-side caching). If the server
// does not support this, each Get reads from the store.
//
// No copy is used longer than sessioncache.MaxAge after it was read from the database. Two
// independent limits ensure this, so that neither a delayed message nor a wrong clock alone can
// break it: the expiry in the store, which also removes the copy in the process, and the time of
// reading in the copy, which Get compares with its own clock. Instances whose clocks differ by more
// than MaxAge do not use each other's copies.
//
// Copies are authenticated with a key that all instances share; any other value is a cache miss. An
// attacker who can write to the store can at most put back a copy of the same session that was read
// less than MaxAge ago, and cause misses.
//
// Drop leaves a mark in the store, and a script refuses copies that any instance read before the
// mark. So once Drop has returned, no older copy is used, as far as the clocks of the instances
// agree.
type Sessions struct {
	store            *managedClient
	clock            clock.Clock
	copies           *copyAuthenticator
	putScript        *valkey.Lua
	minimumReadTimes readTimes
}

// putSource stores a copy unless the session was dropped after it was read. Its arguments are the
// copy, the time of reading in microseconds, and the time to live in milliseconds.
const putSource = `
local found = redis.call('GET', KEYS[1])
if found and string.byte(found) == 2 and (tonumber(string.sub(found, 2)) or 0) >= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1`

// OpenSessions returns a session cache and a function that closes it. The key authenticates the
// copies; its purpose is auth.SessionCopyPurpose. As with Open, an unreachable store is not an
// error.
func OpenSessions(
	ctx context.Context, cfg Config, k auth.Key, c clock.Clock, log *logrus.Entry,
) (*Sessions, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	options, err := cfg.clientOptions(log)
	if err != nil {
		return nil, nil, err
	}
	options.DisableCache = false
	options.CacheSizeEachConn = sessionCacheBytes
	options.MaxFlushDelay = 0      // KVSTORE_PIPELINE_WINDOW is for counters; these calls cannot wait that long
	options.PipelineMultiplex = -1 // one connection, so that invalidations arrive in order
	m := &managedClient{
		deadlines: deadline.NewSource(min(cfg.Timeout, sessionTimeout)), dialTimeout: cfg.Timeout, log: log,
	}
	m.newClient = func() (valkey.Client, error) { return connectWithCaching(options) }
	end := openManagedClient(ctx, m)
	return &Sessions{
		store: m, clock: c, copies: newCopyAuthenticator(k), putScript: valkey.NewLuaScript(putSource),
	}, end, nil
}

// connectWithCaching connects with client-side caching, or without it if the server does not
// support it.
func connectWithCaching(options valkey.ClientOption) (valkey.Client, error) {
	client, err := connectWithFallback(options)
	if errors.Is(err, valkey.ErrNoCache) {
		options.DisableCache = true
		return connectWithFallback(options)
	}
	return client, err
}

// Get implements sessioncache.Cache.
func (s *Sessions) Get(ctx context.Context, id auth.SessionID) (auth.Session, bool) {
	var session auth.Session
	var read time.Time
	key := sessionKeyPrefix + string(id)
	err := s.store.call(ctx, route{node: s.store.findNode(key), key: key},
		func(ctx context.Context, client valkey.Client) error {
			found, err := client.DoCache(ctx, client.B().Get().Key(key).Cache(), sessionTTL).AsBytes()
			if err != nil {
				if valkey.IsValkeyNil(err) {
					return nil
				}
				return fmt.Errorf("read a copy: %w", err)
			}
			if content, ok := s.copies.open(key, found); ok { // else it is a mark, another format, or forged
				session, read, _ = decodeCopy(content) // zero on an error: a cache miss
			}
			return nil
		})
	if err != nil || read.IsZero() || session.ID != id {
		return auth.Session{}, false
	}
	if age := s.clock.Now().Sub(read); age > sessioncache.MaxAge || age < -sessioncache.MaxAge ||
		s.minimumReadTimes.isOutdated(id, read) {
		return auth.Session{}, false
	}
	return session, true
}

// Put implements sessioncache.Cache.
func (s *Sessions) Put(ctx context.Context, session auth.Session, read time.Time) {
	ttl := sessionTTL - max(s.clock.Now().Sub(read), 0)
	if ttl < time.Millisecond {
		return // the copy is already too old
	}
	s.minimumReadTimes.setMinimum(read, read, session.ID)
	key := sessionKeyPrefix + string(session.ID)
	args := []string{
		valkey.BinaryString(s.copies.seal(key, encodeCopy(make([]byte, 0, maxUsualCopy), &session, read))),
		strconv.FormatInt(read.UnixMicro(), 10), strconv.FormatInt(ttl.Milliseconds(), 10),
	}
	// managedClient logs that the store does not answer
	_ = s.store.call(ctx, route{node: s.store.findNode(key), key: key},
		func(ctx context.Context, client valkey.Client) error {
			return s.putScript.Exec(ctx, client, []string{key}, args).Error()
		})
}

// Drop implements sessioncache.Cache. If the store does not answer, it takes effect only on this
// instance, and copies in the store expire. It also completes after the caller has canceled ctx.
func (s *Sessions) Drop(ctx context.Context, ids ...auth.SessionID) {
	if len(ids) == 0 {
		return
	}
	now := s.clock.Now()
	s.minimumReadTimes.setMinimum(now, now.Add(time.Nanosecond), ids...)
	mark := string(rune(dropFormat)) + strconv.FormatInt(now.UnixMicro(), 10)
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = sessionKeyPrefix + string(id)
	}
	for n, keys := range s.store.groupKeysByNode(keys) {
		// as in Put
		_ = s.store.call(context.WithoutCancel(ctx), route{node: n, key: keys[0]},
			func(ctx context.Context, client valkey.Client) error {
				return writeDropMarks(ctx, client, keys, mark)
			})
	}
}

// writeDropMarks replaces each copy by a mark that lasts as long as an older copy may still arrive.
func writeDropMarks(ctx context.Context, client valkey.Client, keys []string, mark string) error {
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

// readTimes contains, for sessions that were recently put or dropped here, the earliest acceptable
// time of reading. It protects until the store has invalidated older copies, and also if the store
// does not answer. Entries move from current to previous and are then dropped, because copies older
// than MaxAge are not used anyway.
type readTimes struct {
	mu                sync.RWMutex
	current, previous map[auth.SessionID]time.Time
	currentSince      time.Time
}

// setMinimum makes copies of the sessions that were read before least outdated. It never lowers a
// minimum.
func (f *readTimes) setMinimum(now, least time.Time, ids ...auth.SessionID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil || now.Sub(f.currentSince) > sessioncache.MaxAge {
		f.previous, f.current, f.currentSince = f.current, make(map[auth.SessionID]time.Time), now
	}
	for _, id := range ids {
		if least.After(f.current[id]) {
			f.current[id] = least
		}
	}
}

// isOutdated reports whether a copy that was read at this time must not be used.
func (f *readTimes) isOutdated(id auth.SessionID, read time.Time) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return read.Before(f.current[id]) || read.Before(f.previous[id])
}
