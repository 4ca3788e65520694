package wiring

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/decideapi"
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
	"github.com/tollgate-dev/tollgate/adapters/rest/tokenapi"
	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/joining"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// rateLimitParts are what the listeners of the rate limit service, for debugging and for Prometheus
// use.
type rateLimitParts struct {
	Settings   settings.Settings
	Bodies     *requestbody.Budget
	Decider    *decide.Decider
	Recorded   decide.Func // makes the decisions of calls by Decider
	Rules      *reload.Rules
	Source     rulesource.Source
	Statistics *debugapi.Statistics
	Sink       *statsd.Sink // nil if statistics are sent nowhere
	Metrics    *prometheus.Registry
	Counters   counter.Chosen
	Leases     *lease.Leases
	Tracing    otlp.Tracing
	Log        *logrus.Entry
	// Register adds the services of access decisions to the gRPC listener; nil for the rate limit
	// service alone, which has no rules about access.
	Register func(grpc.ServiceRegistrar) `wire:"-"`
}

// apiParts are what the API listener uses.
type apiParts struct {
	Settings   settings.Settings
	Bodies     *requestbody.Budget
	Publishers *registryapi.Publishers
	Curation   *registryapi.Quarantine
	Recheck    *delegating.Rechecker
	Reviews    *registryapi.Reviews
	Reminder   *reviewing.Reminder
	Finder     *browsing.Finder
	Deliveries *notifying.Runner
	Mirrors    *mirroring.Runner
	Watcher    *watching.Watcher
	Docs       *apidocs.Docs
	Registry   *registryapi.API
	Auth       *authapi.API
	People     *people.Service
	Companies  *federating.Service
	Joining    *joining.Service
	Calls      *deciding.Service
	Console    *console.Console
	Admin      *adminapi.API
	Health     *rest.Health
	Methods    *methodsapi.API
	Decisions  *decideapi.API
	OAuth      *tokenapi.API
	Throttle   throttle.Throttle
	Clock      clock.Clock
	Waiter     clock.Waiter
	Database   *database.DB
	Counters   counter.Store
	Plugins    *pluginhost.Host
	Retention  *retention.Runner
	Gather     *learning.Runner
	Tokens     *tokens.Reminder
	Notices    *notices.Notifier
	Tracing    otlp.Tracing
	Metrics    *prometheus.Registry
	Log        *logrus.Entry
}

// newService opens the listeners of the parts that run.
func newService(
	ctx context.Context, parts settings.Parts, l rateLimitParts, a apiParts,
) (*lifecycle.Process, func(), error) {
	l.Register = a.Decisions.Register
	p, closeProcess, err := newRateLimitService(ctx, parts, l)
	if err != nil {
		return nil, nil, err
	}
	if err := a.addAPI(ctx, parts, l.probes(parts), p); err != nil {
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
		Ready: logrus.Fields{"environment": l.Settings.Service.Environment},
		Drain: l.Settings.Service.ShutdownDrain, Timeout: l.Settings.Service.ShutdownTimeout,
	}, l.Log)
	prometheus.MeasureLeases(l.Leases.Stats(), l.Metrics)
	err := l.addDebug(ctx, parts, p)
	if err == nil && parts.RateLimit {
		err = l.addRateLimits(ctx, p)
	}
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	return p, p.Close, nil
}

// addDebug adds the debug listener, and the one for Prometheus if it is enabled. Without the rate
// limit part they have no rules and statistics: zeros would only mislead.
func (l rateLimitParts) addDebug(ctx context.Context, parts settings.Parts, p *lifecycle.Process) error {
	shown := debugapi.Ports{Metrics: l.Metrics.Handler(), Registerer: l.Metrics, Log: l.Log}
	if parts.RateLimit {
		l.Statistics.Measure(l.Metrics)
		shown.Rules, shown.Statistics = l.Rules, l.Statistics
		shown.Explain, shown.HotKeys = ratelimitapi.NewExplainHandler(l.Decider), ratelimitapi.NewHotKeysHandler(l.Decider)
	}
	if err := p.AddListener(debugapi.Open(ctx, l.Settings.Debug, shown)); err != nil || !l.Settings.Prometheus.Enabled {
		return err
	}
	return p.AddListener(debugapi.OpenPrometheus(ctx, l.Settings.Prometheus, shown))
}

// addRateLimits adds the listeners of the rate limit service, the reloading of its rules and the
// sending of its statistics.
func (l rateLimitParts) addRateLimits(ctx context.Context, p *lifecycle.Process) error {
	health := ratelimitapi.NewHealth(ratelimitapi.Check{Name: "cache store", Healthy: l.Counters.Healthy},
		ratelimitapi.ConfigurationCheck(l.Settings.RateLimitAPI.Health, l.Rules))
	p.AddDrain(health.Drain)
	p.AddWork(func(ctx context.Context) error { return l.Rules.Follow(ctx, l.Source) })
	if l.Sink != nil {
		p.AddWork(l.Sink.Run)
	}
	return p.AddListener(ratelimitapi.Open(ctx, l.Settings.RateLimitAPI, ratelimitapi.Ports{
		Decide: l.Recorded, RecordCall: l.Statistics.RecordCall, Health: health, Bodies: l.Bodies,
		Metrics: l.Metrics, Log: l.Log, Tracing: ratelimitapi.Tracing(l.Tracing), Register: l.Register,
	}))
}

// probes returns the readiness checks of the rate limit part.
func (l rateLimitParts) probes(parts settings.Parts) []rest.Probe {
	if !parts.RateLimit {
		return nil
	}
	return []rest.Probe{{Name: "rules", Check: ratelimitapi.RulesReady(l.Settings.RateLimitAPI.Health, l.Rules, l.Source.Expected)}}
}

