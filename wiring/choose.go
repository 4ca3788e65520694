package wiring

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
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
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// counters are the counter store of rate limits.
type counters struct {
	Store     counter.Store
	System    string            // the name of a shared store in traces; empty for counters in the process
	Healthy   func() bool       // the health of the store (contract L-30)
	Deadlines counter.Deadlines // of decisions on a shared store
}

// counterSettings say where hits are counted.
type counterSettings struct {
	RateLimit settings.RateLimit
	Valkey    valkey.Config
	PerSecond valkey.PerSecondConfig
	Memcached memcached.Config
}

// chooseCounters opens memcached if BACKEND_TYPE is memstore, else Valkey if KVSTORE_URL is set,
// else returns the counters in the process.
func chooseCounters(
	ctx context.Context, s counterSettings, m *memory.Counters, log *logrus.Entry,
) (counters, func(), error) {
	switch {
	case s.RateLimit.Backend == settings.Memstore:
		store, cleanup, err := memcached.Open(ctx, s.Memcached, log)
		if err != nil {
			return counters{}, nil, err
		}
		return counters{store, "memcached", store.Connected, store.Deadlines()}, cleanup, nil
	case s.Valkey.URL != "":
		opened, cleanup, err := valkey.OpenCounters(ctx, s.Valkey, s.PerSecond, log)
		if err != nil {
			return counters{}, nil, err
		}
		return counters{opened.Store, "valkey", opened.Healthy, opened.Deadlines()}, cleanup, nil
	default:
		return counters{Store: m, Healthy: func() bool { return true }}, func() {}, nil
	}
}

// chooseOverLimit returns a cache of keys that are over their limit, or nil if
// LOCAL_CACHE_SIZE_IN_BYTES is 0.
func chooseOverLimit(m memory.Config, c clock.Clock) (counter.OverLimitCache, error) {
	if m.OverLimitBytes == 0 {
		return nil, nil
	}
	cache, err := memory.NewOverLimit(c, m)
	if err != nil {
		return nil, fmt.Errorf("LOCAL_CACHE_SIZE_IN_BYTES: %w", err)
	}
	return cache, nil
}

// apiStore is the counter store of the API's own limits.
type apiStore struct{ counter.Store }

// chooseAPIStore returns measured, the store of the rate limit service with metrics, if instances
// share that store. Otherwise it returns new counters in the process, because the number of
// counters in the process is limited: in a common store, callers of the rate limit service could
// displace the counters that protect sign-in.
func chooseAPIStore(shared counters, measured counter.Store, p processCounters) apiStore {
	if shared.System != "" {
		return apiStore{measured}
	}
	return apiStore{p.open("api")}
}

// throttleStores are where the API's own limits are counted.
type throttleStores struct {
	Store  apiStore
	Shared counters
	Leases *lease.Leases // nil if Shared is not shared
	Memory memory.Config
	Decide decide.Config
}

// chooseLeases returns the leases on the counter store, or nil for counters in the process, which
// are fast. Its cleanup gives back what this instance holds.
func chooseLeases(
	c counters, measured counter.Store, k clock.Clock, w clock.Waiter, r metrics.Registerer,
) (*lease.Leases, func()) {
	if c.System == "" {
		prometheus.MeasureLeases(new(lease.Stats), r) // every instance has the same metrics
		return nil, func() {}
	}
	l := lease.New(measured, k, c.Deadlines)
	prometheus.MeasureLeases(l.Stats(), r)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { l.Run(ctx, w) })
	return l, func() {
		cancel()
		done.Wait()
		bounded, release := context.WithTimeout(context.Background(), giveBackTimeout)
		defer release()
		l.Close(bounded)
	}
}

// giveBackTimeout is how long a service that stops waits for calls that take shares.
const giveBackTimeout = 2 * time.Second

