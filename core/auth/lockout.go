package auth

import "time"

// LockoutPolicy says how many failures within which time lock a subject, and for how long (decisions 2.2).
type LockoutPolicy struct {
	Threshold int
	Window    time.Duration
	Duration  time.Duration
}

// Locked tells whether the subject is locked at the time.
func (l *Lockout) Locked(now time.Time) bool { return now.Before(l.LockedUntil) }

// Fail counts one failure, and locks the subject when it fills the count. The end of a lock and the end of the window begin a
// new count. It must not be called while the subject is locked.
func (l *Lockout) Fail(p LockoutPolicy, now time.Time) {
	if !l.LockedUntil.IsZero() || l.Failures == 0 || now.Sub(l.FirstAt) >= p.Window {
		*l = Lockout{FirstAt: now}
	}
	l.Failures++
	if l.Failures >= p.Threshold {
		l.LockedUntil = now.Add(p.Duration)
	}
}
