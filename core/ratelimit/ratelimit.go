// Package ratelimit is the model of the rate limit service: what is asked, what
// a rule limits, and what is answered. It neither matches rules (ruleset does)
// nor counts (decide does).
package ratelimit

import "time"

// Domain is a namespace of rules. Its name is compared exactly.
type Domain string

// Entry is one key and value of a descriptor. Both are the caller's own words,
// compared exactly and apart from each other.
type Entry struct {
	Key   string
	Value string
}

// Descriptor is a path of entries, from the widest to the narrowest.
type Descriptor struct {
	Entries []Entry
	// Override takes the place of any rule, in a domain that has rules (contract L-16). It is nil
	// for none.
	Override *Limit
	// Hits is how many hits this descriptor adds. It is nil for as many as the request's; zero
	// looks without counting (contract L-19).
	Hits *uint64
	// GiveBack takes the hits off the counter instead of adding them.
	GiveBack bool
}

// Request asks whether hits on all its descriptors are within their limits.
type Request struct {
	Domain      Domain
	Descriptors []Descriptor
	// Hits is how many hits each descriptor adds that has no number of its own; zero counts as one
	// (contract L-19).
	Hits uint32
}

// MaxHits is the most hits that one descriptor may add (contract L-19).
const MaxHits = 1<<32 - 1

// Limit is how many requests a unit of time admits. Its zero value is no limit
// at all, not a limit of zero.
type Limit struct {
	RequestsPerUnit uint32
	Unit            Unit
}

// Code says whether something is within its limit.
type Code uint8

// The codes of the v3 rate limit protocol that this service answers.
const (
	OK Code = iota + 1
	OverLimit
)

// Unlimited is the LimitRemaining of a rule without a limit (contract L-6).
const Unlimited = 1<<32 - 1

// Status is the answer to one descriptor.
type Status struct {
	Code Code
	// Limit is what the descriptor was held against; zero for none: no rule, a
	// replaced one, an unlimited one.
	Limit Limit
	// Remaining is how many more hits the window admits.
	Remaining uint32
	// UntilReset is how long the window lasts yet, in whole seconds from 1 to
	// the unit; zero without a limit.
	UntilReset time.Duration
	// Rule is the rule behind Limit; nil for none, and for an override.
	Rule *Rule
	// Quota tells that the descriptor has a limit and is of quota mode.
	Quota bool
}

// Limited tells whether a limit stood behind the status.
func (s *Status) Limited() bool { return s.Limit.Unit != NoUnit }

// Decision is the answer to a request: over limit when any descriptor is, with
// the exceptions of quota and shadow mode.
type Decision struct {
	Code     Code
	Statuses []Status // one for each descriptor, in the request's order
}

// Closest returns the status that is closest to its limit: an over-limit one first, then the least
// remaining, the earlier of equals (contract L-28). It returns nil when no status has a limit.
func (d *Decision) Closest() *Status {
	var closest *Status
	for i := range d.Statuses {
		s := &d.Statuses[i]
		if s.Limited() && (closest == nil || closer(s, closest)) {
			closest = s
		}
	}
	return closest
}

func closer(s, than *Status) bool {
	if s.Code != than.Code {
		return s.Code == OverLimit
	}
	return s.Remaining < than.Remaining
}
