// Package explain says which rule a rate limit request would be decided by, and why. It counts
// nothing.
package explain

import (
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Options are what the keys of counters depend on.
type Options struct {
	Prefix string // of every key
	Now    time.Time
}

// Result says what would decide about one descriptor.
type Result struct {
	// Rule is nil without a rule, and for an override.
	Rule *ratelimit.Rule
	// ReplacedBy is the name of the rule that replaces this one in the request; empty without one.
	ReplacedBy ratelimit.Name
	Tried      []ruleset.Tried
	More       bool // there are more than Tried has
	// Why is a phrase that says why there is no rule; empty with one.
	Why string
	// CounterKey is the key of the counter now, as the store has it; empty if nothing would be
	// counted.
	CounterKey string
}

// Explain returns a result for each descriptor of a request, in its order. By the rules of a
// decision, a rule that is replaced by one of another descriptor is not counted (contract L-7), and
// neither is an unlimited one (contract L-6).
func Explain(set *ruleset.Set, r *ratelimit.Request, o Options) []Result {
	results := make([]Result, len(r.Descriptors))
	replacing := map[ratelimit.Name]ratelimit.Name{}
	for i := range r.Descriptors {
		results[i] = explainOne(set, r, i)
		if rule := results[i].Rule; rule != nil {
			for _, name := range rule.Replaces {
				replacing[name] = rule.Name
			}
		}
	}
	for i := range results {
		d, result := &r.Descriptors[i], &results[i]
		limit := ratelimit.Limit{}
		switch rule := result.Rule; {
		case rule == nil && d.Override != nil && set.HasDomain(r.Domain):
			limit = *d.Override
		case rule == nil || rule.Unlimited:
			continue
		default:
			by, replaced := replacing[rule.Name]
			if replaced {
				result.ReplacedBy = by
				continue
			}
			limit = rule.Limit
		}
		result.CounterKey = string(ratelimit.AppendKey(nil, ratelimit.Counter{
			Prefix: o.Prefix, Domain: r.Domain,
			Entries: result.Rule.AppendCounterEntries(nil, d.Entries),
			Window:  ratelimit.WindowAt(o.Now, limit.Unit.Window()), Limit: countedLimit(limit),
		}))
	}
	return results
}

// explainOne finds the rule of one descriptor.
func explainOne(set *ruleset.Set, r *ratelimit.Request, i int) Result {
	d := &r.Descriptors[i]
	if d.Override != nil && set.HasDomain(r.Domain) {
		return Result{Why: "the request has a limit for this descriptor"}
	}
	var result Result
	result.Tried, result.More = set.Tried(r.Domain, d.Entries)
	if d.Override == nil {
		result.Rule = set.Match(r.Domain, d.Entries)
	}
	if result.Rule == nil {
		result.Why = set.Explain(r.Domain, d.Entries).Phrase(d.Entries, strconv.Quote)
	}
	return result
}

// countedLimit returns the limit that the key of a counter depends on: that of another algorithm
// than a fixed window, unless it is zero, as decisions do.
func countedLimit(l ratelimit.Limit) ratelimit.Limit {
	if l.RequestsPerUnit == 0 {
		return ratelimit.Limit{}
	}
	return l
}
