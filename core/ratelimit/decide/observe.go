package decide

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Observer is told why calls are answered as they are. It is safe for concurrent use.
type Observer interface {
	// Decided is called with each decision before it is answered, and must keep nothing of what it
	// is given. The findings are in the order of the request's descriptors.
	Decided(ctx context.Context, r *ratelimit.Request, code ratelimit.Code, findings []Finding)
}

// Finding is what one descriptor was held against, and what became of it.
type Finding struct {
	Status ratelimit.Status
	Rule   *ratelimit.Rule // also one that another rule replaces; nil for none, and for an override
	Miss   ruleset.Miss    // why there is no rule
	// Replaced reports that a rule of another descriptor took the place of Rule.
	Replaced bool
	Source   Source
	Key      string // of the counter; empty unless Source is FromStore
	Count    uint64 // of the counter, after the call; 0 unless Source is FromStore
	Hits     uint64 // that the descriptor brought
}

// Source is what a status was made of.
type Source uint8

// The sources.
const (
	FromRule        Source = iota // no counter was needed
	FromStore                     // the counter store, or the one that counts in its place
	FromMemory                    // the local cache of counters over their limits
	FromFailureMode               // the store failed, and the failure mode says what is answered
)

// observe tells the observer of a decision. It is apart from Decide so that the decision is copied to
// the heap only where there is an observer.
func (d *Decider) observe(ctx context.Context, w *work, set *ruleset.Set, made ratelimit.Decision) {
	findings := make([]Finding, len(w.targets))
	for i := range w.targets {
		findings[i] = w.finding(&w.targets[i], &made.Statuses[i])
		if wanted := &w.request.Descriptors[i]; wanted.Override == nil || !set.Has(w.request.Domain) {
			findings[i].Miss = set.Explain(w.request.Domain, wanted.Entries)
		}
	}
	d.ports.Observer.Decided(ctx, w.request, made.Code, findings)
}

func (w *work) finding(t *target, s *ratelimit.Status) Finding {
	f := Finding{Status: *s, Rule: t.rule, Replaced: t.rule != nil && t.kind == free, Hits: t.addend}
	switch {
	case t.kind != limited:
	case t.recalled:
		f.Source = FromMemory
	case w.outcome != counted:
		f.Source = FromFailureMode
	default:
		f.Source, f.Key, f.Count = FromStore, w.hits[t.hit].Key, w.after[t.hit]
	}
	return f
}
