package federating

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// admittedBatch is how many people are looked at in one round.
const admittedBatch = 100

// announceOperators sends every operator a notice of each person who can operate now and could not in the
// round before, however that came (contract A-92). One instance sends it. What was given while no instance
// ran is not announced.
func (s *Service) announceOperators(ctx context.Context, before []string) []string {
	operators, err := s.ports.Grants.Operators(ctx)
	if err != nil {
		return before
	}
	now := s.ports.Clock.Now()
	for _, id := range operators {
		if before == nil || slices.Contains(before, id) {
			continue
		}
		first, err := s.ports.Used.Claim(ctx, "operator "+id+now.UTC().Format(" 2006-01-02 15"), time.Hour)
		if err != nil || !first {
			continue
		}
		for _, to := range operators {
			s.ports.Notices.Notify(notices.Event{
				Kind: notices.OperatorAdded, UserID: auth.UserID(to), At: now,
				Pages: []notices.Page{{Name: "People", Path: "/console/operator/people"}},
			})
		}
	}
	return operators
}

// announceAdmitted sends every operator a notice of each person whose password a command has admitted
// (contract A-77). The command runs in a process of its own, without couriers, so one instance of the
// service sends the notice. After an error the next round tries again.
func (s *Service) announceAdmitted(ctx context.Context) {
	now := s.ports.Clock.Now()
	admitted, err := s.ports.Directory.Search(ctx, authstore.DirectoryQuery{AdmittedAt: now, Limit: admittedBatch})
	if err != nil || len(admitted) == 0 {
		return
	}
	operators, err := s.ports.Grants.Operators(ctx)
	if err != nil {
		return
	}
	for _, p := range admitted {
		key := fmt.Sprintf("break-glass %s %d", p.ID, p.AdmittedUntil.UnixMicro())
		first, err := s.ports.Used.Claim(ctx, key, people.MaxBreakGlass+auth.ClockTolerance)
		if err != nil || !first {
			continue
		}
		for _, id := range operators {
			s.ports.Notices.Notify(notices.Event{Kind: notices.BreakGlassOpened, UserID: auth.UserID(id), At: now})
		}
	}
}
