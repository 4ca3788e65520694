//go:build wireinject

package wiring

import (
	"context"

	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// serviceSet is what all ways of running all parts have in common.
var serviceSet = wire.NewSet(
	settingsSet, system.Set, metricsSet, countedSet, recordSet, rootSecret, authSet, registrySet, methodsSet, limitSet, throttleSet, apiSet,
	wire.Struct(new(limiter), "*"), wire.Struct(new(api), "*"), newService,
)

// operatorSet is what operator commands need.
var operatorSet = wire.NewSet(
	settingsSet, system.Set, uncountedSet, recordSet, rootSecret, operationsSet, untraced,
	chooseRecords, wire.Struct(new(recordSettings), "*"),
	valkey.NewSessionDropper, wire.Bind(new(sessioncache.Cache), new(valkey.SessionDropper)), audit.New, devices.New, wire.Struct(new(devices.Ports), "Devices", "DeviceTokens", "Sessions", "Levels", "Transaction", "Cache", "Trail", "Clock"),
	devices.NewOperator,
	wire.Struct(new(Operator), "*"),
)

// injectEmbedded keeps records in a SQLite file and counts in the process.
func injectEmbedded(ctx context.Context, s settings.Settings, parts Parts, r *prometheus.Registry, log *logrus.Entry) (*Service, func(), error) {
	wire.Build(serviceSet, sqliteRecords, inProcessCounters, inProcessSessions)
	return nil, nil, nil
}

// injectProduction keeps records and counts where the settings say.
func injectProduction(ctx context.Context, s settings.Settings, parts Parts, r *prometheus.Registry, log *logrus.Entry) (*Service, func(), error) {
	wire.Build(
		serviceSet, chooseRecords, wire.Struct(new(recordSettings), "*"), chooseCounters,
		chooseSessionCache, wire.Struct(new(sessionCopySettings), "*"),
	)
	return nil, nil, nil
}

// injectRateLimit runs rate limit decisions alone.
func injectRateLimit(ctx context.Context, s settings.Settings, parts Parts, r *prometheus.Registry, log *logrus.Entry) (*Service, func(), error) {
	wire.Build(settingsSet, system.Set, metricsSet, limitSet, chooseCounters, wire.Struct(new(limiter), "*"), newLimiterService)
	return nil, nil, nil
}

// injectOperator opens the records for operator commands.
func injectOperator(ctx context.Context, s settings.Settings, log *logrus.Entry) (*Operator, func(), error) {
	wire.Build(operatorSet)
	return nil, nil, nil
}
