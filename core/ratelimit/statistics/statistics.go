// Package statistics lists all statistics of the rate limit service, with their names and values
// (contract L-44 to L-46). All sinks read this list. It neither counts hits nor sends anything.
package statistics

import (
	"iter"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Rules returns the rules in force and counts configurations. reload.Rules implements it.
type Rules interface {
	// Current returns the rules in force, or nil before a first configuration.
	Current() *ruleset.Set
	// Loaded returns how many configurations came into force.
	Loaded() uint64
	// Refused returns how many configurations were refused.
	Refused() uint64
}

// Decider has the counts of decisions. decide.Decider implements it.
type Decider interface {
	Stats() *decide.Stats
	Series() iter.Seq[*decide.Series]
	UnknownDomains() iter.Seq2[ratelimit.Domain, uint64]
}

// Options are settings of the list.
type Options struct {
	// WithoutRules leaves out the statistics of rules, of values and of unknown domains.
	WithoutRules bool
	// PeerNames gives the counter of store errors the name that it has in the Envoy rate limit
	// service, redis_error instead of store_error.
	PeerNames bool
}

// Statistics lists the statistics of rules, of decisions and of calls. It is safe for concurrent
// use.
type Statistics struct {
	rules   Rules
	decider Decider
	options Options
	calls   atomic.Uint64
	times   timeSample
}

// New returns the statistics of rules and decisions.
func New(r Rules, d Decider, o Options) *Statistics {
	return &Statistics{rules: r, decider: d, options: o}
}

// RecordCall counts a call of ShouldRateLimit, by gRPC or by /json, and its response time.
func (s *Statistics) RecordCall(took time.Duration) {
	s.times.addTime(s.calls.Add(1), took)
}

// Subject is what hits are counted for: a rule, or values of requests. Several subjects may have
// one name; their counts are then added.
type Subject struct {
	Domain ratelimit.Domain
	Path   string
	Levels []string
	Hits   *ratelimit.Hits
}

// allSubjects returns an iterator over all subjects, in no order. Rules with the same path share
// their Hits, so one Hits may occur in more than one subject.
func (s *Statistics) allSubjects() iter.Seq[Subject] {
	return func(yield func(Subject) bool) {
		if s.options.WithoutRules {
			return
		}
		if set := s.rules.Current(); set != nil {
			for r := range set.Rules() {
				if !yield(Subject{r.Domain, r.Path, r.Levels, r.Hits}) {
					return
				}
			}
		}
		for series := range s.decider.Series() {
			if !yield(Subject{series.Domain, series.Path, series.Levels, series.Hits}) {
				return
			}
		}
	}
}
