package readcache_test

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/await"
)

func TestAnswersAreKept(t *testing.T) {
	s, c := start(t, usual, newClock())
	for range 3 {
		wantText(t, c, "a", `"a" 0`)
	}
	s.wantReads(t, "a", 1)
}

func TestNothingIsKeptWithoutMemory(t *testing.T) {
	s, c := start(t, readcache.Config{}, newClock())
	text(t, c, "a")
	text(t, c, "a")
	if n := s.countReads("a"); n != 2 || s.checks != 0 {
		t.Errorf("the answer was made %d times, the revision read %d times", n, s.checks)
	}
}

func TestOwnChangesAreSeenAtOnce(t *testing.T) {
	s, c := start(t, usual, newClock())
	for n := range 5 {
		if got, want := text(t, c, "a"), `"a" `+strconv.Itoa(n); got != want {
			t.Errorf("the answer is %s, want %s", got, want)
		}
		s.change(true)
	}
}

// TestChangesOfOthersAreSeenInASecond checks changes of which no hint arrives, and that the
// revision is read once a second while nothing changes.
func TestChangesOfOthersAreSeenInASecond(t *testing.T) {
	at := newClock()
	s, c := start(t, usual, at)
	text(t, c, "a")
	s.change(false)
	at.Advance(time.Second - time.Nanosecond)
	wantText(t, c, "a", `"a" 0`)
	at.Advance(time.Nanosecond)
	wantText(t, c, "a", `"a" 1`)
	s.set(func(s *store) { s.checks = 0 })
	for range 100 {
		at.Advance(100 * time.Millisecond)
		text(t, c, "a")
	}
	if s.checks > 10 {
		t.Errorf("the revision was read %d times in 10 seconds", s.checks)
	}
}

// TestNoAnswerIsOlderThanOneBefore checks that an answer that was made during a change is not
// followed by an older one for another key.
func TestNoAnswerIsOlderThanOneBefore(t *testing.T) {
	s, c := start(t, usual, newClock())
	text(t, c, "old")
	s.change(false)
	wantText(t, c, "new", `"new" 1`)
	wantText(t, c, "old", `"old" 1`)
}

// TestReadsOfTheRevisionOverlap lets an early read of the revision find a later revision than a
// read that begins after it. A response of the later revision is sent, so none of the other may
// follow.
func TestReadsOfTheRevisionOverlap(t *testing.T) {
	at := newClock()
	s, c := start(t, usual, at)
	text(t, c, "old")
	begun, goOn := make(chan struct{}), make(chan struct{})
	s.during = firstOnly(func() {
		s.set(func(s *store) {
			s.checking = firstOnly(func() { // of the request for "new", after its answer was made
				close(begun)
				<-goOn
			})
		})
	})
	var early sync.WaitGroup
	early.Go(func() { text(t, c, "new") })
	<-begun
	text(t, c, "other") // reads the revision before the change
	s.change(false)
	close(goOn)
	early.Wait()
	wantText(t, c, "old", `"old" 1`)
}

func TestMissingIsKept(t *testing.T) {
	s, c := start(t, usual, newClock())
	for range 2 {
		if _, err := c.Get(t.Context(), missingKey); !fault.Is(err, fault.NotFound) {
			t.Errorf("the error is %v", err)
		}
	}
	s.wantReads(t, missingKey, 1)
}

func TestFailuresAreNotKept(t *testing.T) {
	s, c := start(t, usual, newClock())
	text(t, c, "b")
	s.set(func(s *store) { s.failure = fault.New(fault.Internal, "the database failed") })
	if _, err := c.Get(t.Context(), "a"); !fault.Is(err, fault.Internal) {
		t.Errorf("the error is %v", err)
	}
	s.set(func(s *store) { s.failure = nil })
	wantText(t, c, "a", `"a" 0`)
}

// firstOnly returns a function whose first call calls do. Other calls do not wait for it.
func firstOnly(do func()) func() {
	var called atomic.Bool
	return func() {
		if called.CompareAndSwap(false, true) {
			do()
		}
	}
}

// TestOneRequestMakesAnAnswer lets many requests wait for one answer.
func TestOneRequestMakesAnAnswer(t *testing.T) {
	s, c := start(t, usual, newClock())
	begun, goOn := s.holdFirst()
	var all sync.WaitGroup
	get := func() {
		all.Go(func() {
			wantText(t, c, "a", `"a" 0`)
		})
	}
	get()
	<-begun
	for range 20 {
		get()
	}
	close(goOn)
	all.Wait()
	s.wantReads(t, "a", 1)
}

// TestNoRequestWaitsForAnOlderAnswer changes the registry while an answer is made. A request that
// begins after the change must see it.
func TestNoRequestWaitsForAnOlderAnswer(t *testing.T) {
	s, c := start(t, usual, newClock())
	begun, goOn := s.holdFirst()
	var first sync.WaitGroup
	first.Go(func() { text(t, c, "a") })
	<-begun
	s.change(true)
	wantText(t, c, "a", `"a" 1`)
	close(goOn)
	first.Wait()
	wantText(t, c, "a", `"a" 1`)
}

