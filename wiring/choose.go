package wiring

import (
	"context"
	"fmt"

	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/adapters/xds"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// chooseCounters opens memcached if BACKEND_TYPE is memstore, else Valkey if KVSTORE_URL is set,
// else returns the counters in the process.
func chooseCounters(
	ctx context.Context, s settings.Settings, m *memory.Counters, log *logrus.Entry,
) (counter.Chosen, func(), error) {
	switch {
	case s.RateLimit.Backend == settings.Memstore:
		return memcached.OpenCounters(ctx, s.Memcached, log)
	case s.Valkey.URL != "":
		return valkey.OpenCounters(ctx, s.Valkey, s.PerSecond, log)
	}
	return counter.Chosen{Store: m, Healthy: func() bool { return true }}, func() {}, nil
}

// chooseOwnStore returns measured, the store of the rate limit service with metrics, if instances
// share that store. Otherwise it returns new counters in the process, because the number of
// counters in the process is limited: in a common store, callers of the rate limit service could
// displace the counters that protect sign-in.
func chooseOwnStore(shared counter.Chosen, measured counter.Store, p memory.Ports) inprocess.OwnStore {
	if shared.System != "" {
		return inprocess.OwnStore{Store: measured}
	}
	return inprocess.OwnStore{Store: p.Open("api")}
}

// throttleParts are what the API's own limits need.
type throttleParts struct {
	Store  inprocess.OwnStore
	Leases *lease.Leases
	Memory memory.Config
	Decide decide.Config
}

// chooseThrottle returns the limits of the API. While a store that instances share is unavailable,
// they are counted in the process if KVSTORE_FAILURE_MODE is open or local.
func chooseThrottle(
	cfg inprocess.ThrottleConfig, p throttleParts, c clock.Clock, r metrics.Registerer,
) (throttle.Throttle, error) {
	stores := inprocess.ThrottleStores{Store: p.Store, Leases: p.Leases}
	if p.Decide.FailureMode.CountsOn() {
		stores.Local = memory.NewCounters(c, p.Memory)
	}
	t, err := inprocess.OpenThrottle(cfg, stores, c)
	return prometheus.NewThrottle(t, r), err
}

// newUsedProofs remembers used proofs in the store of the API's own limits. It has no fallback
// while that store is unavailable, because a proof must not be used twice.
func newUsedProofs(store inprocess.OwnStore, r decide.Config) (singleuse.Store, error) {
	return inprocess.NewSingleUse(r.Prefix, store)
}

// chooseRules returns the management server or the directory of rules, as CONFIG_TYPE says.
func chooseRules(
	r settings.RateLimit, files runtimedir.Config, server xds.Config, log *logrus.Entry,
) (rulesource.Source, func(), error) {
	if r.ConfigType == settings.ConfigFromServer {
		return xds.Open(server, log)
	}
	return runtimedir.New(files, log), func() {}, nil
}

// chooseSink returns nil if the rate limit part does not run, with DISABLE_STATS, or if Prometheus
// has a listener of its own and there is no metrics daemon.
func chooseSink(
	parts settings.Parts, s settings.Settings, k *statistics.Statistics, log *logrus.Entry,
) (*statsd.Sink, error) {
	if !parts.RateLimit || s.Statistics.WithoutRules || s.Prometheus.Enabled && !s.Statsd.ToDaemon() {
		return nil, nil
	}
	return statsd.Open(s.Statsd, k.NewChanges(), log)
}

// sessionCacheSettings say where copies of sessions are kept.
type sessionCacheSettings struct {
	Valkey valkey.Config
	Memory memory.Config
	Root   auth.RootSecret
}

// chooseSessionCache keeps copies of sessions on Valkey if KVSTORE_URL is set, else in the process.
func chooseSessionCache(
	ctx context.Context, s sessionCacheSettings, c clock.Clock, m prometheus.Registerers, log *logrus.Entry,
) (sessioncache.Cache, func(), error) {
	if s.Valkey.URL == "" {
		return prometheus.NewSessionCache(memory.NewSessions(c, s.Memory), m.Either), func() {}, nil
	}
	key, err := s.Root.Derive(auth.SessionCopyPurpose)
	if err != nil {
		return nil, nil, fmt.Errorf("SECRET_KEY: %w", err)
	}
	cache, cleanup, err := valkey.OpenSessions(ctx, s.Valkey, key, c, log)
	if err != nil {
		return nil, nil, err
	}
	return prometheus.NewSessionCache(cache, m.Either), cleanup, nil
}

// chooseCouriers starts the courier plugins of the settings. The embedded environment uses the
// development plugin for channels without one. It starts no plugin if authentication does not run.
func chooseCouriers(
	s settings.Service, a settings.Couriers, parts settings.Parts, host *pluginhost.Host, log *logrus.Entry,
) (stepup.Couriers, error) {
	if !parts.Auth {
		return stepup.Couriers{}, nil
	}
	c, err := host.Couriers(pluginhost.CourierConfig{
		Email: a.Email, SMS: a.SMS, Development: s.Environment == settings.Embedded,
	}, log)
	return stepup.Couriers(c), err
}

// chooseNotifier returns a Notifier that uses the couriers of one-time codes. It returns nil if
// NOTICES is off or no courier is configured.
func chooseNotifier(
	a settings.Couriers, b couriersettings.Brand, c stepup.Couriers, p notices.Ports, m prometheus.Registerers,
) *notices.Notifier {
	var notifier *notices.Notifier
	if a.Notices && (c.Email != nil || c.SMS != nil) {
		p.Couriers = notices.Couriers(c)
		notifier = notices.New(b.Name, a.PublicURL, p)
	}
	prometheus.WatchNotices(notifier, m.Auth)
	return notifier
}

// choosePackageChecks starts the ownership plugins, and warns of those that come with the service
// and are not there. It returns nil if checks are off or the registry does not run.
func choosePackageChecks(
	c publishing.Config, parts settings.Parts, host *pluginhost.Host, r metrics.Registerer, log *logrus.Entry,
) ownership.Checker {
	if c.Checks == publishing.ChecksOff || !parts.Registry {
		return nil
	}
	host.WarnMissing(log)
	return prometheus.NewOwnership(host.Ownership(), pluginhost.BundledTypes(), r)
}
