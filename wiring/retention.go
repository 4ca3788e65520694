package wiring

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/pause"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func retentionConfig(r settings.Retention, a settings.Auth) retention.Config {
	return retention.Config{Audit: r.Audit, Sessions: r.Sessions, Lockout: max(a.LockoutWindow, a.LockoutDuration)}
}

// sweeping removes, again and again, records that are past their time.
type sweeping struct {
	sweeper *retention.Sweeper
	every   time.Duration
	counts  *prometheus.Retention
	log     *logrus.Entry
}

func newSweeping(s *retention.Sweeper, r settings.Retention, counts *prometheus.Retention, log *logrus.Entry) sweeping {
	return sweeping{sweeper: s, every: r.Interval, counts: counts, log: log}
}

// run sweeps until the context ends. Instances that started together do not
// sweep together: each waits a part of the interval, up to the whole of it,
// before its first sweep.
func (s sweeping) run(ctx context.Context) error {
	if s.every == 0 {
		return nil
	}
	wait := rand.N(s.every) //nolint:gosec // spreads work; nobody gains from guessing it
	for pause.For(ctx, wait) {
		s.sweep(ctx)
		wait = s.every
	}
	return nil
}

func (s sweeping) sweep(ctx context.Context) {
	removed, err := s.sweeper.Sweep(ctx)
	s.counts.Removed(removed)
	if len(removed) > 0 {
		line := s.log
		for _, r := range removed {
			line = line.WithField(string(r.Kind), r.Count)
		}
		line.Info("old records were removed")
	}
	if err != nil && ctx.Err() == nil {
		s.log.WithError(err).Warn("old records could not be removed")
	}
}
