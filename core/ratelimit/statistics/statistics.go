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

// RuleMetric returns the name of a statistic of rules for Prometheus.
func RuleMetric(s Stat) string { return "ratelimit_service_rate_limit_" + s.String() }

// Total are all counts under one name since the start. Its texts are valid UTF-8, and written as in
// the name with dots.
type Total struct {
	Domain string
	Rule   string // the levels, joined by dots
	Key1   string // the first level, as dashboards of the Envoy service have it
	Key2   string // the second level; empty without one
	Values Values
}

// Name returns the name with dots of a statistic.
func (t *Total) Name(s Stat) string {
	name := appendName(nil, ratelimit.Domain(t.Domain), t.Rule)
	return string(append(append(name, '.'), s.String()...))
}

// maxAtZero is the number of rules up to which rules without hits are listed too. With more, each
// of them would add six lines of zeros.
const maxAtZero = 10_000

// Totals returns the values of all rules and series, one Total for each name, in no order. With
// more than 10,000 rules, it returns only those with hits.
func (s *Statistics) Totals() []Total {
	type name struct{ domain, rule string }
	size := s.ruleCount()
	onlyHit := size > maxAtZero
	list := make([]Total, 0, min(size, maxAtZero))
	where := make(map[name]int, min(size, maxAtZero))
	counted := make(map[*ratelimit.Hits]struct{}, size)
	for subject := range s.allSubjects() {
		if _, again := counted[subject.Hits]; again {
			continue
		}
		counted[subject.Hits] = struct{}{}
		values := readValues(subject.Hits)
		if onlyHit && values == (Values{}) {
			continue
		}
		n := name{cleanName(string(subject.Domain)), cleanName(subject.Path)}
		i, known := where[n]
		if !known {
			i = len(list)
			where[n] = i
			list = append(list, newTotal(n.domain, n.rule, subject.Levels))
		}
		list[i].Values.addValues(values)
	}
	return list
}

func (s *Statistics) ruleCount() int {
	set := s.rules.Current()
	if set == nil || s.options.WithoutRules {
		return 0
	}
	return set.RuleCount()
}

func newTotal(domain, rule string, levels []string) Total {
	t := Total{Domain: domain, Rule: rule}
	if len(levels) > 0 {
		t.Key1 = cleanName(levels[0])
	}
	if len(levels) > 1 {
		t.Key2 = cleanName(levels[1])
	}
	return t
}

// timeSlots is the number of response times that are kept between two calls of Times. With more
// calls of the service, the kept times are spread evenly over all of them.
const timeSlots = 512

// timeSample keeps a sample of response times, without a lock.
type timeSample struct {
	every atomic.Uint64 // one of this many calls is kept; 0 means 1
	slots [timeSlots]atomic.Int64
}

func (t *timeSample) addTime(call uint64, took time.Duration) {
	every := max(t.every.Load(), 1)
	if call%every == 0 {
		t.slots[call/every%timeSlots].Store(int64(max(took, 1)))
	}
}

// Times returns a sample of the response times since its last call, and the fraction of all calls
// that the sample represents, above 0 and at most 1.
func (c *Changes) Times() (sample []time.Duration, rate float64) {
	t := &c.statistics.times
	for i := range t.slots {
		if took := t.slots[i].Swap(0); took > 0 {
			sample = append(sample, time.Duration(took))
		}
	}
	calls := c.statistics.calls.Load()
	since := calls - c.calls
	c.calls = calls
	t.every.Store(since/timeSlots + 1)
	if len(sample) == 0 || since == 0 {
		return sample, 1
	}
	return sample, min(1, float64(len(sample))/float64(since))
}
