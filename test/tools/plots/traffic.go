package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
)

// The rule of all pictures, and the time that they show.
const (
	perMinute = 60
	burst     = 20
	duration  = 5 * time.Minute
	tick      = 100 * time.Millisecond
)

// phase is a time in which a caller makes calls at a steady rate.
type phase struct {
	from, to time.Duration
	rate     int // calls a second
}

// phases are the calls of the caller: a rush around the turn of a minute, then somewhat more than
// the limit for a while, a rest, and another rush.
var phases = [...]phase{
	{40 * time.Second, 80 * time.Second, 5},
	{80 * time.Second, 200 * time.Second, 2},
	{250 * time.Second, 290 * time.Second, 5},
}

// call is a call of the caller.
type call struct {
	at       time.Duration
	admitted bool
}

// simulateCalls returns what a service with a rule of the algorithm answers to the caller.
func simulateCalls(a ratelimit.Algorithm) ([]call, error) {
	limit := ruleset.Limit{
		Unit:      &ruleset.Text{Value: "minute"},
		Requests:  &ruleset.Requests{Count: perMinute},
		Algorithm: &ruleset.Text{Value: a.String()},
	}
	if a == ratelimit.TokenBucket {
		limit.Burst = &ruleset.Requests{Count: burst}
	}
	set, err := ruleset.Compile([]ruleset.Source{{
		Domain:      ruleset.Text{Value: "plots"},
		Descriptors: []ruleset.Descriptor{{Key: ruleset.Text{Value: "caller"}, Limit: &limit}},
	}}, ruleset.Options{})
	if err != nil {
		return nil, fmt.Errorf("compile the rule: %w", err)
	}
	clock := clocktest.NewManual(time.Unix(1_800_000_000, 0)) // the beginning of a minute
	service, err := decide.New(decide.Config{NearLimitRatio: 1}, decide.Ports{
		Rules:    func() *ruleset.Set { return set },
		Counters: memory.NewCounters(clock, memory.Config{MaxCounters: 1000}), Clock: clock,
	})
	if err != nil {
		return nil, fmt.Errorf("make a service: %w", err)
	}
	var calls []call
	for at := time.Duration(0); at < duration; at += tick {
		if isCall(at) {
			d, err := service.Decide(context.Background(), newRequest())
			if err != nil {
				return nil, fmt.Errorf("decide: %w", err)
			}
			calls = append(calls, call{at, d.Code == ratelimit.OK})
		}
		clock.Advance(tick)
	}
	return calls, nil
}

func newRequest() *ratelimit.Request {
	return &ratelimit.Request{
		Domain: "plots", Descriptors: []ratelimit.Descriptor{{Entries: []ratelimit.Entry{{Key: "caller", Value: "x"}}}},
	}
}

// isCall reports whether the caller makes a call at a time, which is a multiple of tick.
func isCall(at time.Duration) bool {
	for _, p := range phases {
		if p.from <= at && at < p.to {
			return (at-p.from)%(time.Second/time.Duration(p.rate)) == 0
		}
	}
	return false
}

// countIn returns the number of calls in the time from begin, which is included, to end, and how
// many of them were admitted.
func countIn(calls []call, begin, end time.Duration) (made, admitted int) {
	for _, c := range calls {
		if begin <= c.at && c.at < end {
			made++
			if c.admitted {
				admitted++
			}
		}
	}
	return made, admitted
}
