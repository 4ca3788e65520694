package wiring

import (
	"context"
	"errors"
	"fmt"

	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/adapters/xds"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// sqliteRecords opens the embedded database.
func sqliteRecords(ctx context.Context, s settings.Service, c sqlite.Config, t otlp.Tracing, log *logrus.Entry) (*relational.DB, func(), error) {
	return chooseRecords(ctx, recordSettings{Service: s, SQLite: c, Tracing: t}, log)
}

// recordSettings say where the records are, and how they are watched.
type recordSettings struct {
	Service  settings.Service
	Postgres postgres.Config
	SQLite   sqlite.Config
	Tracing  otlp.Tracing
}

// chooseRecords opens the database of the settings, and brings it up to date.
func chooseRecords(ctx context.Context, s recordSettings, log *logrus.Entry) (*relational.DB, func(), error) {
	db, cleanup, err := openRecords(ctx, s.Postgres, s.SQLite, s.Tracing)
	if err != nil {
		return nil, nil, err
	}
	db.Log(log)
	if err := upToDate(ctx, s.Service, db, log); err != nil {
		cleanup()
		return nil, nil, fmt.Errorf("database schema: %w", err)
	}
	return db, cleanup, nil
}

// openRecords opens PostgreSQL where DATABASE_URL is set, else the embedded
// database.
func openRecords(ctx context.Context, p postgres.Config, l sqlite.Config, t otlp.Tracing) (db *relational.DB, cleanup func(), err error) {
	if p.URL == "" {
		db, cleanup, err = sqlite.Open(ctx, l)
	} else {
		db, cleanup, err = postgres.Open(ctx, p)
	}
	if err == nil && t.Enabled() {
		db.Observe(t.Queries())
	}
	return db, cleanup, err
}

// upToDate brings a database up to date and tells the log what that took, or,
// where that is not to happen at start, fails if it is not.
func upToDate(ctx context.Context, s settings.Service, db *relational.DB, log *logrus.Entry) error {
	if s.MigrateOnStart {
		applied, err := db.Migrate(ctx)
		if len(applied) > 0 { // also those before one that failed
			log.WithField("migrations", applied).Info("migrations are applied to the database")
		}
		return err
	}
	pending, err := db.Pending(ctx)
	if err != nil {
		return err
	}
	switch n := len(pending); n {
	case 0:
		return nil
	case 1:
		return errors.New("a migration is missing and MIGRATE_ON_START is false: run 'tollgate migrate'")
	default:
		return fmt.Errorf("%d migrations are missing and MIGRATE_ON_START is false: run 'tollgate migrate'", n)
	}
}

// untraced is the tracing of operator commands: none.
func untraced() otlp.Tracing { return otlp.Tracing{} }

// counters holds where hits are counted, and whether the health component of their store is healthy
// (contract L-30).
type counters struct {
	Store   counter.Store
	System  string // as spans name it; empty in the process
	Healthy func() bool
}

// counterSettings say where hits are counted.
type counterSettings struct {
	RateLimit settings.RateLimit
	Valkey    valkey.Config
	PerSecond valkey.PerSecondConfig
	Memcached memcached.Config
}

// inProcessCounters counts in the process.
func inProcessCounters(m *memory.Counters) counters {
	return counters{Store: m, Healthy: func() bool { return true }}
}

// processCounters makes counters in the process.
type processCounters struct {
	Clock   clock.Clock
	Config  memory.Config
	Metrics metrics.Registerer
	Log     *logrus.Entry
}

// named returns counters whose metrics and log lines have the name.
func (p processCounters) named(name string) *memory.Counters {
	m := memory.NewCounters(p.Clock, p.Config)
	m.Measure(name, p.Metrics, p.Log)
	return m
}

// limitCounters returns the counters of rate limits in the process.
func limitCounters(p processCounters) *memory.Counters { return p.named("ratelimit") }

// apiStore is where the API's own limits are counted.
type apiStore struct{ counter.Store }

// chooseAPIStore counts in the store of the rate limits where other instances
// share that. In the process the API has counters of its own: callers of the rate
// limit service could fill the others and so open a limit that guards sign-in.
func chooseAPIStore(shared counters, measured counter.Store, p processCounters) apiStore {
	if shared.System != "" {
		return apiStore{measured}
	}
	return apiStore{p.named("api")}
}

// chooseCounters counts on memcached where BACKEND_TYPE selects it, on Valkey
// where KVSTORE_URL is set, else in the process.
func chooseCounters(ctx context.Context, s counterSettings, m *memory.Counters, log *logrus.Entry) (counters, func(), error) {
	switch {
	case s.RateLimit.Backend == settings.Memstore:
		return memcachedCounters(ctx, s.Memcached, log)
	case s.Valkey.URL != "":
		return valkeyCounters(ctx, s.Valkey, s.PerSecond, log)
	default:
		return inProcessCounters(m), func() {}, nil
	}
}

// memcachedCounters counts on memcached, which is unhealthy when no node
// answers.
func memcachedCounters(ctx context.Context, c memcached.Config, log *logrus.Entry) (counters, func(), error) {
	store, cleanup, err := memcached.Open(ctx, c, log)
	if err != nil {
		return counters{}, nil, err
	}
	return counters{store, "memcached", store.Connected}, cleanup, nil
}

// valkeyCounters counts on Valkey, which is unhealthy without a live connection
// where the settings ask for one.
func valkeyCounters(ctx context.Context, v valkey.Config, p valkey.PerSecondConfig, log *logrus.Entry) (counters, func(), error) {
	store, cleanup, err := valkey.Open(ctx, v, log)
	if err != nil {
		return counters{}, nil, err
	}
	if !p.Enabled {
		return counters{store, "valkey", func() bool { return !v.HealthNeedsConnection || store.Connected() }}, cleanup, nil
	}
	second, cleanupSecond, err := valkey.Open(ctx, p.Config(v), log)
	if err != nil {
		cleanup()
		return counters{}, nil, err
	}
	healthy := func() bool { return !v.HealthNeedsConnection || store.Connected() && second.Connected() }
	return counters{valkey.NewPair(second, store), "valkey", healthy}, func() { cleanupSecond(); cleanup() }, nil
}

// counterStore is the store as calls see it: measured, and traced, where that is
// on. In the process there is nothing to wait for, and measuring would cost more
// than counting: there the metrics stay 0.
func counterStore(c counters, t otlp.Tracing, r metrics.Registerer) counter.Store {
	measured := prometheus.NewCounters(c.Store, r)
	switch {
	case c.System == "":
		return c.Store
	case t.Enabled():
		return t.Counters(measured, c.System)
	default:
		return measured
	}
}

// chooseOverLimit remembers keys that are over their limit where
// LOCAL_CACHE_SIZE_IN_BYTES gives room for them, else none.
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

// ruleSource is where rate limit rules come from, and whether there are any to
// wait for.
type ruleSource struct {
	Source   rulesource.Source
	Expected func() bool
}

// chooseRules reads rate limit rules from the management server or from files,
// as CONFIG_TYPE says. Files are expected where their directory is.
func chooseRules(r settings.RateLimit, files runtimedir.Config, server xds.Config, log *logrus.Entry) (ruleSource, func(), error) {
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

// inProcessSessions keeps copies of sessions in the process.
func inProcessSessions(m memory.Config, c clock.Clock, parts partMetrics) sessioncache.Cache {
	return prometheus.NewSessionCache(memory.NewSessions(c, m), parts.Either)
}

// sessionCopySettings say where copies of sessions are kept.
type sessionCopySettings struct {
	Valkey valkey.Config
	Memory memory.Config
}

// chooseSessionCache keeps copies of sessions on Valkey where KVSTORE_URL is
// set, else in the process.
func chooseSessionCache(ctx context.Context, s sessionCopySettings, c clock.Clock, m partMetrics, log *logrus.Entry) (sessioncache.Cache, func(), error) {
	if s.Valkey.URL == "" {
		return inProcessSessions(s.Memory, c, m), func() {}, nil
	}
	cache, cleanup, err := valkey.OpenSessions(ctx, s.Valkey, c, log)
	if err != nil {
		return nil, nil, err
	}
	return prometheus.NewSessionCache(cache, m.Either), cleanup, nil
}

// openPlugins finds the plugins; calls of them are measured, and traced, where
// that is on.
func openPlugins(c pluginhost.Config, t otlp.Tracing, m partMetrics, log *logrus.Entry) (*pluginhost.Host, func(), error) {
	if t.Enabled() {
		c.Around = t.PluginCall
	}
	host, cleanup, err := pluginhost.Open(c, log)
	if err != nil {
		return nil, nil, err
	}
	host.Measure(m.Either)
	return host, cleanup, nil
}

// chooseCouriers takes the plugins that the settings name. A channel without
// one is not offered. Where none is named, the embedded environment takes the
// development plugin, if it is there. Where nobody signs in, none is started.
func chooseCouriers(
	s settings.Service, a settings.Auth, parts Parts, host *pluginhost.Host, log *logrus.Entry,
) (stepup.Couriers, error) {
	couriers := stepup.Couriers{}
	if !parts.Auth {
		return couriers, nil
	}
	if err := setCourier(&couriers.Email, host, a.OTPEmailPlugin); err != nil {
		return stepup.Couriers{}, fmt.Errorf("OTP_EMAIL_PLUGIN: %w", err)
	}
	if err := setCourier(&couriers.SMS, host, a.OTPSMSPlugin); err != nil {
		return stepup.Couriers{}, fmt.Errorf("OTP_SMS_PLUGIN: %w", err)
	}
	if s.Environment == settings.Embedded && (couriers.Email == nil || couriers.SMS == nil) {
		developmentCouriers(&couriers, host, log)
	}
	return couriers, nil
}

// developmentCouriers serves the channels that nobody is named for. Where the
// plugin is missing, only a service without any courier is worth a warning: one
// that is named for a channel says what is wanted.
func developmentCouriers(c *stepup.Couriers, host *pluginhost.Host, log *logrus.Entry) {
	development, err := host.Courier(settings.DevelopmentCourier)
	switch {
	case err != nil && c.Email == nil && c.SMS == nil:
		log.WithError(err).Warn("one-time codes cannot be delivered")
		return
	case err != nil:
		return
	}
	log.Warn("one-time codes are written to the log, because no plugin is set for them: for development only")
	if c.Email == nil {
		c.Email = development
	}
	if c.SMS == nil {
		c.SMS = development
	}
}

// setCourier sets a courier to the plugin of a name, if there is a name.
func setCourier(c *courier.Courier, host *pluginhost.Host, plugin string) error {
	if plugin == "" {
		return nil
	}
	named, err := host.Courier(plugin)
	if err != nil {
		return err
	}
	*c = named
	return nil
}

// rootSecret is SECRET_KEY, or else what all instances share in the database.
func rootSecret(ctx context.Context, s settings.Service, ring authstore.KeyRing, e secrets.Entropy, log *logrus.Entry) (auth.RootSecret, error) {
	if s.SecretKey != "" {
		return auth.RootSecret(s.SecretKey), nil
	}
	if s.Environment == settings.Production {
		log.Warn("SECRET_KEY is not set: the root secret is kept in the database, and in its backups")
	}
	candidate := make([]byte, 32)
	e.Fill(candidate)
	secret, err := ring.RootSecret(ctx, candidate)
	if err != nil {
		return nil, fmt.Errorf("root secret: %w", err)
	}
	return secret, nil
}

// cursorSealer authenticates the cursors of listings, alike on all instances.
func cursorSealer(root auth.RootSecret) (*page.Sealer, error) {
	key, err := root.Derive("page cursors")
	if err != nil {
		return nil, errors.New("SECRET_KEY: too short")
	}
	sum := key.Sum("registry")
	return page.NewSealer(sum[:]), nil
}
