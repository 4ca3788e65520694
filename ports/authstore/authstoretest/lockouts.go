package authstoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runLockouts tests the lockout store.
func runLockouts(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, open, map[string]func(t *testing.T, s Stores){
		"a stored lockout has the value of every field":                lockoutKeepsEveryField,
		"any lockout is returned as it was stored":                     lockoutRoundTrips,
		"the first change of a subject gets the zero value":            beginsAtZero,
		"an update whose change fails stores nothing":                  lockoutFailedChange,
		"parallel updates of a lockout are all stored":                 lockoutLosesNoUpdate,
		"parallel updates never exceed a bound that the change checks": neverExceedsBound,
		"deletion removes lockouts that ended before a time":           deletesBefore,
		"a failed transaction stores no lockout":                       lockoutRollsBack,
		"a call with a cancelled context fails":                        lockoutHeedsCancel,
	})
}

const lockoutKey auth.LockoutKey = "email:5f1d7a84db00d2fce00b31a7fc73224f"

func set(l auth.Lockout) func(*auth.Lockout) error {
	return func(p *auth.Lockout) error {
		*p = l
		return nil
	}
}

func fail(l *auth.Lockout) error {
	l.Failures = append(l.Failures, recordtest.Epoch())
	return nil
}

func wantLockout(ctx context.Context, t rapid.TB, s Stores, k auth.LockoutKey, want auth.Lockout) {
	t.Helper()
	recordtest.Equal(t, recordtest.Must(s.Lockouts.Get(ctx, k))(t), want)
}

func lockoutSample() auth.Lockout {
	first := recordtest.Epoch()
	return auth.Lockout{
		Failures:    []time.Time{first, first.Add(time.Microsecond), first.Add(time.Minute), first},
		LockedUntil: first.Add(15 * time.Minute),
	}
}

// failures returns n failures at one time, or nil if n is 0.
func failures(n int) []time.Time { return slices.Repeat([]time.Time{recordtest.Epoch()}, n) }

func lockoutKeepsEveryField(t *testing.T, s Stores) {
	recordtest.Whole(t, lockoutSample())
	recordtest.OK(t, s.Lockouts.Update(t.Context(), lockoutKey, set(lockoutSample())))
	wantLockout(t.Context(), t, s, lockoutKey, lockoutSample())
}

func lockoutRoundTrips(t *testing.T, s Stores) {
	was := map[auth.LockoutKey]auth.Lockout{}
	rapid.Check(t, func(r *rapid.T) {
		k := auth.LockoutKey(rapid.SampledFrom([]string{"device:a", "device:b", "device:A"}).Draw(r, "key"))
		l := auth.Lockout{
			LockedUntil: recordtest.Optional(recordtest.Instant()).Draw(r, "until"),
		}
		if n := rapid.IntRange(0, auth.MaxLockoutThreshold).Draw(r, "failures"); n > 0 {
			l.Failures = rapid.SliceOfN(recordtest.Instant(), n, n).Draw(r, "times")
		}
		recordtest.OK(r, s.Lockouts.Update(t.Context(), k, func(p *auth.Lockout) error {
			recordtest.Equal(r, *p, was[k])
			*p = l
			return nil
		}))
		was[k] = l
		for k, want := range was {
			wantLockout(t.Context(), r, s, k, want)
		}
	})
}

func beginsAtZero(t *testing.T, s Stores) {
	wantLockout(t.Context(), t, s, lockoutKey, auth.Lockout{})
	recordtest.OK(t, s.Lockouts.Update(t.Context(), lockoutKey, func(p *auth.Lockout) error {
		recordtest.Equal(t, *p, auth.Lockout{})
		return fail(p)
	}))
	wantLockout(t.Context(), t, s, lockoutKey, auth.Lockout{Failures: failures(1)})
	wantLockout(t.Context(), t, s, "device:other", auth.Lockout{})
}

// lockoutFailedChange also fails the first change of a subject.
func lockoutFailedChange(t *testing.T, s Stores) {
	failed := errors.New("failed")
	for _, want := range []auth.Lockout{{}, lockoutSample()} {
		recordtest.OK(t, s.Lockouts.Update(t.Context(), lockoutKey, set(want)))
		for _, k := range []auth.LockoutKey{lockoutKey, "device:new"} {
			err := s.Lockouts.Update(t.Context(), k, func(p *auth.Lockout) error {
				for i := range p.Failures { // also of what is there
					p.Failures[i] = time.Time{}
				}
				_ = fail(p) // it never does
				return failed
			})
			if !errors.Is(err, failed) {
				t.Errorf("Update returned %v", err)
			}
		}
		wantLockout(t.Context(), t, s, lockoutKey, want)
		wantLockout(t.Context(), t, s, "device:new", auth.Lockout{})
	}
}

