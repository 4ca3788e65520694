package memory

import (
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

// Sessions keeps copies of sessions in the process. It is safe for concurrent use and needs no closing. All copies live
// equally long, so the one that came first is about the next to age out: it is what goes when the cache is full, and what has
// aged goes as new copies come. A session that was dropped leaves a mark in the place of its copy, so that a copy of before
// which comes late is refused.
//
// It is shared with no other process. Where several serve one database, an ended session passes on
// the others for up to sessioncache.MaxAge after they last read it, which is within the second of
// contract A-26.
type Sessions struct {
	clock  clock.Clock
	seed   maphash.Seed
	shards [sessionShards]sessionShard
}

// sessionShard is a part of the copies under one lock.
type sessionShard struct {
	mu    sync.Mutex
	index map[auth.SessionID]*list.Element
	ages  *list.List // of sessionCopy, in the order in which they came
	limit int
}

// sessionCopy is a copy, or the mark that a session was dropped.
type sessionCopy struct {
	session auth.Session // of a mark the identifier alone
	at      time.Time    // when it was read, or dropped
	dropped bool
}

// NewSessions returns an empty cache that keeps about cfg.MaxSessions copies at most.
func NewSessions(c clock.Clock, cfg Config) *Sessions {
	s := &Sessions{clock: c, seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].index = make(map[auth.SessionID]*list.Element)
		s.shards[i].ages = list.New()
		s.shards[i].limit = max((cfg.MaxSessions+sessionShards-1)/sessionShards, 1)
	}
	return s
}

// Get implements ports/sessioncache.
func (s *Sessions) Get(_ context.Context, id auth.SessionID) (auth.Session, bool) {
	now, h := s.clock.Now(), s.shardOf(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.index[id]
	if !ok {
		return auth.Session{}, false
	}
	c := copyIn(e)
	if aged(c.at, now) {
		h.remove(e)
		return auth.Session{}, false
	}
	return c.session, !c.dropped
}

// Put implements ports/sessioncache.
func (s *Sessions) Put(_ context.Context, session auth.Session, read time.Time) {
	s.keep(sessionCopy{session: session, at: read})
}

// Drop implements ports/sessioncache.
func (s *Sessions) Drop(_ context.Context, ids ...auth.SessionID) {
	for _, id := range ids {
		s.keep(sessionCopy{session: auth.Session{ID: id}, at: s.clock.Now(), dropped: true})
	}
}

// keep keeps a copy or a mark, unless there is something newer.
func (s *Sessions) keep(c sessionCopy) {
	now, h := s.clock.Now(), s.shardOf(c.session.ID)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.index[c.session.ID]; ok {
		if there := copyIn(e); !aged(there.at, now) && there.outdates(&c) {
			return
		}
		h.remove(e)
	}
	for range reclaimed {
		if e := h.ages.Front(); e != nil && aged(copyIn(e).at, now) {
			h.remove(e)
		}
	}
	if h.ages.Len() >= h.limit {
		h.remove(h.ages.Front())
	}
	h.index[c.session.ID] = h.ages.PushBack(c)
}

// Len returns how many copies are kept, aged ones included that were not taken out yet.
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

func (s *Sessions) shardOf(id auth.SessionID) *sessionShard {
	return &s.shards[maphash.String(s.seed, string(id))%sessionShards]
}

func (h *sessionShard) remove(e *list.Element) {
	h.ages.Remove(e)
	delete(h.index, copyIn(e).session.ID)
}

func copyIn(e *list.Element) sessionCopy {
	return e.Value.(sessionCopy) //nolint:errcheck // the lists hold nothing else
}

// outdates reports whether what came later than c is older than it. A copy is so too when it was read as the session was dropped.
func (c *sessionCopy) outdates(later *sessionCopy) bool {
	if later.dropped {
		return false
	}
	return c.at.After(later.at) || c.dropped && c.at.Equal(later.at)
}

// aged also tells of a copy from the future: a clock that was set back must not lengthen a copy's life.
func aged(at, now time.Time) bool {
	age := now.Sub(at)
	return age > sessioncache.MaxAge || age < 0
}
