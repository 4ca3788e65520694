package wiring

import (
	"context"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/lifecycle"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/adminapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/console"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// rateLimitParts are what the listeners of the rate limit service, for debugging and for Prometheus
// use.
type rateLimitParts struct {
	Service    settings.Service
	Config     ratelimitapi.Config
	Debug      debugapi.Config
	Prometheus debugapi.PrometheusConfig
	Bodies     *requestbody.Budget
	Decider    *decide.Decider
	Recorded   decide.Func // makes the decisions of calls by Decider
	Rules      *reload.Rules
	Source     ruleSource
	Statistics *debugapi.Statistics
	Sink       *statsd.Sink // nil if statistics are sent nowhere
	Metrics    *prometheus.Registry
	Counters   counters
	Tracing    otlp.Tracing
	Log        *logrus.Entry
}

// apiParts are what the API listener uses.
type apiParts struct {
	Config     rest.Config
	Bodies     *requestbody.Budget
	Publishers *registryapi.Publishers
	Curation   *registryapi.Quarantine
	Recheck    *delegating.Rechecker
	Reviews    *registryapi.Reviews
	Reminder   *reviewing.Reminder
	Deliveries *notifying.Runner
	Mirrors    *mirroring.Runner
	Docs       *apidocs.Docs
	Registry   *registryapi.API
	Auth       *authapi.API
	Console    *console.Console
	Pages      settings.Console
	Admin      *adminapi.API
	AdminOn    settings.Administration
	Readiness  *readiness
	Methods    *methodsapi.API
	Throttle   throttle.Throttle
	Clock      clock.Clock
	Database   *database.DB
	Counters   counter.Store
	Limits     decide.Config
	Publish    publishing.Config
	Plugins    *pluginhost.Host
	Retention  *retention.Runner
	SignIns    signin.Config
	Gather     *learning.Runner
	Notices    *notices.Notifier
	Tracing    otlp.Tracing
	Metrics    *prometheus.Registry
	Log        *logrus.Entry
}

// newService opens the listeners of the parts that run.
func newService(
	ctx context.Context, parts settings.Parts, l rateLimitParts, a apiParts,
) (*lifecycle.Process, func(), error) {
	p, closeProcess, err := newRateLimitService(ctx, parts, l)
	if err != nil {
		return nil, nil, err
	}
	if err := a.addAPI(ctx, parts, append(a.probes(parts), l.probes(parts)...), p); err != nil {
		closeProcess()
		return nil, nil, err
	}
	return p, closeProcess, nil
}

// newRateLimitService opens the listeners for debugging and for Prometheus, and those of the rate
// limit service if it runs.
func newRateLimitService(
	ctx context.Context, parts settings.Parts, l rateLimitParts,
) (*lifecycle.Process, func(), error) {
	p := lifecycle.New(lifecycle.Config{
		Ready: logrus.Fields{"environment": l.Service.Environment},
		Drain: l.Service.ShutdownDrain, Timeout: l.Service.ShutdownTimeout,
	}, l.Log)
	for _, add := range []func(context.Context, settings.Parts, *lifecycle.Process) error{
		l.addDebug, l.addPrometheus, l.addRateLimits,
	} {
		if err := add(ctx, parts, p); err != nil {
			p.Close()
			return nil, nil, err
		}
	}
	return p, p.Close, nil
}

// addDebug adds the debug listener. Without the rate limit part it has no rules and statistics:
// zeros would only mislead.
func (l rateLimitParts) addDebug(ctx context.Context, parts settings.Parts, p *lifecycle.Process) error {
	shown := debugapi.Ports{Metrics: l.Metrics.Handler(), Registerer: l.Metrics, Log: l.Log}
	if parts.RateLimit {
		l.Statistics.Measure(l.Metrics)
		shown.Rules, shown.Statistics = l.Rules, l.Statistics
		shown.Explain, shown.HotKeys = ratelimitapi.NewExplainHandler(l.Decider),
			ratelimitapi.NewHotKeysHandler(l.Decider)
	}
	s, cleanup, err := debugapi.Open(ctx, l.Debug, shown)
	if err != nil {
		return err
	}
	p.AddListener(lifecycle.Listener{
		Addresses: logrus.Fields{"debug": s.Addr().String()}, Serve: s.Serve, Shutdown: s.Shutdown,
	}, cleanup)
	return nil
}

// addPrometheus adds the listener for Prometheus, if it is enabled.
func (l rateLimitParts) addPrometheus(ctx context.Context, _ settings.Parts, p *lifecycle.Process) error {
	if !l.Prometheus.Enabled {
		return nil
	}
	s, cleanup, err := debugapi.OpenPrometheus(ctx, l.Prometheus, debugapi.Ports{
		Metrics: l.Metrics.Handler(), Registerer: l.Metrics, Log: l.Log,
	})
	if err != nil {
		return err
	}
	p.AddListener(lifecycle.Listener{
		Addresses: logrus.Fields{"prometheus": s.Addr().String()}, Serve: s.Serve, Shutdown: s.Shutdown,
	}, cleanup)
	return nil
}

// addRateLimits adds the listeners of the rate limit service, the reloading of its rules and the
// sending of its statistics.
func (l rateLimitParts) addRateLimits(ctx context.Context, parts settings.Parts, p *lifecycle.Process) error {
	if !parts.RateLimit {
		return nil
	}
	health := ratelimitapi.NewHealth(
		ratelimitapi.Check{Name: "cache store", Healthy: l.Counters.Healthy},
		ratelimitapi.ConfigurationCheck(l.Config.Health, l.Rules))
	s, cleanup, err := ratelimitapi.Open(ctx, l.Config, ratelimitapi.Ports{
		Decide: l.Recorded, RecordCall: l.Statistics.RecordCall, Health: health, Bodies: l.Bodies,
		Metrics: l.Metrics, Log: l.Log,
		Tracing: ratelimitapi.Tracing{Tracer: l.Tracing.Tracer, Propagator: l.Tracing.Propagator},
	})
	if err != nil {
		return err
	}
	p.AddListener(lifecycle.Listener{
		Addresses: logrus.Fields{"grpc": s.GRPCAddr().String(), "ratelimit_http": s.HTTPAddr().String()},
		Serve:     s.Serve, Shutdown: s.Shutdown,
	}, cleanup)
	p.AddDrain(health.Drain)
	p.AddBackground(func(ctx context.Context) error { return l.Rules.Follow(ctx, l.Source.Source) })
	if l.Sink != nil {
		p.AddBackground(l.Sink.Run)
	}
	return nil
}

// probes returns the readiness checks of the rate limit part.
func (l rateLimitParts) probes(parts settings.Parts) []rest.Probe {
	if !parts.RateLimit {
		return nil
	}
	return []rest.Probe{{Name: "rules", Check: ratelimitapi.RulesReady(l.Config.Health, l.Rules, l.Source.Expected)}}
}

// addAPI adds the API listener, which reports the readiness of all parts, and the work that goes on
// without requests.
func (a apiParts) addAPI(ctx context.Context, parts settings.Parts, probes []rest.Probe, p *lifecycle.Process) error {
	a.Database.Measure(a.Metrics)
	health := rest.NewHealth(probes...)
	a.Readiness.health = health
	app := rest.New(a.Config, rest.Ports{
		Parts: a.running(parts), Health: health, Docs: a.Docs, Throttle: a.Throttle, Bodies: a.Bodies,
		Clock: a.Clock, Log: a.Log,
		Tracing: rest.Tracing{Tracer: a.Tracing.Tracer, Propagator: a.Tracing.Propagator}, Metrics: a.Metrics,
	})
	listener, err := rest.Listen(ctx, a.Config, a.Log, a.Metrics)
	if err != nil {
		return err
	}
	addresses := logrus.Fields{"api": listener.Addr().String()}
	if parts.Console && a.Pages.On && a.Pages.Announce {
		addresses["console"] = site.Address(listener.Addr(), a.Config.TLS.Cert != "")
	}
	p.AddListener(lifecycle.Listener{
		Addresses: addresses,
		Serve:     func() error { return app.Serve(listener) }, Shutdown: app.Shutdown,
	}, func() { _ = listener.Close() }) // closed already if it was served
	p.AddDrain(health.Drain)
	background := []func(context.Context){a.Retention.Run, a.Notices.Run}
	if parts.Registry {
		background = append(background, a.Recheck.Run, a.Reminder.Run, a.Deliveries.Run, a.Mirrors.Run)
	}
	if parts.Auth && a.SignIns.History.Learns() {
		background = append(background, a.Gather.Run)
	}
	for _, run := range background {
		p.AddBackground(func(ctx context.Context) error { run(ctx); return nil })
	}
	return nil
}

// running returns the parts of the API that run.
func (a apiParts) running(parts settings.Parts) []rest.Part {
	var list []rest.Part
	if parts.Registry {
		list = append(list, a.Publishers, a.Curation, a.Reviews, a.Registry) // the first that owns a path serves it
	}
	if parts.Auth {
		list = append(list, a.Auth)
	}
	if parts.Auth && parts.Registry && a.AdminOn.On {
		list = append(list, a.Admin)
	}
	if parts.Methods {
		list = append(list, a.Methods)
	}
	if parts.Console && a.Pages.On {
		list = append(list, a.Console)
	}
	return list
}

// probes returns the readiness checks of the stores, and of the plugins if a part that uses plugins
// runs.
func (a apiParts) probes(parts settings.Parts) []rest.Probe {
	list := []rest.Probe{
		{Name: "database", Check: a.Database.Ready},
		{Name: "counters", Check: a.Counters.Ping, Covered: a.Limits.FailureMode.CountsOn()},
	}
	if parts.Registry {
		list = append(list, rest.Probe{Name: "registry_reads", Stale: a.Registry.IsStale})
	}
	if !parts.Auth && !parts.Registry {
		return list
	}
	for _, plugin := range a.Plugins.Status() {
		list = append(list, rest.Probe{
			Name:    plugin.Name,
			Check:   func(context.Context) error { return a.Plugins.CheckFailed(plugin.Name) },
			Covered: plugin.Kind == string(pluginclient.Ownership) && a.Publish.Checks != publishing.ChecksEnforce,
		})
	}
	return list
}
