package wiring

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/registry/publish"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Service is a service put together: its listeners, which have their addresses
// and answer from Run on.
type Service struct {
	settings   settings.Service
	log        *logrus.Entry
	servers    []server
	background []func(context.Context) error
	drains     []func()
}

// server is one listener, or a pair that starts and stops together.
type server struct {
	addresses logrus.Fields // by name, for the log
	serve     func() error
	shutdown  func(context.Context) error
}

// limiter is the rate limit part put together.
type limiter struct {
	Settings   settings.Service
	Config     ratelimitapi.Config
	Debug      debugapi.Config
	Decider    *decide.Decider
	Rules      *reload.Rules
	Statistics *debugapi.Statistics
	Metrics    *prometheus.Registry
	Sinks      sinks
	Source     ruleSource
	Counters   counters
	Tracing    otlp.Tracing
	Log        *logrus.Entry
}

// api is the other parts put together.
type api struct {
	Config   rest.Config
	Registry *registryapi.API
	Auth     *authapi.API
	Methods  *methodsapi.API
	Throttle throttle.Throttle
	Clock    clock.Clock
	Database *relational.DB
	Counters counter.Store
	Limits   settings.RateLimit
	Packages settings.Packages
	Plugins  *pluginhost.Host
	Sweeping *retention.Runner
	Notices  *notices.Notifier
	Tracing  otlp.Tracing
	Metrics  *prometheus.Registry
}

// newService takes the addresses of the parts that are to run.
func newService(ctx context.Context, parts Parts, l limiter, a api) (*Service, func(), error) {
	s, cleanup, err := newLimiterService(ctx, parts, l)
	if err != nil {
		return nil, nil, err
	}
	closeAPI, err := s.addAPI(ctx, parts, a, append(a.probes(parts), l.probes(parts)...))
	if err != nil {
		cleanup()
		return nil, nil, err
	}
	return s, func() { closeAPI(); cleanup() }, nil
}

// newLimiterService takes the addresses of what shows the service from inside,
// and of the rate limit part, where that is to run.
func newLimiterService(ctx context.Context, parts Parts, l limiter) (*Service, func(), error) {
	s := &Service{settings: l.Settings, log: l.Log}
	closeDebug, err := s.addDebug(ctx, parts, l)
	if err != nil {
		return nil, nil, err
	}
	closeSinks, err := l.Sinks.open(ctx, parts, s)
	if err != nil {
		closeDebug()
		return nil, nil, err
	}
	if !parts.RateLimit {
		return s, func() { closeSinks(); closeDebug() }, nil
	}
	closeLimits, err := s.addLimits(ctx, l)
	if err != nil {
		closeSinks()
		closeDebug()
		return nil, nil, err
	}
	return s, func() { closeLimits(); closeSinks(); closeDebug() }, nil
}

// addDebug takes the address of the debug listener. Rules and statistics are of
// the rate limit part: where it does not run, zeros of it would only mislead.
func (s *Service) addDebug(ctx context.Context, parts Parts, l limiter) (func(), error) {
	shown := debugapi.Dependencies{Metrics: l.Metrics.Handler(), Registerer: l.Metrics, Log: l.Log}
	if parts.RateLimit {
		l.Statistics.Measure(l.Metrics)
		shown.Rules, shown.Statistics = l.Rules, l.Statistics
	}
	debug, cleanup, err := debugapi.Open(ctx, l.Debug, shown)
	if err != nil {
		return nil, err
	}
	s.servers = append(s.servers, server{
		logrus.Fields{"debug": debug.Addr().String()}, debug.Serve, debug.Shutdown,
	})
	return cleanup, nil
}

// addLimits takes the addresses of the rate limit part.
func (s *Service) addLimits(ctx context.Context, l limiter) (func(), error) {
	health := ratelimitapi.NewHealth(l.storeCheck(), ratelimitapi.ConfigurationCheck(l.Config.Health, l.Rules))
	limits, cleanup, err := ratelimitapi.Open(ctx, l.Config, ratelimitapi.Dependencies{
		Decider: l.Decider, Meter: l.Statistics, Health: health, Metrics: l.Metrics, Log: l.Log,
		Tracing: ratelimitapi.Tracing{Tracer: l.Tracing.Tracer, Propagator: l.Tracing.Propagator},
	})
	if err != nil {
		return nil, err
	}
	s.servers = append(s.servers, server{
		logrus.Fields{"grpc": limits.GRPCAddr().String(), "ratelimit_http": limits.HTTPAddr().String()},
		limits.Serve, limits.Shutdown,
	})
	s.background = append(s.background, func(ctx context.Context) error { return l.Rules.Follow(ctx, l.Source.Source) })
	s.drains = append(s.drains, health.Drain)
	return cleanup, nil
}

// storeCheck is the component of the counter store.
func (l limiter) storeCheck() ratelimitapi.Check {
	return ratelimitapi.Check{Name: "cache store", Healthy: l.Counters.Healthy}
}

