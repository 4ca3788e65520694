package readcache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// stale returns the body and age of an answer while the database is away.
func stale(t *testing.T, c *cache, key string) (string, time.Duration) {
	t.Helper()
	a, err := c.Get(t.Context(), key)
	if err != nil || !a.Stale {
		t.Fatalf("Get(%s): %v, stale: %t", key, err, a.Stale)
	}
	return string(a.Body.Bytes()), a.Age
}

func TestKeptAnswersWhileTheDatabaseIsAway(t *testing.T) {
	at := newClock()
	s, c := start(t, usual, at)
	text(t, c, "a")
	text(t, c, "b")
	at.Advance(500 * time.Millisecond)
	s.change(true)
	text(t, c, "b")
	if _, err := c.Get(t.Context(), missingKey); !fault.Is(err, fault.NotFound) {
		t.Errorf("what is missing: %v", err)
	}
	if c.IsStale() {
		t.Error("it is stale before the database is away")
	}
	s.set(func(s *store) { s.failure = errAway })
	at.Advance(time.Minute)
	if body, age := stale(t, c, "b"); body != `"b" 1` || age != time.Minute {
		t.Errorf("a current answer: %s, %v", body, age)
	}
	if body, age := stale(t, c, "a"); body != `"a" 0` || age != time.Minute+500*time.Millisecond {
		t.Errorf("an answer from before the last change: %s, %v", body, age)
	}
	wantError(t, c, missingKey, errAway)
	wantError(t, c, "new", errAway)
	if !c.IsStale() {
		t.Error("it is not stale while the database is away")
	}
	at.Advance(usual.StaleMax - time.Minute - time.Millisecond)
	stale(t, c, "b")
	wantError(t, c, "a", errAway)
	s.set(func(s *store) { s.failure = nil })
	at.Advance(time.Second)
	if got := text(t, c, "a"); got != `"a" 1` || c.IsStale() {
		t.Errorf("after the database is back: %s, stale: %t", got, c.IsStale())
	}
}

func TestStaleAnswersCanBeTurnedOff(t *testing.T) {
	at := newClock()
	s, c := start(t, readcache.Config{Bytes: 1 << 20}, at)
	text(t, c, "a")
	s.set(func(s *store) { s.failure = errAway })
	at.Advance(time.Second)
	wantError(t, c, "a", errAway)
}

// TestStaleAnswersDoNotGoBack checks that an answer is not sent while the database is away if a
// newer one for the same key may have been sent before (contract R-20).
func TestStaleAnswersDoNotGoBack(t *testing.T) {
	t.Run("changed while it was made", func(t *testing.T) {
		s, c := start(t, usual, newClock())
		text(t, c, "a")
		s.change(true)
		s.during = firstOnly(func() { s.change(true) })
		text(t, c, "a")
		s.change(true)
		s.set(func(s *store) { s.failure = errAway })
		if body, _ := stale(t, c, "a"); body != `"a" 1` {
			t.Errorf("the answer is %s", body)
		}
	})
	t.Run("lost while it was made", func(t *testing.T) {
		at := newClock()
		s, c := start(t, usual, at)
		s.change(true)
		s.during = firstOnly(func() { s.set(func(s *store) { s.failure = errAway }) })
		text(t, c, "a")
		// a standby without the change that the answer shows
		s.set(func(s *store) { s.failure, s.hint = nil, s.hint+1 })
		at.Advance(time.Second)
		text(t, c, "a")
		s.wantReads(t, "a", 2)
	})
	t.Run("too large to be kept", func(t *testing.T) {
		s, c := start(t, usual, newClock())
		text(t, c, "a")
		s.change(true)
		s.set(func(s *store) { s.large = true })
		if a, err := c.Get(t.Context(), "a"); err != nil || a.Rest == nil {
			t.Fatalf("a large answer: %+v, %v", a, err)
		}
		s.set(func(s *store) { s.failure = errAway })
		wantError(t, c, "a", errAway)
	})
	t.Run("made at the same time", func(t *testing.T) {
		s, c := start(t, usual, newClock())
		begun, goOn := s.holdFirst()
		var first sync.WaitGroup
		first.Go(func() { text(t, c, "a") })
		<-begun
		s.change(true)
		text(t, c, "a")
		close(goOn)
		first.Wait()
		s.set(func(s *store) { s.failure, s.hint = errAway, s.hint+1 })
		wantError(t, c, "a", errAway)
	})
}

// TestRemovedServersAreNotStale deletes a version, and the database goes away before any answer is
// made again.
func TestRemovedServersAreNotStale(t *testing.T) {
	at := newClock()
	s, c := start(t, usual, at)
	text(t, c, "com.example/a")
	text(t, c, "com.example/b")
	s.change(true)
	s.set(func(s *store) {
		s.removed = append(s.removed, "com.example/a")
		s.failure = errAway
	})
	wantError(t, c, "com.example/a", errAway)
	stale(t, c, "com.example/b")
	s.set(func(s *store) { s.forgotten = true })
	wantError(t, c, "com.example/b", errAway)
}

// TestFrozenDatabase checks that requests do not wait for a database that does not answer, except
// for the first.
func TestFrozenDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newClock()
		s, c := start(t, usual, at)
		text(t, c, "a")
		at.Advance(time.Second)
		s.set(func(s *store) { s.frozen, s.checks = true, 0 })
		time.Sleep(100 * time.Millisecond) // rounds of renewal begin at other times than calls end
		for range 100 {
			stale(t, c, "a")
		}
		if s.checks != 1 {
			t.Errorf("the revision was read %d times", s.checks)
		}
	})
}

// TestClientsThatGiveUp checks that the end of a request ends its wait.
func TestClientsThatGiveUp(t *testing.T) {
	s, c := start(t, usual, newClock())
	s.set(func(s *store) { s.frozen = true })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestConfig(t *testing.T) {
	for _, good := range []readcache.Config{{}, {Bytes: 64 << 30, StaleMax: 720 * time.Hour}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []readcache.Config{
		{Bytes: -1}, {Bytes: 64<<30 + 1}, {StaleMax: -1}, {StaleMax: 720*time.Hour + 1},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