// addAPI adds the API listener, which reports the readiness of all parts, and the work that goes on
// without requests.
func (a apiParts) addAPI(ctx context.Context, parts settings.Parts, probes []rest.Probe, p *lifecycle.Process) error {
	a.Database.Measure(a.Metrics)
	a.Health.Add(append(a.probes(parts), probes...)...)
	if parts.Auth && a.Decisions.On() {
		a.Health.Add(rest.Probe{Name: "access", Check: a.Calls.CheckUsable, State: a.Calls.State})
	}
	p.AddDrain(a.Health.Drain)
	p.AddBackground(a.Retention.Run, a.Notices.Run)
	if parts.Registry {
		p.AddBackground(a.Recheck.Run, a.Reminder.Run, a.Deliveries.Run, a.Mirrors.Run, a.Watcher.Run, a.Finder.Run)
	}
	if parts.Auth {
		p.AddBackground(a.Tokens.Run, a.Joining.Run, a.Companies.Run, a.Calls.Run, a.Calls.Follow)
		prometheus.WatchCompanies(a.Companies.Up, a.Metrics)
		prometheus.MeasureDecisions(a.Calls.Age, a.Metrics)
	}
	if parts.Auth && parts.Console && a.Settings.Console.On {
		p.AddBackground(func(ctx context.Context) { a.announceSetup(ctx, a.Health) })
	}
	if parts.Auth && a.Settings.SignIn.History.Learns() {
		p.AddBackground(a.Gather.Run)
	}
	api, cleanup, err := rest.Open(ctx, a.Settings.REST, rest.Ports{
		Parts: a.running(parts), Health: a.Health, Docs: a.Docs, Throttle: a.Throttle, Bodies: a.Bodies,
		Clock: a.Clock, Log: a.Log, Tracing: rest.Tracing(a.Tracing), Metrics: a.Metrics,
	})
	if err == nil && a.Settings.IDTokens.PublicURL == "" {
		console := people.ConsoleURL(site.Address(api.Addr(), a.Settings.REST.TLS.Cert != ""))
		a.People.ServeAt(console)
		a.Companies.ServeAt(console)
	}
	if err == nil && parts.Console && a.Settings.Console.On && a.Settings.Console.Announce {
		p.Announce("console", site.Address(api.Addr(), a.Settings.REST.TLS.Cert != ""))
	}
	return p.AddListener(api, cleanup, err)
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
	if parts.Auth && parts.Registry && a.Settings.Administration.On {
		list = append(list, a.Admin)
	}
	if parts.Auth && parts.Registry {
		list = append(list, decideapi.NewWeb(a.Decisions, rest.Address))
	}
	if parts.Auth && parts.Registry && a.Settings.OAuth.On {
		list = append(list, a.OAuth)
	}
	if parts.Methods {
		list = append(list, a.Methods)
	}
	if parts.Console && a.Settings.Console.On {
		list = append(list, a.Console)
	}
	return list
}

// probes returns the readiness checks of the stores, and of the plugins if a part that uses plugins
// runs.
func (a apiParts) probes(parts settings.Parts) []rest.Probe {
	list := []rest.Probe{
		{Name: "database", Check: a.Database.Ready},
		{Name: "counters", Check: a.Counters.Ping, Covered: a.Settings.Decide.FailureMode.CountsOn()},
	}
	if parts.Registry {
		list = append(list, rest.Probe{Name: "registry_reads", State: a.Registry.ReadState})
	}
	if parts.Auth {
		list = append(list, rest.Probe{Name: "company_sign_in", Check: a.Companies.CheckUp, Covered: true})
	}
	if !parts.Auth && !parts.Registry {
		return list
	}
	for _, plugin := range a.Plugins.Status() {
		list = append(list, rest.Probe{
			Name:    plugin.Name,
			Check:   func(context.Context) error { return a.Plugins.CheckFailed(plugin.Name) },
			Unused:  func() bool { return a.Plugins.Unused(plugin.Name) },
			Covered: plugin.Kind == string(pluginclient.Ownership) && a.Settings.Publishing.Checks != publishing.ChecksEnforce,
		})
	}
	return list
}

// How long the address of the setup waits for the service to be ready, so that it is among the last
// lines of the log of a start.
const (
	readyChecks   = 50
	readyInterval = 100 * time.Millisecond
)

// announceSetup logs the address on which the first account is made, unless there is an account. On
// a terminal it is also printed by itself.
func (a apiParts) announceSetup(ctx context.Context, health *rest.Health) {
	for range readyChecks {
		if status, _ := health.States(ctx); status != "unavailable" || !a.Waiter.Wait(ctx, readyInterval) {
			break
		}
	}
	if a.Settings.Console.Announce {
		a.Waiter.Wait(ctx, time.Second) // for the lines of plugins and rules
	}
	link, err := a.People.MakeSetupLink(ctx)
	switch {
	case fault.Is(err, fault.Conflict), ctx.Err() != nil:
		return
	case err != nil:
		a.Log.WithError(err).Error("the address of the setup cannot be made; tollgate setup-link prints another one")
		return
	}
	a.Log.WithField("setup", link.URL).Warn("there is no account yet: open the address of the setup to make the first one")
	if a.Settings.Console.Announce {
		_, _ = fmt.Fprintf(a.Log.Logger.Out, "\nSet up Tollgate in your browser:\n%s\n", link.URL) // it is in the log
	}
}
