package assess

import (
	"context"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// Recorded is the past as the records of the service tell it. Where a session was begun is told by the present data, which may
// know more than it did then.
type Recorded struct {
	Trail     *audit.Trail
	Sessions  authstore.Sessions
	History   authstore.SessionHistory
	Geography signals.Geography
}

// FailedSince answers Past from the audit log, up to 200.
func (r Recorded) FailedSince(ctx context.Context, user auth.UserID, t time.Time) (int, error) {
	return r.Trail.FailedSignIns(ctx, user, t)
}

// SessionsSince answers Past.
func (r Recorded) SessionsSince(ctx context.Context, user auth.UserID, t time.Time) (int, error) {
	return r.Sessions.CountSince(ctx, user, t)
}

// Stays answers Past. An address is located once, for its newest session.
func (r Recorded) Stays(ctx context.Context, user auth.UserID) ([]risk.Stay, error) {
	sessions, err := r.History.Trusted(ctx, user, HistorySessions)
	if err != nil {
		return nil, err
	}
	stays := make([]risk.Stay, 0, len(sessions))
	seen := make(map[netip.Addr]bool, len(sessions))
	for i := range sessions {
		address := sessions[i].IPAddress
		if seen[address] {
			continue
		}
		seen[address] = true
		stays = append(stays, risk.Stay{At: sessions[i].CreatedAt, Location: Locate(ctx, r.Geography, address)})
	}
	return stays, nil
}
