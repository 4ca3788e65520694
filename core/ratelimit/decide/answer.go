package decide

import (
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// makeDecision returns the decision that follows from the counts, and updates the statistics.
func (d *Decider) makeDecision(w *work) ratelimit.Decision {
	withheld := w.outcome == fromCounts && d.config.StopWhenOver && (w.countNothing || w.anyHitOver())
	statuses := make([]ratelimit.Status, len(w.targets))
	var sum codeSummary
	for i := range w.targets {
		t := &w.targets[i]
		d.fillStatus(w, t, withheld, &statuses[i])
		if t.kind == limited && t.rule != nil && !t.givesBack && t.addend > 0 {
			d.countKey(w, i, statuses[i].Code)
		}
		sum.addStatus(t, statuses[i].Code)
	}
	return ratelimit.Decision{Code: d.overallCode(sum), Statuses: statuses}
}

// codeSummary collects the codes of all statuses.
type codeSummary struct {
	anyOver        bool // a descriptor outside quota mode is over its limit
	anyQuota       bool // a descriptor is in quota mode
	anyQuotaWithin bool // a descriptor in quota mode is within its limit
}

// addStatus adds the code of one descriptor. An unlimited descriptor has no quota. A descriptor
// without a rule, or with a replaced rule, is in quota mode, and within its limit, only with
// Config.Quota.
func (s *codeSummary) addStatus(t *target, c ratelimit.Code) {
	switch {
	case t.kind == unlimited:
	case t.quota:
		s.anyQuota = true
		s.anyQuotaWithin = s.anyQuotaWithin || c != ratelimit.OverLimit
	case c == ratelimit.OverLimit:
		s.anyOver = true
	}
}

// overallCode returns OverLimit when a descriptor is over its limit (contract L-5); descriptors in
// quota mode count only when all of them are over (contract L-15). In global shadow mode it returns
// OK (contract L-9).
func (d *Decider) overallCode(s codeSummary) ratelimit.Code {
	if !s.anyOver && (!s.anyQuota || s.anyQuotaWithin) {
		return ratelimit.OK
	}
	if d.config.Shadow {
		d.stats.GlobalShadow.Add(1)
		return ratelimit.OK
	}
	return ratelimit.OverLimit
}

// anyHitOver reports whether the store counted a hit over its limit. With StopWhenOver it then
// counted no other hit.
func (w *work) anyHitOver() bool {
	for i := range w.hits {
		if w.hits[i].Algorithm != ratelimit.FixedWindow {
			if !w.admitted[i].Verdict.Admitted {
				return true
			}
		} else if w.after[i] > w.hits[i].Limit {
			return true
		}
	}
	return false
}

// fillStatus sets the status of one descriptor. With withheld, the store counted no hits within
// their limits.
func (d *Decider) fillStatus(w *work, t *target, withheld bool, s *ratelimit.Status) {
	s.Code = ratelimit.OK
	switch t.kind {
	case unlimited:
		s.Remaining = ratelimit.Unlimited
		if !t.givesBack {
			t.stats.Within.Add(t.addend)
		}
	case limited:
		d.fillLimitedStatus(w, t, withheld, s)
	case noRule:
	}
}

// fillLimitedStatus sets the status of a descriptor that has a limit.
func (d *Decider) fillLimitedStatus(w *work, t *target, withheld bool, s *ratelimit.Status) {
	if w.outcome == allWithin && !t.knownOver {
		return
	}
	s.Limit, s.Rule, s.Quota = t.limit, t.rule, t.quota
	s.UntilReset = t.window.UntilReset(w.now)
	if t.knownOver {
		t.fillKnownOverStatus(s)
		return
	}
	if t.admits && w.outcome == fromCounts {
		d.fillAdmittedStatus(w, t, withheld, s)
		return
	}
	c := countChange{limit: uint64(t.limit.RequestsPerUnit), after: w.after[t.hit]}
	over := w.outcome == allOver || c.isOver()
	if !over {
		s.Remaining = uint32(c.limit - c.after) //nolint:gosec // at most the limit
	} else if !t.inShadowMode() {
		s.Code = ratelimit.OverLimit
	}
	if w.outcome == fromCounts && t.stats != nil && !t.givesBack && t.addend > 0 {
		c.hits, c.notCounted = t.addend, withheld && !over
		c.nearLimit = nearLimitCount(c.limit, d.config.NearLimitRatio)
		c.addToStats(t)
	}
}

// fillAdmittedStatus sets the status of a descriptor whose algorithm counts only what it admits. Hits that
// are refused are over the limit; near it are those that were admitted above the ratio of the limit, or
// of the burst (contract L-45).
func (d *Decider) fillAdmittedStatus(w *work, t *target, withheld bool, s *ratelimit.Status) {
	v := &w.admitted[t.hit].Verdict
	s.Remaining = uint32(min(v.Remaining, math.MaxUint32)) //nolint:gosec // it fits
	s.UntilReset = wholeSeconds(v.Reset)
	if !v.Admitted && !t.inShadowMode() {
		s.Code = ratelimit.OverLimit
	}
	if t.stats == nil || t.givesBack || t.addend == 0 {
		return
	}
	if !v.Admitted {
		t.stats.Refused.Add(t.addend)
		t.stats.Over.Add(t.addend)
		if t.inShadowMode() {
			t.stats.Shadow.Add(t.addend)
		}
		return
	}
	bound := uint64(t.limit.Bound())
	c := countChange{limit: bound, nearLimit: nearLimitCount(bound, d.config.NearLimitRatio), after: w.after[t.hit], hits: t.addend, notCounted: withheld}
	c.addToStats(t)
}

// wholeSeconds returns a duration in whole seconds, rounded up, at least one.
func wholeSeconds(d time.Duration) time.Duration {
	if d > math.MaxInt64-time.Second {
		return d.Truncate(time.Second)
	}
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}

// fillKnownOverStatus sets the status of a counter that the local cache has over its limit: all
// hits are over it.
func (t *target) fillKnownOverStatus(s *ratelimit.Status) {
	if !t.inShadowMode() {
		s.Code = ratelimit.OverLimit
	}
	if t.admits {
		s.UntilReset = wholeSeconds(t.left)
	}
	if t.stats == nil {
		return
	}
	t.stats.Refused.Add(t.addend)
	t.stats.Over.Add(t.addend)
	t.stats.OverLocal.Add(t.addend)
	if t.inShadowMode() {
		t.stats.Shadow.Add(t.addend)
	}
}

// inShadowMode reports whether an over-limit outcome is answered as OK (contract L-8).
func (t *target) inShadowMode() bool { return t.rule != nil && t.rule.Shadow }

// nearLimitCount returns the count above which hits are near the limit: floor(limit × ratio). A
// product that is less than a whole number by no more than the floating-point error counts as that
// number.
func nearLimitCount(limit uint64, ratio float64) uint64 {
	return uint64(math.Floor(float64(limit)*ratio + 1e-6))
}

// countChange is the change of one counter by a batch of hits.
type countChange struct {
	limit, nearLimit, after, hits uint64
	notCounted                    bool // the store did not count the hits
}

// isOver reports whether the count is over the limit. A limit of zero blocks every request,
// including one that adds no hits (contract L-4).
func (c *countChange) isOver() bool { return c.after > c.limit || c.limit == 0 }

// countBefore returns the count before the batch.
func (c *countChange) countBefore() uint64 { return c.after - min(c.hits, c.after) }

// addToStats adds the hits to the rule's statistics (contract L-45).
func (c *countChange) addToStats(t *target) {
	switch {
	case c.notCounted:
		t.stats.Within.Add(c.hits)
	case c.isOver():
		t.stats.Refused.Add(c.hits)
		c.addOverToStats(t)
	default:
		t.stats.Within.Add(c.hits)
		if c.after > c.nearLimit {
			t.stats.Near.Add(c.after - max(c.nearLimit, c.countBefore()))
		}
	}
}

// addOverToStats divides the hits of a batch into those over the limit and those near it.
func (c *countChange) addOverToStats(t *target) {
	before := c.countBefore()
	over := c.after - max(c.limit, before)
	t.stats.Over.Add(over)
	if t.inShadowMode() {
		t.stats.Shadow.Add(over)
	}
	if from := max(c.nearLimit, before); from < c.limit {
		t.stats.Near.Add(c.limit - from)
	}
}
