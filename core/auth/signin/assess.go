package signin

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

// The spans of time that risk looks back on (decisions 2.3).
const (
	failureSpan = 15 * time.Minute
	shortSpan   = time.Minute
	longSpan    = 5 * time.Minute

	historySessions = 50
)

// assess gathers the signals of a sign-in and scores them.
func (s *Service) assess(
	ctx context.Context, in Login, user auth.UserID, device trust.Device, now time.Time,
) (risk.Assessment, error) {
	signals := risk.Signals{
		At: now, Device: device,
		Location:   s.world.Geography.Locate(ctx, in.Address),
		Reputation: s.world.Reputation.Rate(ctx, in.Address),
	}
	var err error
	if signals.FailedAttempts, err = s.world.Trail.FailedSignIns(ctx, user, now.Add(-failureSpan)); err != nil {
		return risk.Assessment{}, err
	}
	if signals.Sessions.LastMinute, err = s.records.Sessions.CountSince(ctx, user, now.Add(-shortSpan)); err != nil {
		return risk.Assessment{}, err
	}
	if signals.Sessions.LastFiveMinutes, err = s.records.Sessions.CountSince(ctx, user, now.Add(-longSpan)); err != nil {
		return risk.Assessment{}, err
	}
	if signals.Location.State == risk.Known {
		if signals.History, err = s.history(ctx, user); err != nil {
			return risk.Assessment{}, err
		}
	}
	return risk.Assess(s.config.Risk, signals), nil
}

// history learns a person's habits from sessions that were trusted.
func (s *Service) history(ctx context.Context, user auth.UserID) (risk.History, error) {
	sessions, err := s.records.History.Trusted(ctx, user, historySessions)
	if err != nil {
		return risk.History{}, err
	}
	var h risk.History
	seen := map[netip.Addr]bool{}
	for i := range sessions {
		if seen[sessions[i].IPAddress] {
			continue
		}
		seen[sessions[i].IPAddress] = true
		l := s.world.Geography.Locate(ctx, sessions[i].IPAddress)
		if l.State != risk.Known {
			continue
		}
		if !slices.Contains(h.Countries, l.Country) {
			h.Countries = append(h.Countries, l.Country)
		}
		if h.Last == nil && l.Coordinates != nil {
			h.Last = &risk.Visit{At: sessions[i].CreatedAt, Coordinates: *l.Coordinates}
		}
	}
	return h, nil
}
