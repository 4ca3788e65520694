// Package simulate decides recorded requests by two sets of rules, and compares the answers. It
// makes the decisions of package decide, at the times of the recording. It reads neither rules nor
// recordings.
package simulate

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Rules are the sets of rules that are compared.
type Rules struct{ Old, New *ruleset.Set }

// Ports are the dependencies of a Simulation.
type Ports struct {
	// OldCounters and NewCounters count the hits of each set of rules. Both are empty, and use
	// Clock.
	OldCounters, NewCounters counter.Store
	Clock                    *Clock
}

// Clock is a clock.Clock that shows the time of the request that is being simulated. Its zero value
// is ready for use. It is not safe for concurrent use.
type Clock struct{ now time.Time }

// Now returns the time of the request.
func (c *Clock) Now() time.Time { return c.now }

// Simulation decides requests by both sets of rules. It is not safe for concurrent use.
type Simulation struct {
	clock    *Clock
	old, new *side
	calls    uint64
	tally    tally
}

// New returns a Simulation of services with a configuration. Its Shadow, FailureMode, MaxSeries,
// JitterMax and MaxDescriptors are not used: they change no result of a descriptor, or do not apply
// here.
func New(c decide.Config, r Rules, p Ports) (*Simulation, error) {
	if r.Old == nil || r.New == nil || p.Clock == nil {
		return nil, errors.New("both sets of rules and the clock must be given")
	}
	c.Shadow, c.FailureMode, c.MaxSeries, c.JitterMax, c.MaxDescriptors = false, decide.FailError, 0, 0, 0
	s := &Simulation{clock: p.Clock, tally: newTally(r)}
	var err error
	if s.old, err = newSide(c, r.Old, p.OldCounters, p.Clock); err != nil {
		return nil, err
	}
	s.new, err = newSide(c, r.New, p.NewCounters, p.Clock)
	return s, err
}

// Decide decides a request at a time by both sets of rules. It does not keep the request.
//
// Errors: fault.Invalid if the time is before that of the request before, and those of decide.
func (s *Simulation) Decide(ctx context.Context, at time.Time, r *ratelimit.Request) error {
	if at.Before(s.clock.now) {
		return fault.Newf(fault.Invalid, "the time %s is before that of the request before, %s",
			at.Format(time.RFC3339Nano), s.clock.now.Format(time.RFC3339Nano))
	}
	s.clock.now = at
	before, err := s.old.decide(ctx, r)
	if err != nil {
		return err
	}
	after, err := s.new.decide(ctx, r)
	if err != nil {
		return err
	}
	s.calls++
	s.tally.addCall(before, after)
	for i := range r.Descriptors {
		s.tally.addDescriptor(r.Domain, r.Descriptors[i].Entries, s.old.results[i], s.new.results[i])
	}
	return nil
}

// Report returns the comparison of all requests so far.
func (s *Simulation) Report() Report { return s.tally.report(s.calls) }

// side is one of the sets of rules.
type side struct {
	decider *decide.Decider
	set     *ruleset.Set
	results []result // of the descriptors of the last request
}

// result is the result for one descriptor.
type result struct {
	matched *ratelimit.Rule // the rule that matches; nil without one
	decided *ratelimit.Rule // the rule, unless it is replaced
	refused bool
}

func newSide(c decide.Config, set *ruleset.Set, counters counter.Store, clock *Clock) (*side, error) {
	s := &side{set: set}
	var err error
	s.decider, err = decide.New(c, decide.Ports{
		Rules: func() *ruleset.Set { return set }, Counters: counters, Observe: s.observe, Clock: clock,
	})
	return s, err
}

// observe keeps the results of a decision.
func (s *side) observe(_ context.Context, _ *ratelimit.Request, _ ratelimit.Code, findings []decide.Finding) {
	s.results = s.results[:0]
	for i := range findings {
		f := &findings[i]
		r := result{matched: f.Rule, decided: f.Rule, refused: f.Status.Code == ratelimit.OverLimit}
		if f.Replaced {
			r.decided = nil
		}
		s.results = append(s.results, r)
	}
}

// decide decides a request and reports whether it is refused.
func (s *side) decide(ctx context.Context, r *ratelimit.Request) (refused bool, err error) {
	d, err := s.decider.Decide(ctx, r)
	return d.Code == ratelimit.OverLimit, err
}