// chooseThrottle returns the limits of the API. In a store that instances share, those that protect
// no secrets are counted with leases, and all others one by one. While that store is unavailable,
// all are counted in the process if KVSTORE_FAILURE_MODE is open or local.
func chooseThrottle(
	cfg inprocess.ThrottleConfig, s throttleStores, c clock.Clock, r metrics.Registerer,
) (throttle.Throttle, error) {
	exact, err := inprocess.NewThrottle(cfg, s.Store, c)
	if err != nil {
		return nil, err
	}
	if s.Shared.System == "" { // counters in the process are fast and always available
		return prometheus.NewThrottle(exact, r), nil
	}
	leased := inprocess.NewLeasedThrottle(exact, s.Leases, throttle.APIAddress, throttle.RegistryAddress)
	if !s.Decide.FailureMode.CountsOn() {
		return prometheus.NewThrottle(leased, r), nil
	}
	local, err := inprocess.NewThrottle(cfg, memory.NewCounters(c, s.Memory), c)
	if err != nil {
		return nil, err
	}
	return prometheus.NewThrottle(inprocess.NewFallbackThrottle(leased, local), r), nil
}

// chooseUsedProofs remembers used proofs in the store of the API's own limits. It has no fallback
// while that store is unavailable, because a proof must not be used twice.
func chooseUsedProofs(store apiStore, r decide.Config) (singleuse.Store, error) {
	return inprocess.NewSingleUse(r.Prefix, store)
}

// ruleSource is the source of rate limit rules. Expected reports whether the service must wait for
// rules before it is ready.
type ruleSource struct {
	Source   rulesource.Source
	Expected func() bool
}

// chooseRules returns the management server or the directory of rules, as CONFIG_TYPE says. Files
// are expected if their directory exists.
func chooseRules(
	r settings.RateLimit, files runtimedir.Config, server xds.Config, log *logrus.Entry,
) (ruleSource, func(), error) {
	if r.ConfigType != settings.ConfigFromServer {
		directory := runtimedir.New(files, log)
		return ruleSource{directory, func() bool { return !directory.Missing() }}, func() {}, nil
	}
	source, cleanup, err := xds.Open(server, log)
	if err != nil {
		return ruleSource{}, nil, err
	}
	return ruleSource{source, func() bool { return true }}, cleanup, nil
}

// sinkSettings say where statistics of rate limits are sent.
type sinkSettings struct {
	Options    statistics.Options
	Statsd     statsd.Config
	Prometheus debugapi.PrometheusConfig
}

// chooseSink returns a sink to the metrics daemon if that is enabled, else to standard output. It
// returns nil if the rate limit part does not run, with DISABLE_STATS, or if Prometheus has a
// listener of its own instead.
func chooseSink(
	parts settings.Parts, s sinkSettings, k *statistics.Statistics, log *logrus.Entry,
) (*statsd.Sink, error) {
	switch {
	case !parts.RateLimit || s.Options.WithoutRules:
		return nil, nil
	case s.Statsd.ToDaemon():
		return statsd.ToDaemon(s.Statsd, k.NewChanges(), log)
	case s.Prometheus.Enabled:
		return nil, nil
	default:
		return statsd.ToWriter(s.Statsd, k.NewChanges(), os.Stdout, log)
	}
}

// sessionCacheSettings say where copies of sessions are kept.
type sessionCacheSettings struct {
	Valkey valkey.Config
	Memory memory.Config
	Root   auth.RootSecret
}

// chooseSessionCache keeps copies of sessions on Valkey if KVSTORE_URL is set, else in the process.
func chooseSessionCache(
	ctx context.Context, s sessionCacheSettings, c clock.Clock, m partMetrics, log *logrus.Entry,
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

// noticePorts are the dependencies of notices other than couriers.
type noticePorts struct {
	Accounts authstore.Accounts
	Devices  authstore.Devices
	Throttle throttle.Throttle
	Waiter   clock.Waiter
	Reporter report.Reporter
	Metrics  partMetrics
}

// chooseNotifier returns a Notifier that uses the couriers of one-time codes. It returns nil if
// NOTICES is off or no courier is configured.
func chooseNotifier(a settings.Couriers, b couriersettings.Brand, c stepup.Couriers, p noticePorts) *notices.Notifier {
	var notifier *notices.Notifier
	if a.Notices && (c.Email != nil || c.SMS != nil) {
		notifier = notices.New(b.Name, notices.Ports{
			Accounts: p.Accounts, Devices: p.Devices, Couriers: notices.Couriers(c), Throttle: p.Throttle,
			Reporter: p.Reporter, Waiter: p.Waiter,
		})
	}
	prometheus.WatchNotices(notifier, p.Metrics.Auth)
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
