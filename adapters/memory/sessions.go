package memory

import (
	"cmp"
	"container/list"
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

const sessionShards = 16

// Sessions keeps copies of sessions in the process. It is safe for concurrent use and need not be
// closed. All copies have the same lifetime, so the oldest one expires next and is removed when the
// cache is full; expired copies are removed when new ones are added. Drop leaves a mark in place of
// the copy, so that an older copy that arrives later is refused.
//
// No other process shares the cache. If several processes use one database, a session that one of
// them ended stays valid on the others for up to sessioncache.MaxAge after they last read it,
// within the second that contract A-26 allows.
type Sessions struct {
	clock  clock.Clock
	seed   maphash.Seed
	shards [sessionShards]sessionShard
}

// sessionShard is a part of the copies, protected by one lock.
type sessionShard struct {
	mu    sync.Mutex
	index map[auth.SessionID]*list.Element
	ages  *list.List // of sessionCopy, oldest first
	limit int
}

// sessionCopy is a copy of a session, or the mark of a dropped session.
type sessionCopy struct {
	session auth.Session // a mark has only the ID
	at      time.Time    // when the session was read or dropped
	dropped bool
}

// NewSessions returns an empty cache for about cfg.MaxSessions copies.
func NewSessions(c clock.Clock, cfg Config) *Sessions {
	most := cmp.Or(cfg.MaxSessions, 100_000)
	s := &Sessions{clock: c, seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].index = make(map[auth.SessionID]*list.Element)
		s.shards[i].ages = list.New()
		s.shards[i].limit = max((most+sessionShards-1)/sessionShards, 1)
	}
	return s
}

// Get implements sessioncache.Cache.
func (s *Sessions) Get(_ context.Context, id auth.SessionID) (auth.Session, bool) {
	now, h := s.clock.Now(), s.findShard(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.index[id]
	if !ok {
		return auth.Session{}, false
	}
	c := entryCopy(e)
	if isTooOld(c.at, now) {
		h.removeEntry(e)
		return auth.Session{}, false
	}
	return c.session, !c.dropped
}

// Put implements sessioncache.Cache.
func (s *Sessions) Put(_ context.Context, session auth.Session, read time.Time) {
	s.storeCopy(sessionCopy{session: session, at: read})
}

// Drop implements sessioncache.Cache.
func (s *Sessions) Drop(_ context.Context, ids ...auth.SessionID) {
	for _, id := range ids {
		s.storeCopy(sessionCopy{session: auth.Session{ID: id}, at: s.clock.Now(), dropped: true})
	}
}

// storeCopy stores a copy or a mark, unless the cache has a newer one.
func (s *Sessions) storeCopy(c sessionCopy) {
	now, h := s.clock.Now(), s.findShard(c.session.ID)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.index[c.session.ID]; ok {
		if there := entryCopy(e); !isTooOld(there.at, now) && there.isNewerThan(&c) {
			return
		}
		h.removeEntry(e)
	}
	for range reclaimPerInsert {
		if e := h.ages.Front(); e != nil && isTooOld(entryCopy(e).at, now) {
			h.removeEntry(e)
		}
	}
	if h.ages.Len() >= h.limit {
		h.removeEntry(h.ages.Front())
	}
	h.index[c.session.ID] = h.ages.PushBack(c)
}

// Len returns the number of copies and marks, including expired ones that are not removed yet.
func (s *Sessions) Len() int {
	n := 0
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.Lock()
		n += h.ages.Len()
		h.mu.Unlock()
	}
	return n
}

func (s *Sessions) findShard(id auth.SessionID) *sessionShard {
	return &s.shards[maphash.String(s.seed, string(id))%sessionShards]
}

func (h *sessionShard) removeEntry(e *list.Element) {
	h.ages.Remove(e)
	delete(h.index, entryCopy(e).session.ID)
}

func entryCopy(e *list.Element) sessionCopy {
	return e.Value.(sessionCopy) //nolint:errcheck // the lists hold nothing else
}

// isNewerThan reports whether later, which arrived after c, is older than c. A copy that was read
// at the time of the drop counts as older than the mark.
func (c *sessionCopy) isNewerThan(later *sessionCopy) bool {
	if later.dropped {
		return false
	}
	return c.at.After(later.at) || c.dropped && c.at.Equal(later.at)
}

// isTooOld reports whether a copy has expired. A copy from the future counts as expired too,
// because a clock that was set back must not extend its life.
func isTooOld(at, now time.Time) bool {
	age := now.Sub(at)
	return age > sessioncache.MaxAge || age < 0
}