// lockoutLosesNoUpdate begins with subjects that are not there, and makes some of the
// updates part of greater transactions, as a sign-in does.
func lockoutLosesNoUpdate(t *testing.T, s Stores) {
	const calls, subjects = 50, 2
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls*subjects, func(i int) error {
		k := auth.LockoutKey(fmt.Sprintf("device:%d", i%subjects))
		if i%3 == 0 {
			return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
				return s.Lockouts.Update(ctx, k, fail)
			})
		}
		return s.Lockouts.Update(t.Context(), k, fail)
	})...))
	for i := range subjects {
		wantLockout(t.Context(), t, s, auth.LockoutKey(fmt.Sprintf("device:%d", i)), auth.Lockout{
			Failures: failures(calls),
		})
	}
}

// neverExceedsBound has more updates at once than one of them lets pass, alone and in greater
// transactions, right after all have read the subject. What Get returns afterwards is what the last
// of them stored.
func neverExceedsBound(t *testing.T, s Stores) {
	const calls, bound = 40, 5
	full := errors.New("full")
	change := func(l *auth.Lockout) error {
		if len(l.Failures) >= bound {
			return full
		}
		return fail(l)
	}
	var read sync.WaitGroup
	read.Add(calls)
	refused := 0
	for _, err := range recordtest.Parallel(calls, func(i int) error {
		_, err := s.Lockouts.Get(t.Context(), lockoutKey)
		read.Done()
		read.Wait()
		if err != nil {
			return err
		}
		if i%2 == 0 {
			return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
				return s.Lockouts.Update(ctx, lockoutKey, change)
			})
		}
		return s.Lockouts.Update(t.Context(), lockoutKey, change)
	}) {
		if errors.Is(err, full) {
			refused++
			continue
		}
		recordtest.OK(t, err)
	}
	if refused != calls-bound {
		t.Errorf("%d of %d updates were refused, want all but %d", refused, calls, bound)
	}
	wantLockout(t.Context(), t, s, lockoutKey, auth.Lockout{Failures: failures(bound)})
}

func deletesBefore(t *testing.T, s Stores) {
	edge := recordtest.Epoch()
	past, never := edge.Add(-time.Microsecond), time.Time{}
	for _, c := range []struct {
		failures []time.Time
		until    time.Time
		gone     bool
	}{
		{[]time.Time{past}, never, true}, {[]time.Time{past}, past, true}, {[]time.Time{past}, edge, false},
		{[]time.Time{past, edge}, never, false}, {[]time.Time{edge, past}, past, false}, {nil, past, true}, {
			nil, edge, false,
		},
		{nil, never, true},
	} {
		l := auth.Lockout{Failures: c.failures, LockedUntil: c.until}
		recordtest.OK(t, s.Lockouts.Update(t.Context(), lockoutKey, set(l)))
		n, want := recordtest.Must(s.Lockouts.DeleteBefore(t.Context(), edge))(t), 0
		if c.gone {
			l, want = auth.Lockout{}, 1
		}
		if n != want {
			t.Errorf("DeleteBefore of %+v = %d, want %d", c, n, want)
		}
		wantLockout(t.Context(), t, s, lockoutKey, l)
	}
}

func lockoutRollsBack(t *testing.T, s Stores) {
	recordtest.OK(t, s.Lockouts.Update(t.Context(), lockoutKey, set(lockoutSample())))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.Lockouts.Update(ctx, "device:new", fail); err != nil {
			return err
		}
		wantLockout(ctx, t, s, "device:new", auth.Lockout{Failures: failures(1)})
		if n, err := s.Lockouts.DeleteBefore(ctx, lockoutSample().LockedUntil.Add(time.Hour)); err != nil || n != 2 {
			t.Errorf("DeleteBefore = %d, %v, want both subjects", n, err)
		}
		return nil
	})
	wantLockout(t.Context(), t, s, lockoutKey, lockoutSample())
	wantLockout(t.Context(), t, s, "device:new", auth.Lockout{})
}

func lockoutHeedsCancel(t *testing.T, s Stores) {
	recordtest.OK(t, s.Lockouts.Update(t.Context(), lockoutKey, set(lockoutSample())))
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Update": func(ctx context.Context) error { return s.Lockouts.Update(ctx, lockoutKey, fail) },
		"Get":    func(ctx context.Context) error { _, err := s.Lockouts.Get(ctx, lockoutKey); return err },
		"DeleteBefore": func(ctx context.Context) error {
			_, err := s.Lockouts.DeleteBefore(ctx, lockoutSample().LockedUntil.Add(time.Hour))
			return err
		},
	})
	wantLockout(t.Context(), t, s, lockoutKey, lockoutSample())
}
