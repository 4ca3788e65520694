package signin

import (
	"context"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// recordedHistory is the assessment.SignInHistory in the records of the service. It locates
// sessions by the present geographic data, which may know more than at the time of the session.
type recordedHistory struct {
	trail     *auditing.Trail
	sessions  authstore.Sessions
	history   authstore.SessionHistory
	geography signals.Geography
}

// FailedSince implements assessment.SignInHistory with the audit log. It counts up to 200.
func (r recordedHistory) FailedSince(ctx context.Context, user auth.UserID, t time.Time) (int, error) {
	return r.trail.FailedSignIns(ctx, user, t)
}

// SessionsSince implements assessment.SignInHistory.
func (r recordedHistory) SessionsSince(ctx context.Context, user auth.UserID, t time.Time) (int, error) {
	return r.sessions.CountSince(ctx, user, t)
}

// SignInPlaces implements assessment.SignInHistory. It locates each address once, for its newest
// session.
func (r recordedHistory) SignInPlaces(ctx context.Context, user auth.UserID) ([]risk.SignInPlace, error) {
	sessions, err := r.history.Trusted(ctx, user, assessment.HistorySessions)
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
		stays = append(stays, risk.SignInPlace{
			At: sessions[i].CreatedAt, Location: assessment.Locate(ctx, r.geography, address),
		})
	}
	return stays, nil
}
