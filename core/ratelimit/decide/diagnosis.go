package decide

import (
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/explain"
)

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
// ratelimit.HotKeysFor, in the order of the configuration. Only what this process has decided
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
