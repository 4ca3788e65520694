package auth

import (
	"fmt"
	"time"
)

// Lockout counts failed sign-ins of one subject: an e-mail address, whether or not it has an
// account, or a device that has shown its token (contract ).
type Lockout struct {
	Failures    []time.Time // the times of the failures in the present window, in the order of counting
	LockedUntil time.Time   // zero when not locked
}

// LockoutKey names the subject of a Lockout. It is a keyed hash or a UUID, so
// that the store holds no address of people who have no account.
type LockoutKey string

// MaxLockoutThreshold is the greatest LockoutPolicy.Threshold. It is limited because the time of
// each counted failure is stored.
const MaxLockoutThreshold = 100

// LockoutPolicy defines how many failures within a window lock a subject, and for how long.
type LockoutPolicy struct {
	Threshold int           // 1 to MaxLockoutThreshold
	Window    time.Duration // sliding: a failure counts until it is this old
	Duration  time.Duration
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (p LockoutPolicy) Validate() error {
	switch {
	case p.Window < time.Second:
		return fmt.Errorf("Window: %v is less than a second", p.Window)
	case p.Duration < time.Second:
		return fmt.Errorf("Duration: %v is less than a second", p.Duration)
	case p.Threshold < 1:
		return fmt.Errorf("Threshold: %d is less than 1", p.Threshold)
	case p.Threshold > MaxLockoutThreshold:
		return fmt.Errorf("Threshold: %d is more than %d", p.Threshold, MaxLockoutThreshold)
	}
	return nil
}

// Locked reports whether the subject is locked at the time.
func (l *Lockout) Locked(now time.Time) bool { return now.Before(l.LockedUntil) }

// Fail counts one failure, and locks the subject if the failures within the window reach the
// threshold. After a lock a new count begins. It must not be called while the subject is locked.
func (l *Lockout) Fail(p LockoutPolicy, now time.Time) {
	var recent []time.Time
	if l.LockedUntil.IsZero() {
		for _, at := range l.Failures {
			if now.Sub(at) < p.Window {
				recent = append(recent, at)
			}
		}
	}
	*l = Lockout{Failures: append(recent, now)}
	if len(l.Failures) >= p.Threshold {
		l.LockedUntil = now.Add(p.Duration)
	}
}

// Clamp corrects times written by an instance whose clock was ahead, and reports whether it changed
// any: failures are not later than now, and a lock ends no later than one that begins now.
func (l *Lockout) Clamp(p LockoutPolicy, now time.Time) bool {
	changed := false
	if end := now.Add(p.Duration); l.LockedUntil.After(end) {
		l.LockedUntil, changed = end, true
	}
	var failures []time.Time
	for _, at := range l.Failures {
		if at.After(now) {
			at, changed = now, true
		}
		failures = append(failures, at)
	}
	l.Failures = failures
	return changed
}

// Latest returns the later of the last failure and the end of the lock. It is zero for a count that
// was reset.
func (l *Lockout) Latest() time.Time {
	latest := l.LockedUntil
	for _, at := range l.Failures {
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}