// TestStreamsAreNotShared gives each request its own stream.
func TestStreamsAreNotShared(t *testing.T) {
	_, c := start(t, usual, newClock())
	var mu sync.Mutex
	seen := map[*int]bool{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			a, err := c.Get(t.Context(), streamKey)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || a.Body != nil || seen[a.Rest] {
				t.Errorf("%+v, %v", a, err)
			}
			seen[a.Rest] = true
		})
	}
	all.Wait()
}

func TestPanicReachesTheRequestAlone(t *testing.T) {
	_, c := start(t, usual, newClock())
	for range 2 {
		func() {
			defer func() {
				if recover() != panicKey {
					t.Error("the panic does not reach the request")
				}
			}()
			_, _ = c.Get(t.Context(), panicKey)
		}()
	}
	text(t, c, "a")
}

// TestMemoryIsBounded requests many keys.
func TestMemoryIsBounded(t *testing.T) {
	_, c := start(t, usual, newClock())
	for n := range 50_000 {
		text(t, c, strconv.Itoa(n)+strings.Repeat("k", 500))
	}
	await.Until(t, "the memory is within its bound", func() bool {
		_, bytes := c.Kept()
		return bytes <= uint64(usual.Bytes)
	})
	if entries, _ := c.Kept(); entries < 100 {
		t.Errorf("%d answers are kept", entries)
	}
}

// TestUsualAnswersAreRenewed changes the registry and reads nothing.
func TestUsualAnswersAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, usual, newClock())
		text(t, c, "usual")
		text(t, c, "a")
		s.change(true)
		await.Until(t, "the answer is made again", func() bool { return s.countReads("usual") == 2 })
		s.wantReads(t, "a", 1)
	})
}

// TestPanicWhileRenewing checks that a panic does not end the renewal of answers.
func TestPanicWhileRenewing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, usual, newClock())
		text(t, c, "usual")
		s.set(func(s *store) { s.during = func() { panic("while renewing") } })
		s.change(true)
		await.Until(t, "two renewals that fail", func() bool { return s.countReads("usual") >= 3 })
		s.set(func(s *store) { s.during = nil })
		wantText(t, c, "usual", `"usual" 1`)
	})
}

// TestTheEndOfAnOutageIsNoticed reads nothing after the database is back.
func TestTheEndOfAnOutageIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newClock()
		s, c := start(t, usual, at)
		text(t, c, "a")
		s.set(func(s *store) { s.failure = errAway })
		at.Advance(time.Second)
		stale(t, c, "a")
		s.set(func(s *store) { s.failure = nil })
		at.Advance(time.Second)
		await.Until(t, "it is not stale", func() bool { return !c.IsStale() })
	})
}

// TestUnreadAnswersAreNotRenewed lets more time pass than an answer is renewed for.
func TestUnreadAnswersAreNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newClock()
		s, c := start(t, usual, at)
		text(t, c, "usual")
		at.Advance(11 * time.Minute)
		s.change(true)
		checks := func() (n int) {
			s.set(func(s *store) { n = s.checks })
			return n
		}
		before := checks()
		await.Until(t, "a round of renewal", func() bool { return checks() > before })
		text(t, c, "usual2") // another round
		before = checks()
		at.Advance(time.Second)
		await.Until(t, "a round of renewal", func() bool { return checks() > before })
		s.wantReads(t, "usual", 1)
	})
}

// TestReadsAndChangesInterleave makes changes while many requests read random keys. No answer is
// older than the last change of the own process before the request, nor than an answer that another
// request got before it.
func TestReadsAndChangesInterleave(t *testing.T) {
	s, c := start(t, readcache.Config{Bytes: 1 << 16, StaleMax: time.Hour}, newClock())
	const readers, reads = 8, 2_000
	var mu sync.Mutex
	var newest, written int
	var all sync.WaitGroup
	var done atomic.Int64 // reads
	for range readers {
		all.Go(func() {
			for range reads {
				key := "k" + strconv.Itoa(rand.IntN(20))
				mu.Lock()
				least := max(newest, written)
				mu.Unlock()
				_, number, _ := strings.Cut(text(t, c, key), " ")
				n, err := strconv.Atoi(number)
				if err != nil || n < least {
					t.Errorf("%s: change %s after change %d", key, number, least)
				}
				mu.Lock()
				newest = max(newest, n)
				mu.Unlock()
				done.Add(1)
			}
		})
	}
	all.Go(func() {
		for n := 1; n <= 500; n++ {
			own := rand.IntN(2) == 0
			s.change(own)
			if own {
				mu.Lock()
				written = n
				mu.Unlock()
			}
			for next := min(done.Load()+rand.Int64N(64), readers*reads); done.Load() < next; {
				runtime.Gosched()
			}
		}
	})
	all.Wait()
}
