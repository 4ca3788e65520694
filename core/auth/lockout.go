package auth

import "time"

// MaxLockoutThreshold bounds LockoutPolicy.Threshold, since the time of each failure that counts is kept.
const MaxLockoutThreshold = 100

// LockoutPolicy says how many failures within which time lock a subject, and for how long.
type LockoutPolicy struct {
	Threshold int           // 1 to MaxLockoutThreshold
	Window    time.Duration // it slides: what counts is each failure's own age
	Duration  time.Duration
}

// Locked reports whether the subject is locked at the time.
func (l *Lockout) Locked(now time.Time) bool { return now.Before(l.LockedUntil) }

// Fail counts one failure, and locks the subject when as many as the threshold lie within the window. The end of a lock begins a
// new count. It must not be called while the subject is locked.
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

// Clamp takes back what a clock that was ahead has written, and reports whether that changed anything: a failure counts from now
// at the latest, and a lock lasts no longer than one that begins now.
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

// Latest returns the later of the last failure and the end of the lock: what came before matters no longer than that does. It is
// zero for a count that was reset.
func (l *Lockout) Latest() time.Time {
	latest := l.LockedUntil
	for _, at := range l.Failures {
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}
