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
// equally long, so the oldest is always the next to age out: it is what goes when the cache is full, and what has aged
// goes as new copies come.
//
// It is shared with no other process. Where several serve one database, an ended session passes on the others for up to
// sessioncache.MaxAge after they last read it, which is within the second of decisions 2.2.
type Sessions struct {
	clock  clock.Clock
	seed   maphash.Seed
	shards [sessionShards]sessionShard
}

// sessionShard is a part of the copies under one lock.
type sessionShard struct {
	mu    sync.Mutex
	index map[auth.SessionID]*list.Element
	ages  *list.List // of sessionCopy, oldest first
	limit int
}

type sessionCopy struct {
	session auth.Session
	put     time.Time
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
	if aged(c.put, now) {
		h.remove(e)
		return auth.Session{}, false
	}
	return c.session, true
}

// Put implements ports/sessioncache.
func (s *Sessions) Put(_ context.Context, session auth.Session) {
	now, h := s.clock.Now(), s.shardOf(session.ID)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.index[session.ID]; ok {
		h.remove(e)
	}
	for range reclaimed {
		if e := h.ages.Front(); e != nil && aged(copyIn(e).put, now) {
			h.remove(e)
		}
	}
	if h.ages.Len() >= h.limit {
		h.remove(h.ages.Front())
	}
	h.index[session.ID] = h.ages.PushBack(sessionCopy{session, now})
}

// Drop implements ports/sessioncache.
func (s *Sessions) Drop(_ context.Context, ids ...auth.SessionID) {
	for _, id := range ids {
		h := s.shardOf(id)
		h.mu.Lock()
		if e, ok := h.index[id]; ok {
			h.remove(e)
		}
		h.mu.Unlock()
	}
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

// aged also tells of a copy from the future: a clock that was set back must not lengthen a copy's life.
func aged(put, now time.Time) bool {
	age := now.Sub(put)
	return age > sessioncache.MaxAge || age < 0
}
