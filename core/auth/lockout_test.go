package auth_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// TestLockedByFailuresWithinTheWindow compares the lockout with the list of all failures: a failure
// locks exactly if the failures within the window, since the last lock, reach the threshold.
func TestLockedByFailuresWithinTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		p := auth.LockoutPolicy{
			Threshold: rapid.IntRange(1, 6).Draw(r, "threshold"),
			Window:    time.Duration(rapid.IntRange(1, 20).Draw(r, "window")) * time.Second,
			Duration:  time.Duration(rapid.IntRange(1, 20).Draw(r, "duration")) * time.Second,
		}
		now := time.Date(2031, time.March, 14, 0, 0, 0, 0, time.UTC)
		var l auth.Lockout
		var all []time.Time
		var until time.Time
		for range rapid.IntRange(1, 60).Draw(r, "failures") {
			now = now.Add(time.Duration(rapid.IntRange(0, 8).Draw(r, "pause")) * time.Second)
			if want := now.Before(until); l.Locked(now) != want {
				r.Fatalf("locked is %t, want %t: failures %v, now %v", !want, want, all, now)
			}
			if l.Locked(now) {
				continue
			}
			if !until.IsZero() {
				all, until = nil, time.Time{}
			}
			l.Fail(p, now)
			all = append(all, now)
			within := 0
			for _, at := range all {
				if at.After(now.Add(-p.Window)) {
					within++
				}
			}
			if within >= p.Threshold {
				until = now.Add(p.Duration)
			}
			if !l.LockedUntil.Equal(until) || len(l.Failures) != within || len(l.Failures) > p.Threshold {
				r.Fatalf("%+v, want %d failures and locked until %v", l, within, until)
			}
		}
	})
}

// TestClamp checks that times in the future become now, and that all other times are unchanged.
func TestClamp(t *testing.T) {
	t.Parallel()
	p := auth.LockoutPolicy{Threshold: 3, Window: time.Minute, Duration: time.Minute}
	now := time.Date(2031, time.March, 14, 0, 0, 0, 0, time.UTC)
	past, ahead := now.Add(-time.Second), now.Add(time.Hour)
	for name, c := range map[string]struct{ stored, want auth.Lockout }{
		"nothing": {},
		"right": {
			auth.Lockout{Failures: []time.Time{past, now}, LockedUntil: now.Add(time.Minute)},
			auth.Lockout{Failures: []time.Time{past, now}, LockedUntil: now.Add(time.Minute)},
		},
		"failures": {auth.Lockout{Failures: []time.Time{past, ahead}}, auth.Lockout{Failures: []time.Time{past, now}}},
		"lock": {
			auth.Lockout{Failures: []time.Time{past, past, ahead}, LockedUntil: ahead.Add(time.Minute)},
			auth.Lockout{Failures: []time.Time{past, past, now}, LockedUntil: now.Add(time.Minute)},
		},
	} {
		got := auth.Lockout{Failures: slices.Clone(c.stored.Failures), LockedUntil: c.stored.LockedUntil}
		if changed := got.Clamp(p, now); !reflect.DeepEqual(got, c.want) ||
			changed == reflect.DeepEqual(c.stored, c.want) {
			t.Errorf("%s: %+v (changed: %t), want %+v", name, got, changed, c.want)
		}
		if got.Clamp(p, now) {
			t.Errorf("%s: changed twice", name)
		}
	}
}

// TestFailLeavesOthersAlone checks that Fail does not change a copy of the lockout.
func TestFailLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	p := auth.LockoutPolicy{Threshold: 9, Window: time.Minute, Duration: time.Minute}
	begin := time.Date(2031, time.March, 14, 0, 0, 0, 0, time.UTC)
	var l auth.Lockout
	for i := range 4 {
		l.Fail(p, begin.Add(time.Duration(i)*10*time.Second))
	}
	other := l
	other.Fail(p, begin.Add(75*time.Second))
	for i, at := range l.Failures {
		if !at.Equal(begin.Add(time.Duration(i) * 10 * time.Second)) {
			t.Errorf("failure %d is now at %v", i, at)
		}
	}
	if len(other.Failures) != 3 {
		t.Errorf("%v, want the three of the last minute", other.Failures)
	}
}
