package wiring

import (
	"github.com/google/wire"
	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/eventlog"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// retentionSet provides the removal of old records.
var retentionSet = wire.NewSet(
	retentionConfig, retention.New, wire.Struct(new(retention.Ports), "*"),
	retention.NewRunner, wire.Struct(new(retention.RunnerPorts), "*"), retentionReporter,
)

func retentionConfig(r settings.Retention, a settings.Auth) retention.Config {
	return retention.Config{
		Audit: r.Audit, Sessions: r.Sessions, Lockout: max(a.LockoutWindow, a.LockoutDuration), Interval: r.Interval,
	}
}

func retentionReporter(log *logrus.Entry, r metrics.Registerer) retention.Reporter {
	return prometheus.NewRetention(eventlog.NewRetention(log), r)
}
