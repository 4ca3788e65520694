package replay

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// replayedHistory implements assess.SignInHistory with the replayed events.
type replayedHistory struct{ r *Replayer }

// FailedSince implements assess.SignInHistory.
func (p replayedHistory) FailedSince(_ context.Context, user auth.UserID, t time.Time) (int, error) {
	n := 0
	for _, a := range p.r.findPerson(user).attempts {
		if a.failed && a.at.After(t) {
			n++
		}
	}
	return n, nil
}

// SessionsSince implements assess.SignInHistory.
func (p replayedHistory) SessionsSince(_ context.Context, user auth.UserID, t time.Time) (int, error) {
	n := 0
	for _, at := range p.r.findPerson(user).sessions {
		if at.After(t) {
			n++
		}
	}
	return n, nil
}

// SignInPlaces implements assess.SignInHistory.
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
