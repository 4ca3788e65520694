package wiring

import (
	"time"

	"github.com/google/wire"
	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/decisionlog"
	"github.com/tollgate-dev/tollgate/adapters/eventlog"
	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/jwt"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/catalogue/manage"
	"github.com/tollgate-dev/tollgate/core/catalogue/usage"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/core/registry/grants"
	"github.com/tollgate-dev/tollgate/core/registry/publish"
	"github.com/tollgate-dev/tollgate/core/registry/transfer"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// settingsSet gives each part its own settings.
var settingsSet = wire.NewSet(
	wire.FieldsOf(new(settings.Settings),
		"Service", "Tracing", "REST", "Answers", "Methods", "Registry", "Servers", "Packages", "Auth", "Retention", "Limits", "Passwords", "Tokens", "Plugins", "Postgres",
		"SQLite", "Valkey", "PerSecond", "Memcached", "Memory", "RateLimit", "RuleFiles", "RuleServer", "RateLimitAPI", "Debug", "Prometheus", "Statsd"),
)

// operationsSet provides the use cases of operators.
var operationsSet = wire.NewSet(
	people.New, wire.Struct(new(people.Ports), "*"), wire.FieldsOf(new(settings.Auth), "MFAIssuer"),
	grants.New, wire.Struct(new(grants.Ports), "*"), manage.New, wire.Struct(new(manage.Ports), "*"),
	transfer.New, wire.Struct(new(transfer.Ports), "*"), inprocess.RecorderSet,
)

// authSet gives the use cases of authentication.
var authSet = wire.NewSet(
	jwt.Set, audit.New,
	access.NewChecker,
	devices.New, wire.Struct(new(devices.Ports), "*"),
	signInConfig, signin.New, wire.Struct(new(signin.Ports), "*"),
	maxmind.Set, iplists.Set, wire.FieldsOf(new(settings.Settings), "Places", "IPLists"),
	retentionSet,
	credentialsConfig, credentials.New, wire.Struct(new(credentials.Ports), "*"),
	brand, newNotifier, wire.Struct(new(noticePorts), "*"),
	stepUpConfig, stepup.New, wire.Struct(new(stepup.Ports), "*"),
	openPlugins, chooseCouriers,
	authapi.New, wire.Struct(new(authapi.UseCases), "*"),
	wire.Bind(new(authapi.Access), new(*access.Checker)),
	wire.Bind(new(authapi.Credentials), new(*credentials.Service)),
	wire.Bind(new(authapi.StepUp), new(*stepup.Service)), wire.Bind(new(authapi.Devices), new(*devices.Service)),
	wire.Bind(new(authapi.Trail), new(*audit.Trail)),
)

func signInConfig(a settings.Auth) signin.Config { return a.SignIn() }

func credentialsConfig(a settings.Auth) credentials.Config { return a.Credentials() }

func brand(s settings.Settings) couriersettings.Brand { return s.Email.Brand }

func stepUpConfig(a settings.Auth) stepup.Config { return a.StepUp() }

// registrySet gives the use cases of the registry and what they ask of
// authentication.
var registrySet = wire.NewSet(
	cursorSealer, browse.New,
	publishConfig, publish.New, wire.Struct(new(publish.Ports), "*"), packageChecks,
	writeTrust, inprocess.AuthoritySet,
)

func writeTrust(r settings.Registry) auth.TrustLevel { return r.Level() }

func publishConfig(r settings.Registry, p settings.Packages) publish.Config {
	return publish.Config{WritesOff: !r.WritesOn(), Checks: p.Level()}
}

// packageChecks asks the ownership plugins, which are not started where checks
// are off or nothing is published.
func packageChecks(p settings.Packages, parts Parts, host *pluginhost.Host, r metrics.Registerer) ownership.Checker {
	if p.Level() == publish.ChecksOff || !parts.Registry {
		return nil
	}
	return prometheus.NewOwnership(host.Ownership(), r)
}

// recordSet provides the stores.
var recordSet = wire.NewSet(relational.Set, wire.Bind(new(methodsapi.Lister), new(*relational.Methods)))

// methodsSet gives the methods listing.
var methodsSet = wire.NewSet(
	usageCounter, wire.Bind(new(methodsapi.Usage), new(*usage.Counter)),
	methodsapi.New,
)

func usageCounter(store apiStore, c clock.Clock, r settings.RateLimit) *usage.Counter {
	return usage.New(store, c, r.Prefix)
}

// metricsSet lets any part add its own metrics to those of the service.
var metricsSet = wire.NewSet(registerer)

func registerer(r *prometheus.Registry) metrics.Registerer { return r }

// limitSet gives rate limit decisions and the API's own limits.
var limitSet = wire.NewSet(
	wire.Struct(new(processCounters), "*"), limitCounters, wire.Struct(new(counterSettings), "*"), otlp.Open, counterStore, chooseOverLimit,
	decideConfig, wire.Struct(new(limitStores), "*"), rateLimitPorts, decide.New, wire.Bind(new(decide.Rules), new(*reload.Rules)),
	ruleOptions, reload.New, eventlog.NewRules, wire.Bind(new(reload.Reporter), new(*eventlog.Rules)),
	chooseRules,
	statisticsOptions, statistics.New, debugapi.NewStatistics, wire.Struct(new(sinks), "*"),
	wire.Bind(new(statistics.Rules), new(*reload.Rules)), wire.Bind(new(statistics.Decider), new(*decide.Decider)),
)

// throttleSet lets the API ask the rate limit hexagon about its own limits.
var throttleSet = wire.NewSet(
	throttleConfig, chooseAPIStore, wire.Struct(new(fallbackSettings), "*"), newThrottle,
)

// fallbackSettings say whether the API's own limits are counted in the process while the store is
// away, and how.
type fallbackSettings struct {
	RateLimit settings.RateLimit
	Memory    memory.Config
	Counters  counters
}

func newThrottle(cfg inprocess.ThrottleConfig, store apiStore, f fallbackSettings, c clock.Clock, r metrics.Registerer) (throttle.Throttle, error) {
	t, err := inprocess.NewThrottle(cfg, store, c)
	if err != nil {
		return nil, err
	}
	if f.Counters.System == "" || !f.RateLimit.CoversStore() { // counters in the process are never away
		return prometheus.NewThrottle(t, r), nil
	}
	local, err := inprocess.NewThrottle(cfg, memory.NewCounters(c, f.Memory), c)
	if err != nil {
		return nil, err
	}
	return prometheus.NewThrottle(inprocess.NewFallbackThrottle(t, local), r), nil
}

func decideConfig(r settings.RateLimit) decide.Config { return r.Decide() }

// rateLimitPorts is what decisions ask of the world. Only at the level debug they are logged one by one.
func rateLimitPorts(rules decide.Rules, s limitStores, c clock.Clock, log *logrus.Entry) decide.Ports {
	ports := decide.Ports{Rules: rules, Counters: s.Counters, Local: s.Local, OverLimit: s.OverLimit, Clock: c}
	if log.Logger.IsLevelEnabled(logrus.DebugLevel) {
		ports.Observer = decisionlog.New(log)
	}
	return ports
}

// limitStores is where decisions count.
type limitStores struct {
	Counters  counter.Store
	Local     *memory.Counters
	OverLimit counter.OverLimitCache
}

func statisticsOptions(r settings.RateLimit) statistics.Options {
	return statistics.Options{WithoutRules: r.DisableStats, PeerNames: r.Alone}
}

func ruleOptions(r settings.RateLimit) ruleset.Options {
	return ruleset.Options{MergeDomains: r.MergeDomains, QuotaMode: r.QuotaMode}
}

func throttleConfig(l settings.Limits, r settings.RateLimit) inprocess.ThrottleConfig {
	limit := func(requests uint64, window time.Duration) inprocess.Limit {
		return inprocess.Limit{Requests: requests, Window: window}
	}
	return inprocess.ThrottleConfig{
		Prefix: r.Prefix,
		Limits: map[throttle.Scope]inprocess.Limit{
			throttle.AuthAddress:     limit(l.Auth, l.Window),
			throttle.APIAddress:      limit(l.API, l.Window),
			throttle.RegistryAddress: limit(l.Registry, l.Window),
			throttle.StepUpUser:      limit(l.StepUp, l.StepUpWindow),
			throttle.NoticeUser:      limit(l.Notices, time.Hour),
		},
	}
}

// apiSet gives those parts of the API that need more than one set.
var apiSet = wire.NewSet(newRegistryAPI)

func newRegistryAPI(bodies responsebody.Config, log *logrus.Entry, b *browse.Browser, p *prometheus.Publisher) *registryapi.API {
	return registryapi.New(registryapi.Config{Bodies: bodies, Log: log}, b, p)
}
