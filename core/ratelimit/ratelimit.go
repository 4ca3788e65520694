// Package ratelimit is the model of the rate limit service: requests, rules and decisions. It
// neither matches rules (ruleset does) nor counts (decide does).
package ratelimit

import (
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Domain is a namespace of rules. Its name is compared exactly.
type Domain string

// Entry is one key and value of a descriptor. The caller chooses both; each is compared exactly and
// by itself.
type Entry struct {
	Key   string
	Value string
}

// Descriptor is a path of entries, from the widest to the narrowest.
type Descriptor struct {
	Entries []Entry
	// Override replaces the limit of the rule, in a domain that has rules (contract L-16); nil
	// without an override.
	Override *Limit
	// Hits is the number of hits of this descriptor; nil means the number of the request. Zero
	// reads the counter without counting (contract L-19).
	Hits *uint64
	// GiveBack subtracts the hits from the counter instead of adding them.
	GiveBack bool
}

// Request is the question whether hits on all its descriptors are within their limits.
type Request struct {
	Domain      Domain
	Descriptors []Descriptor
	// Hits is the number of hits of each descriptor that has no number of its own; zero counts as
	// one (contract L-19).
	Hits uint32
}

// MaxHits is the most hits that one descriptor may add (contract L-19).
const MaxHits = 1<<32 - 1

// Limit is the number of requests that are allowed in a unit of time. Its zero value means that
// there is no limit, not a limit of zero.
type Limit struct {
	RequestsPerUnit uint32
	Unit            Unit
	Algorithm       Algorithm
	// Burst is the number of hits that a token bucket lets in at once; zero for other algorithms.
	Burst uint32
}

// Code is the result for a descriptor or a request.
type Code uint8

// The codes of the v3 rate limit protocol that this service answers.
const (
	OK Code = iota + 1
	OverLimit
)

// Unlimited is the LimitRemaining of a rule without a limit (contract L-6).
const Unlimited = 1<<32 - 1

// Status is the result for one descriptor.
type Status struct {
	Code Code
	// Limit is the limit that applied; zero without a rule, and for a replaced or an unlimited
	// rule.
	Limit Limit
	// Remaining is how many more hits fit in the window.
	Remaining uint32
	// UntilReset is the rest of the window, in whole seconds from 1 to the unit; zero without a
	// limit.
	UntilReset time.Duration
	// Rule is the rule of Limit; nil without a limit, and for an override.
	Rule *Rule
	// Quota reports that the descriptor has a limit and is in quota mode.
	Quota bool
}

// HasLimit reports whether a limit applied.
func (s *Status) HasLimit() bool { return s.Limit.Unit != NoUnit }

// Decision is the answer to a request: over limit when a descriptor is, except for quota mode and
// shadow mode.
type Decision struct {
	Code     Code
	Statuses []Status // one for each descriptor, in the request's order
}

// Closest returns the status that is closest to its limit: an over-limit one first, then the one
// with the least remaining, then the earlier one (contract L-28). It returns nil when no status has
// a limit.
func (d *Decision) Closest() *Status {
	var closest *Status
	for i := range d.Statuses {
		s := &d.Statuses[i]
		if s.HasLimit() && (closest == nil || closerToLimit(s, closest)) {
			closest = s
		}
	}
	return closest
}

// closerToLimit reports whether s is closer to its limit than the other status.
func closerToLimit(s, than *Status) bool {
	if s.Code != than.Code {
		return s.Code == OverLimit
	}
	return s.Remaining < than.Remaining
}

// ParseEntries returns the entries of a descriptor that a person writes as "key=value,key=value". A
// value has no comma; it may be empty. It returns fault.Invalid for another form.
func ParseEntries(text string) ([]Entry, error) {
	parts := strings.Split(text, ",")
	entries := make([]Entry, len(parts))
	for i, part := range parts {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || key == "" {
			return nil, fault.New(fault.Invalid, strconv.Quote(part)+" is not of the form key=value")
		}
		entries[i] = Entry{Key: key, Value: value}
	}
	return entries, nil
}

// FormatEntries returns entries as "key=value,key=value".
func FormatEntries(entries []Entry) string {
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = e.Key + "=" + e.Value
	}
	return strings.Join(parts, ",")
}
