package auth

import "time"

// MaxLockoutThreshold bounds LockoutPolicy.Threshold, since the time of each failure that counts is kept.
const MaxLockoutThreshold = 100

// LockoutPolicy says how many failures within which time lock a subject, and for how long (decisions 2.2).
type LockoutPolicy struct {
	Threshold int           // 1 to MaxLockoutThreshold
	Window    time.Duration // it slides: what counts is each failure's own age
	Duration  time.Duration
}

// Locked tells whether the subject is locked at the time.
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

// GiveBack takes back the latest failure, and the lock where it was that one that filled the count.
func (l *Lockout) GiveBack(p LockoutPolicy) {
	if n := len(l.Failures); n > 0 {
		l.Failures = l.Failures[:n-1]
	}
	if len(l.Failures) < p.Threshold {
		l.LockedUntil = time.Time{}
	}
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
