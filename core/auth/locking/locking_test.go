package locking_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/locking"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const key auth.LockoutKey = "k"

var start = time.Date(2031, time.March, 14, 0, 0, 0, 0, time.UTC)

// TestWindowSlides checks that failures before and after the end of the first window lock together.
func TestWindowSlides(t *testing.T) {
	t.Parallel()
	c := clocktest.NewManual(start)
	p := auth.LockoutPolicy{Threshold: 3, Window: 15 * time.Minute, Duration: time.Minute}
	guard := locking.New(p, fakedb.NewLockouts(fakedb.New()), c)
	for i, step := range []time.Duration{0, 14 * time.Minute, 2 * time.Minute, 2 * time.Minute} {
		c.Advance(step)
		if err := guard.Check(t.Context(), key); err != nil {
			t.Errorf("before failure %d: %v", i+1, err)
		}
		if locked, err := guard.Fail(t.Context(), key); err != nil || locked != (i == 3) {
			t.Errorf("failure %d: locked %t, %v", i+1, locked, err)
		}
	}
	if err := guard.Check(t.Context(), key); !fault.Is(err, fault.Forbidden) {
		t.Errorf("while locked: %v", err)
	}
}

// TestTriesUnderWay begins right and wrong attempts before any of them ends. It checks that the
// results are those of attempts made one after the other in the order of their ends: as many wrong
// ones as the threshold, no right one once the subject is locked, and no lock that is removed.
func TestTriesUnderWay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		threshold := rapid.IntRange(1, 6).Draw(r, "threshold")
		store := fakedb.NewLockouts(fakedb.New())
		p := auth.LockoutPolicy{Threshold: threshold, Window: time.Hour, Duration: time.Hour}
		instances := []*locking.Guard{
			locking.New(p, store, clocktest.NewManual(start)), locking.New(p, store, clocktest.NewManual(start)),
		}
		tries := rapid.SliceOfN(rapid.Bool(), 1, 20).Draw(r, "right")
		for range tries {
			if err := instances[0].Check(context.Background(), key); err != nil {
				r.Fatalf("before any try: %v", err)
			}
		}
		wrong := 0 // since the last right one
		for i, right := range tries {
			guard, locked := instances[i%2], wrong >= threshold
			nowLocked, err := false, error(nil)
			if right {
				err = guard.Clear(context.Background(), key)
			} else {
				nowLocked, err = guard.Fail(context.Background(), key)
			}
			switch {
			case locked && !fault.Is(err, fault.Forbidden), !locked && err != nil:
				r.Fatalf("try %d, after %d wrong ones: %v", i, wrong, err)
			case locked:
			case right:
				wrong = 0
			default:
				if wrong++; nowLocked != (wrong == threshold) {
					r.Fatalf("try %d, the wrong one number %d: locked %t", i, wrong, nowLocked)
				}
			}
		}
		l, err := store.Get(context.Background(), key)
		if err != nil || len(l.Failures) != wrong || l.Locked(start) != (wrong >= threshold) {
			r.Fatalf("%+v, %v, want %d failures", l, err, wrong)
		}
	})
}

// TestClockThatWasAhead checks that a lock written by a clock that was a year ahead lasts as long
// as one that begins now.
func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	store := fakedb.NewLockouts(fakedb.New())
	p := auth.LockoutPolicy{Threshold: 2, Window: time.Hour, Duration: time.Minute}
	ahead, c := locking.New(p, store, clocktest.NewManual(start.AddDate(1, 0, 0))), clocktest.NewManual(start)
	guard := locking.New(p, store, c)
	for range 2 {
		if _, err := ahead.Fail(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // it does not begin anew with each call
		err := guard.Check(t.Context(), key)
		if f, ok := fault.As(err); !ok || f.Details.Text("lockoutUntil") != "2031-03-14T00:01:00.000Z" {
			t.Fatalf("at %v: %v, want a lock of a minute", c.Now(), err)
		}
		c.Advance(20 * time.Second)
	}
	if err := guard.Check(t.Context(), key); err != nil {
		t.Errorf("after the lock: %v", err)
	}

	must.Succeed(t, guard.Clear(t.Context(), key))
	for _, g := range []*locking.Guard{ahead, guard} {
		if locked, err := g.Fail(t.Context(), key); err != nil || locked != (g == guard) {
			t.Fatalf("locked %t, %v, want both failures to count together", locked, err)
		}
	}
	c.Advance(time.Minute)
	if locked, err := guard.Fail(t.Context(), key); err != nil || locked {
		t.Errorf("after the lock: locked %t, %v", locked, err)
	}
}
