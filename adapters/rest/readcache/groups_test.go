package readcache_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/await"
)

// getAll gets keys at once, each several times, and returns the bodies by key.
func getAll(t *testing.T, c *cache, times int, keys ...string) map[string]string {
	t.Helper()
	bodies := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range times {
		for _, key := range keys {
			all.Go(func() {
				a, err := c.Get(t.Context(), key)
				if err != nil || a.Stale {
					t.Errorf("Get(%s): %v, stale: %t", key, err, a.Stale)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				bodies[key] = string(a.Body.Bytes())
			})
		}
	}
	all.Wait()
	return bodies
}

// TestGroupsAreMadeOnce gets the answers of a group many times at once, with and without answers
// that are kept.
func TestGroupsAreMadeOnce(t *testing.T) {
	s, c := start(t, usual, newClock())
	for round, want := range []string{"0", "1", "2"} {
		got := getAll(t, c, 50, "g/a", "g/b")
		if got["g/a"] != `"g/a" `+want || got["g/b"] != `"g/b" `+want {
			t.Errorf("the answers are %q", got)
		}
		s.wantReads(t, "g", round+1)
		s.change(true)
	}
	_, c = start(t, readcache.Config{}, newClock())
	if got := getAll(t, c, 50, "g/a", "g/b"); got["g/a"] != `"g/a" 0` {
		t.Errorf("without a cache: %q", got)
	}
}

// TestGroupsAreMadeOneAtATime gets the answers of several groups at once.
func TestGroupsAreMadeOneAtATime(t *testing.T) {
	s, c := start(t, usual, newClock())
	var mu sync.Mutex
	making, most := 0, 0
	s.during = func() {
		mu.Lock()
		making++
		most = max(most, making)
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		making--
		mu.Unlock()
	}
	getAll(t, c, 5, "g1/a", "g2/a", "g3/a", "g4/b", "g5/b")
	if most != 1 {
		t.Errorf("%d groups were made at once", most)
	}
}

// TestGroupsAndChanges changes the registry while a group is made: a request that comes then must
// not get the answers that are being made.
func TestGroupsAndChanges(t *testing.T) {
	s, c := start(t, usual, newClock())
	began, goOn := s.holdFirst()
	first := make(chan string)
	go func() { first <- getAll(t, c, 1, "g/a")["g/a"] }()
	<-began
	s.change(true)
	second := make(chan string)
	go func() { second <- getAll(t, c, 1, "g/a")["g/a"] }()
	await.Until(t, "the second request waits", func() bool { return c.Waiting() == 2 })
	close(goOn)
	if got := <-first; got != `"g/a" 1` && got != `"g/a" 0` {
		t.Errorf("the first answer is %s", got)
	}
	if got := <-second; got != `"g/a" 1` || s.countReads("g") != 2 {
		t.Errorf("the second answer is %s, after the group was made %d times", got, s.countReads("g"))
	}
}

// TestAbortedGroups has many requests whose clients give up: nothing is made for them any more, and
// nothing of them is left.
func TestAbortedGroups(t *testing.T) {
	for _, config := range []readcache.Config{usual, {}} {
		s, c := start(t, config, newClock())
		s.set(func(s *store) { s.slow = true })
		before := runtime.NumGoroutine()
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for _, key := range []string{"g/a", "g/b", "g2/a"} {
				for range 50 {
					all.Go(func() {
						if _, err := c.Get(ctx, key); !errors.Is(err, context.Canceled) {
							t.Errorf("Get(%s): %v", key, err)
						}
					})
				}
			}
			await.Until(t, "all requests wait", func() bool { return c.Waiting() == 150 })
			cancel()
			all.Wait()
			s.change(true)
		}
		await.Until(t, "nothing is left", func() bool { return c.Waiting() == 0 && runtime.NumGoroutine() <= before })
		s.set(func(s *store) { s.slow = false })
		if got := getAll(t, c, 2, "g/a", "g2/b"); got["g/a"] != `"g/a" 5` {
			t.Errorf("afterwards: %q", got)
		}
	}
}

// TestTooManyWait has more requests than may wait.
func TestTooManyWait(t *testing.T) {
	s, c := start(t, usual, newClock())
	text(t, c, "g/a")
	s.change(true)
	s.set(func(s *store) { s.slow = true })
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 256 {
		all.Go(func() { _, _ = c.Get(ctx, "g/a") })
	}
	await.Until(t, "all requests wait", func() bool { return c.Waiting() == 256 })
	a, err := c.Get(t.Context(), "g/a")
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unavailable || f.RetryAfter <= 0 || a.Body != nil {
		t.Errorf("one more gets %+v, %v", a, err)
	}
	cancel()
	all.Wait()
}

// TestPanicsInGroups: a panic is the error of those who wait, and does not end the process.
func TestPanicsInGroups(t *testing.T) {
	s, c := start(t, usual, newClock())
	s.during = func() { panic("broken") }
	if _, err := c.Get(t.Context(), "g/a"); err == nil || fault.Is(err, fault.Unavailable) {
		t.Errorf("the error is %v", err)
	}
	s.during = nil
	text(t, c, "g/a")
}

// TestStaleGroups: while the database is away, the answers of groups are sent for a short time
// only, and not after any version was deleted.
func TestStaleGroups(t *testing.T) {
	at := newClock()
	s, c := start(t, usual, at)
	text(t, c, "g/a")
	text(t, c, "a")
	s.set(func(s *store) { s.failure = errAway })
	at.Advance(5 * time.Minute)
	stale(t, c, "g/a")
	at.Advance(time.Second)
	wantError(t, c, "g/a", errAway)
	stale(t, c, "a")
	s.set(func(s *store) { s.failure = nil })
	at.Advance(time.Second)
	text(t, c, "g/a")
	s.change(true)
	s.set(func(s *store) { s.removed, s.failure = append(s.removed, "com.example/x"), errAway })
	at.Advance(time.Second)
	wantError(t, c, "g/a", errAway)
	stale(t, c, "a")
}
