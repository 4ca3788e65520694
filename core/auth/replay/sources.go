package replay

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// replayedHistory answers assess.Past from what was replayed.
type replayedHistory struct{ r *Replayer }

// FailedSince answers assess.Past.
func (p replayedHistory) FailedSince(_ context.Context, user auth.UserID, t time.Time) (int, error) {
	n := 0
	for _, a := range p.r.findPerson(user).attempts {
		if a.failed && a.at.After(t) {
			n++
		}
	}
	return n, nil
}

// SessionsSince answers assess.Past.
func (p replayedHistory) SessionsSince(_ context.Context, user auth.UserID, t time.Time) (int, error) {
	n := 0
	for _, at := range p.r.findPerson(user).sessions {
		if at.After(t) {
			n++
		}
	}
	return n, nil
}

// SignInPlaces answers assess.Past.
func (p replayedHistory) SignInPlaces(_ context.Context, user auth.UserID) ([]risk.Stay, error) {
	stays := slices.Clone(p.r.findPerson(user).stays)
	slices.Reverse(stays)
	return stays, nil
}

// eventSignals answers the ports of signals with what the event tells, or else by the configured sources.
type eventSignals struct{ r *Replayer }

// Locate answers signals.Geography.
func (t eventSignals) Locate(ctx context.Context, a netip.Addr) risk.Location {
	if l := t.r.event.Location; l != nil {
		return *l
	}
	return t.r.geography.Locate(ctx, a)
}

// Rate answers signals.Reputation.
func (t eventSignals) Rate(ctx context.Context, a netip.Addr) risk.Reputation {
	if r := t.r.event.Reputation; r != nil {
		return *r
	}
	return t.r.reputation.Rate(ctx, a)
}
