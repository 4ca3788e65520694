package wiring

import (
	"github.com/google/wire"
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
	newDecider, wire.Struct(new(decide.Ports), "Counters", "OverLimit", "Leases", "Clock"),
	newRecordedDecider, wire.Struct(new(traffic.Sources), "*"),
	// Counters.
	chooseCounters, wire.FieldsOf(new(counter.Chosen), "Deadlines"),
	wire.Struct(new(memory.Ports), "*"), memory.OpenRateLimit, memory.OpenOverLimit, lease.Start,
	measureCounters, otlp.Open,
	// Rules.
	chooseRules, reload.New,
	// Request bodies.
	requestbody.NewBudget,
	// Statistics.
	newStatistics, debugapi.NewStatistics, chooseSink,
)

func newStatistics(r *reload.Rules, d *decide.Decider, o statistics.Options) *statistics.Statistics {
	return statistics.New(r, d, o)
}

// newRecordedDecider returns what decides rate limit calls. It records requests if the rate limit
// part runs.
func newRecordedDecider(
	parts settings.Parts, c traffic.Config, d *decide.Decider, s traffic.Sources,
) (decide.Func, func(), error) {
	if !parts.RateLimit {
		return d.Decide, func() {}, nil
	}
	return traffic.Open(c, d.Decide, s)
}

// secretKeyAlone returns the root secret of a rate limit service alone, which has no database for
// one.
func secretKeyAlone(k authrecords.SecretKey) auth.RootSecret { return auth.RootSecret(k) }

// newDecider returns the decider. Decisions are logged at the level debug only.
func newDecider(
	c decide.Config, p decide.Ports, m *memory.Counters, rules *reload.Rules, log *logrus.Entry,
) (*decide.Decider, error) {
	p.Rules, p.Local = rules.Current, m
	if log.Logger.IsLevelEnabled(logrus.DebugLevel) {
		p.Observe = decisionlog.New(log).Decided
	}
	return decide.New(c, p)
}
