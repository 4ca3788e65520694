package assessment

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

// RecordedHistory is the SignInHistory in the records of the service. It locates sessions by the
// present geographic data, which may know more than at the time of the session.
type RecordedHistory struct {
	Trail     *audit.Trail
	Sessions  authstore.Sessions
	History   authstore.SessionHistory
	Geography signals.Geography
}

// FailedSince implements SignInHistory with the audit log. It counts up to 200.
func (r RecordedHistory) FailedSince(ctx context.Context, user auth.UserID, t time.Time) (int, error) {
	return r.Trail.FailedSignIns(ctx, user, t)
}

// SessionsSince implements SignInHistory.
func (r RecordedHistory) SessionsSince(ctx context.Context, user auth.UserID, t time.Time) (int, error) {
	return r.Sessions.CountSince(ctx, user, t)
}

// SignInPlaces implements SignInHistory. It locates each address once, for its newest session.
func (r RecordedHistory) SignInPlaces(ctx context.Context, user auth.UserID) ([]risk.SignInPlace, error) {
	sessions, err := r.History.Trusted(ctx, user, HistorySessions)
	if err != nil {
		return nil, err
	}
	stays := make([]risk.SignInPlace, 0, len(sessions))
	seen := make(map[netip.Addr]bool, len(sessions))
	for i := range sessions {
		address := sessions[i].IPAddress
		if seen[address] {
			continue
		}
		seen[address] = true
		stays = append(stays, risk.SignInPlace{At: sessions[i].CreatedAt, Location: Locate(ctx, r.Geography, address)})
	}
	return stays, nil
}
