// Package wiring connects the parts of the service. It has one Wire injector for each way of
// running, and decides nothing that a caller of the service would see. service.go shows what runs
// in the service, ratelimit.go what the rate limit service is made of, operator.go what operator
// commands work with, and choose.go what depends on the environment.
package wiring

import (
	"cmp"
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/lifecycle"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/rest/overview"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Open builds the service: it connects to the stores, brings the schema up to date and opens the
// listeners, which answer from Run on. build is shown in the metrics. The cleanup closes everything
// again.
func Open(
	ctx context.Context, s settings.Settings, parts settings.Parts, build registryapi.Build, log *logrus.Entry,
) (*lifecycle.Process, func(), error) {
	metrics := prometheus.New(prometheus.Build{Version: build.Version, Revision: build.Revision})
	prometheus.CountLog(log.Logger, metrics)
	for _, w := range s.Warnings {
		log.Warn(w)
	}
	s.Records.Postgres.Version = cmp.Or(build.Version, "unknown")
	if !parts.API() {
		return injectRateLimit(ctx, s, parts, metrics, log)
	}
	if s.Service.Environment == settings.Production {
		for _, w := range overview.Warnings(findFacts(s), time.Now()) {
			log.WithField("setting", w.Remedy).Warn(w.Text)
		}
	}
	return injectService(ctx, s, parts, build, metrics, log)
}
