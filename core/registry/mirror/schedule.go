package mirror

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

const (
	// overlap is how long before the last success the next read begins: the clock of the other
	// registry may be behind, and changes may become visible late.
	overlap = 5 * time.Minute
	// fullEvery is the time between two comparisons with everything that the other registry lists.
	fullEvery = 24 * time.Hour
	// firstRetry is the time after the first failure; it doubles, up to the interval of the mirror.
	firstRetry = time.Minute
	// maxSkew is how far the clocks of two instances may differ. A time of a state that is further
	// in the future was written by a clock that was wrong.
	maxSkew = time.Minute
	// maxReason is the greatest length of State.Reason in bytes.
	maxReason = 500
)

// State is how a mirror is. Times are UTC with microseconds.
type State struct {
	NextAt       time.Time // of the next read
	LastSuccess  time.Time // when the last read that succeeded began; zero before the first
	LastFull     time.Time // likewise, of those that compared everything
	FailingSince time.Time // when the first of the failures since LastSuccess was; zero without one
	Failures     int       // since then
	Reason       string    // of the last failure
	Servers      int       // that are listed from the mirror, at the last success
	Refused      Refusals  // by the last read that compared everything
}

// Health is a word for a State.
type Health string

// The values of Health.
const (
	Waiting Health = "waiting" // for the first read
	OK      Health = "ok"
	Failing Health = "failing" // what was listed before stays listed
)

// Health returns the word for the state.
func (s State) Health() Health {
	switch {
	case !s.FailingSince.IsZero():
		return Failing
	case s.LastSuccess.IsZero():
		return Waiting
	}
	return OK
}

// IsDue reports whether the next read is due. One that is further away than the interval is due
// too: the clock was ahead when it was planned.
func (m *Mirror) IsDue(now time.Time) bool {
	return !m.State.NextAt.After(now) || m.State.NextAt.After(now.Add(m.Interval+maxSkew))
}

// Since returns since when the next read requests changes; zero if it must compare everything, as
// it must at first, once a day, and if the clock was ahead at the last success: changes since then
// may have earlier times.
func (s State) Since(now time.Time) time.Time {
	latest := now.Add(maxSkew)
	if s.LastFull.IsZero() || now.Sub(s.LastFull) >= fullEvery || s.LastFull.After(latest) ||
		s.LastSuccess.After(latest) {
		return time.Time{}
	}
	return s.LastSuccess.Add(-overlap)
}

// Read is a read of the other registry that succeeded.
type Read struct {
	Began   time.Time
	Full    bool // it compared everything
	Servers int  // that are listed from the mirror
	Refused Refusals
}

// Succeed returns the state after a read.
func (m *Mirror) Succeed(r Read) State {
	began := r.Began.UTC().Truncate(time.Microsecond)
	s := State{
		NextAt: began.Add(m.Interval), LastSuccess: began, LastFull: m.State.LastFull, Servers: r.Servers,
		Refused: m.State.Refused,
	}
	if r.Full {
		s.LastFull, s.Refused = began, r.Refused
	}
	return s
}

// Fail returns the state after a read that failed.
func (m *Mirror) Fail(reason string, now time.Time) State {
	s := m.State
	now = now.UTC().Truncate(time.Microsecond)
	if s.FailingSince.IsZero() {
		s.FailingSince, s.Failures = now, 0
	}
	s.Failures++
	s.Reason = registry.ClipBytes(reason, maxReason)
	delay := firstRetry
	for range s.Failures - 1 {
		if delay >= m.Interval {
			break
		}
		delay *= 2
	}
	s.NextAt = now.Add(min(delay, m.Interval))
	return s
}

// CheckShrink returns fault.Conflict if the other registry lists less than half of the servers that
// the mirror has: then it is more likely broken than that it lost them (contract C-66).
func CheckShrink(had, lists int) error {
	if 2*lists >= had {
		return nil
	}
	return fault.Newf(fault.Conflict, "it lists %d of the %d servers that it had, less than half", lists, had)
}