// probes are what readiness looks at of the rate limit part: its rules. An
// instance that other callers are sent to by its readiness must not answer that
// it has none yet. Where there is nothing to wait for, the other parts are of use
// without.
func (l limiter) probes(p Parts) []rest.Probe {
	if !p.RateLimit {
		return nil
	}
	inForce := ratelimitapi.ConfigurationCheck(l.Config.Health, l.Rules).Healthy
	return []rest.Probe{{Name: "rules", Check: func(context.Context) error {
		if inForce() || !l.Source.Expected() {
			return nil
		}
		return errors.New("no rate limit configuration is in force")
	}}}
}

// addAPI takes the address of the API listener, which tells of the readiness of
// all parts.
func (s *Service) addAPI(ctx context.Context, parts Parts, a api, probes []rest.Probe) (func(), error) {
	a.Database.Measure(a.Metrics)
	health := rest.NewHealth(probes...)
	app := rest.New(a.Config, rest.Dependencies{
		Parts: a.parts(parts), Health: health, Pages: apidocs.New(), Throttle: a.Throttle, Clock: a.Clock, Log: s.log,
		Tracing: rest.Tracing{Tracer: a.Tracing.Tracer, Propagator: a.Tracing.Propagator}, Metrics: a.Metrics,
	})
	listener, err := rest.Listen(ctx, a.Config, s.log, a.Metrics)
	if err != nil {
		return nil, err
	}
	s.servers = append(s.servers, server{
		logrus.Fields{"api": listener.Addr().String()},
		func() error { return app.Serve(listener) },
		app.Shutdown,
	})
	s.background = append(s.background, untilEnd(a.Sweeping.Run), untilEnd(a.Notices.Run))
	s.drains = append(s.drains, health.Drain)
	return func() { _ = listener.Close() }, nil // closed already when it was served
}

// untilEnd returns background work that never fails.
func untilEnd(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

func (a api) parts(p Parts) []rest.Part {
	var list []rest.Part
	if p.Registry {
		list = append(list, a.Registry)
	}
	if p.Auth {
		list = append(list, a.Auth)
	}
	if p.Methods {
		list = append(list, a.Methods)
	}
	return list
}

// probes are the dependencies that readiness looks at.
func (a api) probes(p Parts) []rest.Probe {
	list := []rest.Probe{
		{Name: "database", Check: a.Database.Ready},
		{Name: "counters", Check: a.Counters.Ping, Covered: a.Limits.CoversStore()},
	}
	if !p.Auth && !p.Registry {
		return list
	}
	for _, plugin := range a.Plugins.Status() {
		list = append(list, rest.Probe{
			Name:    plugin.Name,
			Check:   func(context.Context) error { return a.works(plugin.Name) },
			Covered: plugin.Kind == string(pluginclient.Ownership) && a.Packages.Level() != publish.ChecksEnforce,
		})
	}
	return list
}

// works reports whether a plugin has failed. One that nothing has asked for yet
// has not.
func (a api) works(plugin string) error {
	for _, status := range a.Plugins.Status() {
		if status.Name == plugin && status.State == pluginhost.Failed {
			return errors.New("plugin " + plugin + " has failed")
		}
	}
	return nil
}

// Run answers until the context ends or a listener fails. At the end of the context health turns
// unhealthy, everything is still answered for SHUTDOWN_DRAIN, then the listeners close and the
// calls in flight finish, within SHUTDOWN_TIMEOUT (contract O-18).
func (s *Service) Run(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan error, len(s.servers)+len(s.background))
	finished := make(chan struct{}, len(s.background))
	for _, work := range s.background {
		go func() {
			if err := work(working); err != nil {
				failed <- err
			}
			finished <- struct{}{}
		}()
	}
	for _, server := range s.servers {
		go func() {
			if err := server.serve(); err != nil {
				failed <- err
			}
		}()
	}
	s.sayReady()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.drain(failed)
	}
	err = errors.Join(err, s.shutdown())
	stop()
	for range s.background {
		<-finished
	}
	return err
}

func (s *Service) sayReady() {
	line := s.log.WithField("environment", s.settings.Environment)
	for _, server := range s.servers {
		line = line.WithFields(server.addresses)
	}
	line.Info("tollgate is ready")
}

// drain tells everybody that the service is going, and waits.
func (s *Service) drain(failed <-chan error) {
	s.log.WithField("drain", s.settings.ShutdownDrain.String()).Info("shutting down")
	for _, drain := range s.drains {
		drain()
	}
	select {
	case err := <-failed:
		s.log.WithError(err).Error("a listener failed while draining")
	case <-time.After(s.settings.ShutdownDrain):
	}
}

// shutdown closes all listeners at once and waits for the calls in flight.
func (s *Service) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.settings.ShutdownTimeout)
	defer cancel()
	ended := make(chan error, len(s.servers))
	for _, server := range s.servers {
		go func() { ended <- server.shutdown(ctx) }()
	}
	var errs []error
	for range s.servers {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}
