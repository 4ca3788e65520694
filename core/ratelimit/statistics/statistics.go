// Package statistics lists all statistics of the rate limit service, with their names and values
// (contract L-44 to L-46). Every sink reads this one list. It neither counts nor sends.
package statistics

import (
	"iter"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Rules are the rules in force and how loading them went; reload.Rules is one.
type Rules interface {
	Current() *ruleset.Set
	Loaded() uint64
	Refused() uint64
}

// Decider has the counts of decisions; decide.Decider is one.
type Decider interface {
	Stats() *decide.Stats
	Series() iter.Seq[*decide.Series]
	UnknownDomains() iter.Seq2[ratelimit.Domain, uint64]
}

// Options change what is listed.
type Options struct {
	// WithoutRules leaves out the statistics of rules, of values and of
	// unknown domains (DISABLE_STATS).
	WithoutRules bool
	// PeerNames lists store errors under the name that the Envoy service has for
	// them.
	PeerNames bool
}

// Statistics are all statistics. They are safe for concurrent use.
type Statistics struct {
	rules   Rules
	decider Decider
	options Options
	calls   atomic.Uint64
	times   times
}

// New returns the statistics of rules and decisions.
func New(r Rules, d Decider, o Options) *Statistics {
	return &Statistics{rules: r, decider: d, options: o}
}

// Answered counts a call of ShouldRateLimit, by gRPC or by /json, which took
// that long.
func (s *Statistics) Answered(took time.Duration) {
	s.times.add(s.calls.Add(1), took)
}

// Subject is what hits are counted for: a rule, or values that were asked for.
// Several subjects may have one name; what is counted for them comes together.
type Subject struct {
	Domain ratelimit.Domain
	Path   string
	Levels []string
	Hits   *ratelimit.Hits
}

// subjects goes through all of them, in no order. A rule's Hits may come more
// than once.
func (s *Statistics) subjects() iter.Seq[Subject] {
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
		for one := range s.decider.Series() {
			if !yield(Subject{one.Domain, one.Path, one.Levels, one.Hits}) {
				return
			}
		}
	}
}
