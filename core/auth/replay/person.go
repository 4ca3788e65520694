package replay

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assess"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// How much is remembered of one person at most. So many attempts are also all that live sign-ins look at.
const (
	maxAttempts = 200
	maxSessions = 1000
)

// person is what is remembered of one, oldest first.
type person struct {
	attempts []attempt   // of the last assess.FailureSpan
	sessions []time.Time // of the last assess.LongSpan
	stays    []risk.Stay // where trusted sessions were begun, the last assess.HistorySessions
	devices  []device    // that are confirmed or marked
}

type attempt struct {
	at     time.Time
	failed bool
}

type device struct {
	identity           auth.DeviceIdentity
	confirmed, trusted bool
}

// device returns what is known of a device; the zero value when nothing is.
func (p *person) device(identity auth.DeviceIdentity) device {
	for _, d := range p.devices {
		if d.identity == identity {
			return d
		}
	}
	return device{}
}

// confirmed tells whether any device is.
func (p *person) confirmed() bool {
	return slices.ContainsFunc(p.devices, func(d device) bool { return d.confirmed })
}

func (p *person) attempt(at time.Time, failed bool) {
	p.expire(at)
	p.attempts = bounded(append(p.attempts, attempt{at, failed}), maxAttempts)
}

func (p *person) session(at time.Time) { p.sessions = bounded(append(p.sessions, at), maxSessions) }

func (p *person) stay(at time.Time, l risk.Location) {
	l.Network = risk.Network{} // nothing is learnt from it
	p.stays = bounded(append(p.stays, risk.Stay{At: at, Location: l}), assess.HistorySessions)
}

// mark notes a confirmation and the owner's word.
func (p *person) mark(identity auth.DeviceIdentity, confirmed bool, trusted Told) {
	d := p.device(identity)
	d.confirmed = d.confirmed || confirmed
	if trusted != Untold {
		d.trusted = trusted == Yes
	}
	p.devices = slices.DeleteFunc(p.devices, func(o device) bool { return o.identity == identity })
	if d.confirmed || d.trusted {
		d.identity = identity
		p.devices = append(p.devices, d)
	}
}

// expire drops the attempts and sessions that no longer count.
func (p *person) expire(now time.Time) {
	p.attempts = slices.DeleteFunc(p.attempts, func(a attempt) bool { return !a.at.After(now.Add(-assess.FailureSpan)) })
	p.sessions = slices.DeleteFunc(p.sessions, func(t time.Time) bool { return !t.After(now.Add(-assess.LongSpan)) })
	if len(p.attempts) == 0 {
		p.attempts = nil // frees what held them
	}
	if len(p.sessions) == 0 {
		p.sessions = nil
	}
}

// forgettable tells whether it makes no difference that the person was ever seen.
func (p *person) forgettable() bool {
	return len(p.attempts) == 0 && len(p.sessions) == 0 && len(p.stays) == 0 && len(p.devices) == 0
}

// bounded drops the oldest of what is too much.
func bounded[T any](list []T, most int) []T {
	if len(list) > most {
		list = slices.Delete(list, 0, len(list)-most)
	}
	return list
}
