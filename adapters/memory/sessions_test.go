package memory_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/sessioncache/sessioncachetest"
)

func TestSessionsContract(t *testing.T) {
	sessioncachetest.Run(t, func(*testing.T) sessioncachetest.Subject {
		c := newManual()
		var last atomic.Int64
		return sessioncachetest.Subject{
			Cache:   memory.NewSessions(c, memory.Config{MaxSessions: 10_000}),
			ID:      func() auth.SessionID { return auth.SessionID(fmt.Sprint("session-", last.Add(1))) },
			Now:     c.Now,
			Advance: c.Advance,
		}
	})
}

func TestSessionsAreServedUpToMaxAge(t *testing.T) {
	clock := newManual()
	c := memory.NewSessions(clock, memory.Config{MaxSessions: 10})
	s := sessioncachetest.Session("a")
	c.Put(t.Context(), s, clock.Now())
	clock.Advance(sessioncache.MaxAge)
	sessioncachetest.MustServe(t, c, s, "at MaxAge")
	clock.Advance(time.Nanosecond)
	sessioncachetest.MustMiss(t, c, s.ID, "after MaxAge")
}

func TestSessionsFromTheFutureAreIgnored(t *testing.T) {
	clock := newManual()
	c := memory.NewSessions(clock, memory.Config{MaxSessions: 10})
	c.Put(t.Context(), sessioncachetest.Session("a"), clock.Now())
	clock.Advance(-time.Hour)
	sessioncachetest.MustMiss(t, c, "a", "put in the future")
}

func TestSessionsAreBounded(t *testing.T) {
	clock := newManual()
	c := memory.NewSessions(clock, memory.Config{MaxSessions: 160})
	for i := range 2000 {
		clock.Advance(time.Microsecond)
		c.Put(t.Context(), sessioncachetest.Session(auth.SessionID(fmt.Sprint(i))), clock.Now())
	}
	if c.Len() != 160 {
		t.Errorf("%d copies kept, want 160", c.Len())
	}
	sessioncachetest.MustMiss(t, c, "0", "the oldest of a full cache")
	sessioncachetest.MustServe(t, c, sessioncachetest.Session("1999"), "the newest of a full cache")
}

func TestOldSessionsAreRemoved(t *testing.T) {
	clock := newManual()
	c := memory.NewSessions(clock, memory.Config{MaxSessions: 100_000})
	for i := range 3000 {
		if i == 1500 {
			clock.Advance(sessioncache.MaxAge + 1)
		}
		c.Put(t.Context(), sessioncachetest.Session(auth.SessionID(fmt.Sprint(i))), clock.Now())
	}
	if c.Len() > 1600 {
		t.Errorf("%d copies kept, want at most 1600", c.Len())
	}
}
