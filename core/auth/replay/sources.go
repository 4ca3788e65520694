package replay

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// past answers assess.Past from what was replayed.
type past struct{ r *Replayer }

// FailedSince answers assess.Past.
func (p past) FailedSince(_ context.Context, user auth.UserID, t time.Time) (int, error) {
	n := 0
	for _, a := range p.r.person(user).attempts {
		if a.failed && a.at.After(t) {
			n++
		}
	}
	return n, nil
}

// SessionsSince answers assess.Past.
func (p past) SessionsSince(_ context.Context, user auth.UserID, t time.Time) (int, error) {
	n := 0
	for _, at := range p.r.person(user).sessions {
		if at.After(t) {
			n++
		}
	}
	return n, nil
}

// SignInPlaces answers assess.Past.
func (p past) SignInPlaces(_ context.Context, user auth.UserID) ([]risk.Stay, error) {
	stays := slices.Clone(p.r.person(user).stays)
	slices.Reverse(stays)
	return stays, nil
}

// told answers the ports of signals with what the event tells, or else by the configured sources.
type told struct{ r *Replayer }

// Locate answers signals.Geography.
func (t told) Locate(ctx context.Context, a netip.Addr) risk.Location {
	if l := t.r.event.Location; l != nil {
		return *l
	}
	return t.r.geography.Locate(ctx, a)
}

// Rate answers signals.Reputation.
func (t told) Rate(ctx context.Context, a netip.Addr) risk.Reputation {
	if r := t.r.event.Reputation; r != nil {
		return *r
	}
	return t.r.reputation.Rate(ctx, a)
}
