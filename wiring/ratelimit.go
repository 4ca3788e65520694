package wiring

import (
	"errors"

	"github.com/google/wire"
	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/decisionlog"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/traffic"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// rateLimitAloneSet is everything that runs in the rate limit service alone.
var rateLimitAloneSet = wire.NewSet(
	settingsSet, system.Set, newRegisterer, newLogReporter, rateLimitSet, secretKeyAlone,
	wire.Struct(new(rateLimitParts), "*"), newRateLimitService,
)

// rateLimitSet provides rate limit decisions.
var rateLimitSet = wire.NewSet(
	// Decisions.
	decide.New, newDecidePorts, wire.Struct(new(decisionStores), "*"),
	newRecordedDecider, wire.Struct(new(recordPorts), "*"),
	// Counters.
	chooseCounters, wire.Struct(new(counterSettings), "*"), wire.Struct(new(processCounters), "*"), newProcessCounters,
	measureCounters, chooseLeases, otlp.Open, chooseOverLimit,
	// Rules.
	chooseRules, reload.New,
	// Request bodies.
	requestbody.NewBudget,
	// Statistics.
	newStatistics, debugapi.NewStatistics, wire.Struct(new(sinkSettings), "*"), chooseSink,
)

func newStatistics(r *reload.Rules, d *decide.Decider, o statistics.Options) *statistics.Statistics {
	return statistics.New(r, d, o)
}

// processCounters are the dependencies of counters in the process.
type processCounters struct {
	Clock   clock.Clock
	Config  memory.Config
	Metrics metrics.Registerer
	Log     *logrus.Entry
}

// open returns counters whose metrics and log lines have the name.
func (p processCounters) open(name string) *memory.Counters {
	m := memory.NewCounters(p.Clock, p.Config)
	m.Measure(name, p.Metrics, p.Log)
	return m
}

// newProcessCounters returns the counters of rate limits in the process.
func newProcessCounters(p processCounters) *memory.Counters { return p.open("ratelimit") }

// decisionStores hold the counts of rate limit decisions.
type decisionStores struct {
	Counters  counter.Store
	Local     *memory.Counters
	OverLimit counter.OverLimitCache
	Leases    *lease.Leases // nil for counters in the process
}

// recordPorts are the dependencies of the recording of requests.
type recordPorts struct {
	Root    auth.RootSecret
	Clock   clock.Clock
	Metrics metrics.Registerer
	Log     *logrus.Entry
}

// newRecordedDecider returns what decides rate limit calls: the decider, which also records
// requests if RATELIMIT_RECORD is set and the rate limit part runs.
func newRecordedDecider(
	parts settings.Parts, c traffic.Config, d *decide.Decider, p recordPorts,
) (decide.Func, func(), error) {
	if !parts.RateLimit {
		return d.Decide, func() {}, nil
	}
	counts := traffic.NewCounts(p.Metrics)
	if !c.On() {
		return d.Decide, func() {}, nil
	}
	ports := traffic.Ports{Clock: p.Clock, Log: p.Log}
	if c.Hash {
		key, err := p.Root.Derive("recorded rate limit requests")
		if err != nil {
			return nil, nil, errors.New(
				"RATELIMIT_RECORD_HASH: set SECRET_KEY to at least 32 characters: without the database there is no other secret")
		}
		ports.Sum = key.Sum
	}
	r, err := traffic.New(c, d.Decide, counts, ports)
	if err != nil {
		return nil, nil, err
	}
	return r.Decide, r.Close, nil
}

// secretKeyAlone returns the root secret of a rate limit service alone, which has no database for
// one.
func secretKeyAlone(k authrecords.SecretKey) auth.RootSecret { return auth.RootSecret(k) }

// newDecidePorts returns the dependencies of decisions. Decisions are logged at the level debug
// only.
func newDecidePorts(rules *reload.Rules, s decisionStores, c clock.Clock, log *logrus.Entry) decide.Ports {
	ports := decide.Ports{
		Rules: rules.Current, Counters: s.Counters, Local: s.Local, Leases: s.Leases, OverLimit: s.OverLimit, Clock: c,
	}
	if log.Logger.IsLevelEnabled(logrus.DebugLevel) {
		ports.Observe = decisionlog.New(log).Decided
	}
	return ports
}
