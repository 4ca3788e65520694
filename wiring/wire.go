//go:build wireinject

package wiring

import (
	"context"

	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/lifecycle"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// This file has one injector for each way of running. Wire writes their bodies to wire_gen.go (make
// generate).

// injectService builds the service with the parts that run (service.go).
func injectService(
	ctx context.Context, s settings.Settings, parts settings.Parts, b registryapi.Build, r *prometheus.Registry, log *logrus.Entry,
) (*lifecycle.Process, func(), error) {
	wire.Build(serviceSet)
	return nil, nil, nil
}

// injectRateLimit builds the rate limit service alone, without records (ratelimit.go).
func injectRateLimit(
	ctx context.Context, s settings.Settings, parts settings.Parts, r *prometheus.Registry, log *logrus.Entry,
) (*lifecycle.Process, func(), error) {
	wire.Build(rateLimitAloneSet)
	return nil, nil, nil
}

// injectOperator opens the records for operator commands (operator.go).
func injectOperator(ctx context.Context, s settings.Settings, log *logrus.Entry) (*Operator, func(), error) {
	wire.Build(operatorSet)
	return nil, nil, nil
}
