package replay

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// The greatest size of the history of one person. Live sign-ins read the same number of attempts.
const (
	maxAttempts = 200
	maxSessions = 1000
)

// personHistory is the history of one person, oldest first.
type personHistory struct {
	attempts []attempt          // of the last assess.FailureSpan
	sessions []time.Time        // of the last assess.LongSpan
	stays    []risk.SignInPlace // where trusted sessions were begun, the last assess.HistorySessions
	devices  []knownDevice      // that are confirmed or marked
	counts   history.Table      // nil until something is learnt, or if the scorer is Points
}

type attempt struct {
	at     time.Time
	failed bool
}

type knownDevice struct {
	identity           auth.DeviceIdentity
	confirmed, trusted bool
}

// findDevice returns the known device of an identity, or the zero value.
func (p *personHistory) findDevice(identity auth.DeviceIdentity) knownDevice {
	for _, d := range p.devices {
		if d.identity == identity {
			return d
		}
	}
	return knownDevice{}
}

// hasConfirmedDevice reports whether any device is confirmed.
func (p *personHistory) hasConfirmedDevice() bool {
	return slices.ContainsFunc(p.devices, func(d knownDevice) bool { return d.confirmed })
}

func (p *personHistory) addAttempt(at time.Time, failed bool) {
	p.dropExpired(at)
	p.attempts = keepNewest(append(p.attempts, attempt{at, failed}), maxAttempts)
}

func (p *personHistory) addSession(at time.Time) {
	p.sessions = keepNewest(append(p.sessions, at), maxSessions)
}

func (p *personHistory) addStay(at time.Time, l risk.Location) {
	l.Network = risk.Network{} // nothing is learnt from it
	p.stays = keepNewest(append(p.stays, risk.SignInPlace{At: at, Location: l}), assessment.HistorySessions)
}

// markDevice records that a device is confirmed, and the mark of its owner.
func (p *personHistory) markDevice(identity auth.DeviceIdentity, confirmed bool, trusted RecordedBool) {
	d := p.findDevice(identity)
	d.confirmed = d.confirmed || confirmed
	if trusted != Unrecorded {
		d.trusted = trusted == Yes
	}
	p.devices = slices.DeleteFunc(p.devices, func(o knownDevice) bool { return o.identity == identity })
	if d.confirmed || d.trusted {
		d.identity = identity
		p.devices = append(p.devices, d)
	}
}

// dropExpired drops the attempts and sessions that no longer count.
func (p *personHistory) dropExpired(now time.Time) {
	p.attempts = slices.DeleteFunc(p.attempts, func(a attempt) bool {
		return !a.at.After(now.Add(-assessment.FailureSpan))
	})
	p.sessions = slices.DeleteFunc(p.sessions, func(t time.Time) bool {
		return !t.After(now.Add(-assessment.LongSpan))
	})
	if len(p.attempts) == 0 {
		p.attempts = nil // frees what held them
	}
	if len(p.sessions) == 0 {
		p.sessions = nil
	}
}

// dropCounts drops the counts that have ended.
func (p *personHistory) dropCounts(now time.Time) {
	maps.DeleteFunc(p.counts, func(_ history.Value, c history.Count) bool { return !c.Seen(now) })
}

// isEmpty reports whether the history has no entries.
func (p *personHistory) isEmpty() bool {
	return len(p.attempts) == 0 && len(p.sessions) == 0 && len(p.stays) == 0 && len(p.devices) == 0 &&
		len(p.counts) == 0
}

// keepNewest returns the newest entries of list, at most most.
func keepNewest[T any](list []T, most int) []T {
	if len(list) > most {
		list = slices.Delete(list, 0, len(list)-most)
	}
	return list
}

// replayedHistory implements assess.SignInHistory with the replayed events.
type replayedHistory struct{ r *Replayer }

func (p replayedHistory) FailedSince(_ context.Context, user auth.UserID, t time.Time) (int, error) {
	n := 0
	for _, a := range p.r.findPerson(user).attempts {
		if a.failed && a.at.After(t) {
			n++
		}
	}
	return n, nil
}

func (p replayedHistory) SessionsSince(_ context.Context, user auth.UserID, t time.Time) (int, error) {
	n := 0
	for _, at := range p.r.findPerson(user).sessions {
		if at.After(t) {
			n++
		}
	}
	return n, nil
}

func (p replayedHistory) SignInPlaces(_ context.Context, user auth.UserID) ([]risk.SignInPlace, error) {
	stays := slices.Clone(p.r.findPerson(user).stays)
	slices.Reverse(stays)
	return stays, nil
}

// eventSignals implements the ports of signals with the data of the event. It calls the configured
// sources for data that the event does not have.
type eventSignals struct{ r *Replayer }

// Locate implements signals.Geography.
func (t eventSignals) Locate(ctx context.Context, a netip.Addr) risk.Location {
	if l := t.r.event.Location; l != nil {
		return *l
	}
	return t.r.geography.Locate(ctx, a)
}

// Rate implements signals.Reputation.
func (t eventSignals) Rate(ctx context.Context, a netip.Addr) risk.Reputation {
	if r := t.r.event.Reputation; r != nil {
		return *r
	}
	return t.r.reputation.Rate(ctx, a)
}
