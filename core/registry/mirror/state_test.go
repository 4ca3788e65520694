package mirror

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state State
		want  Health
	}{
		{State{}, Waiting},
		{State{NextAt: epoch}, Waiting},
		{State{LastSuccess: epoch}, OK},
		{State{FailingSince: epoch}, Failing}, // it has never succeeded
		{State{LastSuccess: epoch, FailingSince: epoch.Add(time.Hour)}, Failing},
	} {
		wantEqual(t, c.state.Health(), c.want, "%+v", c.state)
	}
}

// TestSince checks that the first read and one a day compare everything, and that others begin 5
// minutes before the last success (contract C-62).
func TestSince(t *testing.T) {
	t.Parallel()
	s := State{LastFull: epoch, LastSuccess: epoch.Add(time.Hour)}
	for _, c := range []struct {
		state State
		after time.Duration
		want  time.Time
	}{
		{State{}, 0, time.Time{}},
		{State{FailingSince: epoch, Failures: 3}, time.Hour, time.Time{}},
		{s, 2 * time.Hour, epoch.Add(55 * time.Minute)},
		{s, 24*time.Hour - 1, epoch.Add(55 * time.Minute)},
		{s, 24 * time.Hour, time.Time{}},
		{s, 100 * time.Hour, time.Time{}},
		{s, 59*time.Minute + 30*time.Second, epoch.Add(55 * time.Minute)}, // the clock of another instance
		{s, 58 * time.Minute, time.Time{}},                                // a clock that was ahead
		{State{LastFull: epoch, LastSuccess: epoch.Add(-time.Hour)}, -time.Hour, time.Time{}},
	} {
		if got := c.state.Since(epoch.Add(c.after)); !got.Equal(c.want) {
			t.Errorf("%s after the comparison, a read of %+v asks since %s, want %s", c.after, c.state, got, c.want)
		}
	}
}

// TestIsDue checks that a read that a clock planned too far ahead is due (contract C-62).
func TestIsDue(t *testing.T) {
	t.Parallel()
	for next, want := range map[time.Duration]bool{
		-time.Second: true, 0: true, time.Second: false, time.Hour: false, time.Hour + time.Minute: false,
		time.Hour + time.Minute + 1: true, 48 * time.Hour: true,
	} {
		m := Mirror{Interval: time.Hour, State: State{NextAt: epoch.Add(next)}}
		wantEqual(t, m.IsDue(epoch), want, "a read in %s is due", next)
	}
}

// TestSucceed checks that a success ends failures, counts the interval from its beginning, and
// moves the last comparison only if it was one.
func TestSucceed(t *testing.T) {
	t.Parallel()
	m := Mirror{Interval: time.Hour, State: State{
		LastFull: epoch, LastSuccess: epoch, FailingSince: epoch.Add(time.Hour), Failures: 2,
		Reason: "it is away", Servers: 7,
		Refused: Refusals{RuleGranted: 2},
	}}
	began := epoch.Add(2 * time.Hour)
	kept := State{
		NextAt: began.Add(time.Hour), LastSuccess: began, LastFull: epoch, Servers: 9, Refused: Refusals{
			RuleGranted: 2,
		},
	}
	given := began.In(time.FixedZone("east", 3600)).Add(999)
	if got := m.Succeed(Read{
		Began: given, Servers: 9, Refused: Refusals{RuleRecord: 1},
	}); !reflect.DeepEqual(got, kept) || got.Health() != OK {
		t.Errorf("after a read of changes: %+v, want %+v", got, kept)
	}
	kept.LastFull, kept.Refused = began, Refusals{RuleRecord: 1}
	if got := m.Succeed(Read{
		Began: given, Full: true, Servers: 9, Refused: kept.Refused,
	}); !reflect.DeepEqual(got, kept) {
		t.Errorf("after a comparison: %+v, want %+v", got, kept)
	}
}

// TestFail checks that failures keep what is known of the last success and the time of the first
// one, and that the reason is that of the last one.
func TestFail(t *testing.T) {
	t.Parallel()
	before := State{LastSuccess: epoch, LastFull: epoch, NextAt: epoch.Add(time.Hour), Servers: 7}
	m := Mirror{Interval: time.Hour, State: before}
	first := epoch.Add(time.Hour)
	m.State = m.Fail("it is away", first.In(time.FixedZone("east", 3600)).Add(999))
	want := before
	want.FailingSince, want.Failures, want.Reason, want.NextAt = first, 1, "it is away", first.Add(time.Minute)
	wantEqual(t, m.State, want, "after a failure")
	m.State = m.Fail("it is slow", first.Add(time.Minute))
	want.Failures, want.Reason, want.NextAt = 2, "it is slow", first.Add(3*time.Minute)
	if !reflect.DeepEqual(m.State, want) || m.State.Health() != Failing {
		t.Errorf("after a second failure: %+v, want %+v", m.State, want)
	}
}

// TestRetries checks that the time to the next read after a failure begins with a minute, doubles,
// and is at most the interval (contract C-62).
func TestRetries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := Mirror{
			Interval: time.Duration(rapid.Int64Range(int64(MinInterval), int64(MaxInterval)).Draw(t, "interval")),
		}
		now, want := epoch, time.Minute
		for range rapid.IntRange(1, 200).Draw(t, "failures") {
			m.State = m.Fail("it is away", now)
			if got := m.State.NextAt.Sub(now); got != min(want, m.Interval) {
				t.Fatalf("after %d failures with the interval %s, the next read is after %s, want %s", m.State.Failures,
					m.Interval, got, min(want, m.Interval))
			}
			want = min(2*want, MaxInterval)
			now = now.Add(time.Second)
		}
		if !m.State.FailingSince.Equal(epoch) {
			t.Fatalf("it fails since %s, want the first failure", m.State.FailingSince)
		}
	})
}

// TestReasonsAreClipped checks that a reason is stored up to its bound, and never with a part of a
// character.
func TestReasonsAreClipped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		reason := strings.Repeat("x", rapid.IntRange(0, 4).Draw(t, "before")) +
			strings.Repeat(rapid.SampledFrom([]string{"x", "é", "€", "😀"}).Draw(t, "character"),
				rapid.IntRange(0, 600).Draw(t, "times"))
		m := Mirror{Interval: time.Hour}
		got := m.Fail(reason, epoch).Reason
		if !strings.HasPrefix(reason, got) || !utf8.ValidString(got) || len(got) > maxReason ||
			len(got) < min(len(reason), maxReason-utf8.UTFMax+1) {
			t.Fatalf("a reason of %d bytes is stored as %d bytes: %q", len(reason), len(got), got)
		}
	})
}

// TestCheckShrink checks that exactly half of the servers is enough, and less is not (contract
// C-66).
func TestCheckShrink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		had, lists int
		refused    bool
	}{
		{0, 0, false}, {0, 5, false}, {1, 0, true}, {1, 1, false}, {2, 1, false}, {3, 1, true}, {3, 2, false}, {
			10, 5, false,
		}, {10, 4, true}, {10, 100, false},
	} {
		if err := CheckShrink(c.had, c.lists); fault.Is(err, fault.Conflict) != c.refused || (err != nil) != c.refused {
			t.Errorf("a list of %d servers for %d: %v, want a refusal: %t", c.lists, c.had, err, c.refused)
		}
	}
	if err := CheckShrink(10, 4); !strings.Contains(err.Error(), "4 of the 10") {
		t.Errorf("the refusal is %q", err)
	}
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t *testing.T, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}
