package wiring

import (
	"github.com/google/wire"
	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/decisionlog"
	"github.com/tollgate-dev/tollgate/adapters/eventlog"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// rateLimitAloneSet is everything that runs in the rate limit service alone.
var rateLimitAloneSet = wire.NewSet(
	settingsSet, system.Set, newRegisterer, rateLimitSet,
	wire.Struct(new(rateLimitParts), "*"), newRateLimitService,
)

// rateLimitSet provides rate limit decisions.
var rateLimitSet = wire.NewSet(
	// Decisions.
	settings.DecideConfig, decide.New, newDecidePorts, wire.Struct(new(decisionStores), "*"),
	wire.Bind(new(decide.Rules), new(*reload.Rules)),
	// Counters.
	chooseCounters, wire.Struct(new(counterSettings), "*"), wire.Struct(new(processCounters), "*"), newProcessCounters,
	measureCounters, otlp.Open, chooseOverLimit,
	// Rules.
	chooseRules, settings.RuleOptions, reload.New, eventlog.RulesSet,
	// Statistics.
	settings.StatisticsOptions, statistics.New, debugapi.NewStatistics, wire.Struct(new(sinkSettings), "*"), chooseSink,
	wire.Bind(new(statistics.Rules), new(*reload.Rules)), wire.Bind(new(statistics.Decider), new(*decide.Decider)),
)

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
}

// newDecidePorts returns the dependencies of decisions. Decisions are logged at the level debug
// only.
func newDecidePorts(rules decide.Rules, s decisionStores, c clock.Clock, log *logrus.Entry) decide.Ports {
	ports := decide.Ports{Rules: rules, Counters: s.Counters, Local: s.Local, OverLimit: s.OverLimit, Clock: c}
	if log.Logger.IsLevelEnabled(logrus.DebugLevel) {
		ports.Observer = decisionlog.New(log)
	}
	return ports
}
