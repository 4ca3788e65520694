package decide

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/explain"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Stats are counts of the service itself since its start (contract L-46).
type Stats struct {
	StoreErrors    atomic.Uint64 // calls on which the counter store failed
	ServiceErrors  atomic.Uint64 // calls refused because of the request, or because no rules are loaded
	GlobalShadow   atomic.Uint64 // over-limit results that shadow mode let pass
	FailedOpen     atomic.Uint64 // store failures that were answered as OK
	FailedClosed   atomic.Uint64 // store failures that were answered as over limit
	CountedLocally atomic.Uint64 // store failures that were answered from the counters of this process
	// OtherDomains are the descriptors in unknown domains that have no count by name.
	OtherDomains atomic.Uint64
}

// MaxUnknownDomains is the number of unknown domains that are counted by name. Callers choose these
// names, so there is a limit; a name without a request for an hour is removed when others need its
// place.
const MaxUnknownDomains = 100

// Series are the statistics of one value, or path of values, of requests: for rules with
// detailed_metric or value_to_metric, and for overrides.
type Series struct {
	Domain ratelimit.Domain
	Path   string
	Levels []string
	Hits   *ratelimit.Hits

	// lastUsed is the minute of the last request.
	lastUsed atomic.Int64
}

// Series returns an iterator over the series by value, in no order.
func (d *Decider) Series() iter.Seq[*Series] { return d.series.allSeries() }

// UnknownDomains returns an iterator over the domains of requests that the configuration does not
// have, each with its number of descriptors, in no order. Stats.OtherDomains has the rest.
func (d *Decider) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(yield func(ratelimit.Domain, uint64) bool) {
		for s := range d.unknown.allSeries() {
			if !yield(s.Domain, s.Hits.Total()) {
				return
			}
		}
	}
}

// countUnknownDomain counts the descriptors of a request in a domain that the configuration does
// not have.
func (d *Decider) countUnknownDomain(w *work) {
	n := uint64(len(w.request.Descriptors))
	var key [256]byte
	name := newSeriesName(w.request.Domain, key[:0], nil)
	if hits := d.unknown.findOrAdd(&name, w.now); hits != nil {
		hits.Within.Add(n)
		return
	}
	d.stats.OtherDomains.Add(n)
}

// Observe is called with each decision and the reasons for it before it is returned. It must not
// keep its arguments, and must be safe for concurrent use. The findings are in the order of the
// request's descriptors.
type Observe func(ctx context.Context, r *ratelimit.Request, code ratelimit.Code, findings []Finding)

// Finding is what one descriptor was compared with, and the result.
type Finding struct {
	Status ratelimit.Status
	Rule   *ratelimit.Rule // the matched rule, even if it is replaced; nil without a rule, and for an override
	Miss   ruleset.Miss    // why there is no rule
	// Replaced reports that another rule replaced Rule.
	Replaced bool
	Source   Source
	Key      string // of the counter; empty unless Source is FromStore
	Count    uint64 // of the counter, after the call; 0 unless Source is FromStore
	Hits     uint64 // that the descriptor added
}

// Source says what a status was made from.
type Source uint8

// The sources.
const (
	FromRule        Source = iota // no counter was needed
	FromStore                     // the counter store, or the local store in its place
	FromMemory                    // the local cache of counters over their limits
	FromFailureMode               // the store failed, and the failure mode decided
)

// notifyObserver passes the decision to the observer. It is separate from Decide so that the
// decision is copied to the heap only when there is an observer.
func (d *Decider) notifyObserver(ctx context.Context, w *work, set *ruleset.Set, decision ratelimit.Decision) {
	findings := make([]Finding, len(w.lines))
	for i := range w.lines {
		findings[i] = w.findingFor(&w.lines[i], &decision.Statuses[i])
		if wanted := &w.request.Descriptors[i]; wanted.Override == nil || !set.HasDomain(w.request.Domain) {
			findings[i].Miss = set.Explain(w.request.Domain, wanted.Entries)
		}
	}
	d.ports.Observe(ctx, w.request, decision.Code, findings)
}

// findingFor returns the finding of one line and its status.
func (w *work) findingFor(l *line, s *ratelimit.Status) Finding {
	f := Finding{Status: *s, Rule: l.rule, Replaced: l.rule != nil && l.kind == noRule, Hits: l.addend}
	switch {
	case l.kind != limited:
	case l.knownOver:
		f.Source = FromMemory
	case w.outcome != fromCounts:
		f.Source = FromFailureMode
	default:
		f.Source, f.Key, f.Count = FromStore, l.hit.Key, l.count()
	}
	return f
}

// countKey counts the hits of a descriptor that has a limit, for HotKeys.
func (d *Decider) countKey(w *work, descriptor int, c ratelimit.Code) {
	l := &w.lines[descriptor]
	weight := l.rule.Hits.Keys.Weight(w.now)
	if weight == 0 {
		return
	}
	l.rule.Hits.Keys.Count(ratelimit.KeyHits{
		Entries: w.counterEntries(l.rule, w.request.Descriptors[descriptor].Entries),
		Hits:    l.addend, Weight: weight, Refused: c == ratelimit.OverLimit, Now: w.now,
	}, &d.keys)
}

// RuleKeys are the keys of a rule that have the most hits.
type RuleKeys struct {
	Rule *ratelimit.Rule
	Keys []ratelimit.HotKey // the most hits first; never empty
}

// HotKeys returns the keys with the most hits of each rule in force, over the last
// five minutes, in the order of the configuration. Only what this process has decided
// counts.
func (d *Decider) HotKeys() []RuleKeys {
	set := d.ports.Rules()
	if set == nil {
		return nil
	}
	var list []RuleKeys
	now := d.ports.Clock.Now()
	for r := range set.Rules() {
		if keys := r.Hits.Keys.Top(&d.keys, now); len(keys) > 0 {
			list = append(list, RuleKeys{r, keys})
		}
	}
	return list
}

// Explain says by which rules in force a request would be decided. It counts nothing. Its errors
// are those of Decide, except for those of the store.
func (d *Decider) Explain(r *ratelimit.Request) ([]explain.Result, error) {
	set, err := d.rulesFor(r)
	if err != nil {
		return nil, err
	}
	return explain.Explain(set, r, explain.Options{Prefix: d.config.Prefix, Now: d.ports.Clock.Now()}), nil
}
