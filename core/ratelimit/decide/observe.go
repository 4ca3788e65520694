package decide

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

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
