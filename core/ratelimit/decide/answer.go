package decide

import (
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// makeDecision returns the decision that follows from the counts, and updates the statistics.
func (d *Decider) makeDecision(w *work) ratelimit.Decision {
	withheld := w.outcome == fromCounts && d.config.StopWhenOver && (w.countNothing || w.anyHitOver())
	statuses := make([]ratelimit.Status, len(w.lines))
	var sum codeSummary
	for i := range w.lines {
		l := &w.lines[i]
		d.fillStatus(w, l, withheld, &statuses[i])
		if l.kind == limited && l.rule != nil && !l.givesBack && l.addend > 0 {
			d.countKey(w, i, statuses[i].Code)
		}
		sum.addStatus(l, statuses[i].Code)
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
func (s *codeSummary) addStatus(l *line, c ratelimit.Code) {
	switch {
	case l.kind == unlimited:
	case l.quota:
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

// anyHitOver reports whether the store refused a hit or counted it over its limit. With
// StopWhenOver it then counted no other hit.
func (w *work) anyHitOver() bool {
	for i := range w.lines {
		if l := &w.lines[i]; l.isCounted() && l.result.IsOver(&l.hit) {
			return true
		}
	}
	return false
}

// fillStatus sets the status of one line. With withheld, the store counted no hits within their
// limits.
func (d *Decider) fillStatus(w *work, l *line, withheld bool, s *ratelimit.Status) {
	s.Code = ratelimit.OK
	switch {
	case l.kind == noRule, l.kind == limited && w.outcome == allWithin && !l.knownOver:
		return
	case l.kind == unlimited:
		s.Remaining = ratelimit.Unlimited
		if !l.givesBack {
			l.stats.Within.Add(l.addend)
		}
		return
	}
	s.Limit, s.Rule, s.Quota = l.limit, l.rule, l.quota
	s.UntilReset = l.window.UntilReset(w.now)
	counted := w.outcome == fromCounts || l.knownOver
	// A limit of zero blocks every request, including one that adds no hits (contract L-4).
	over := !counted || l.knownOver || l.result.IsOver(&l.hit) || l.limit.RequestsPerUnit == 0
	if over && !l.inShadowMode() {
		s.Code = ratelimit.OverLimit
	}
	if !counted {
		return
	}
	l.fillRest(over, s)
	if l.stats != nil && !l.givesBack && l.addend > 0 {
		d.addToStats(l, over, withheld)
	}
}

// fillRest sets what is left of the limit, and the reset of algorithms that admit.
func (l *line) fillRest(over bool, s *ratelimit.Status) {
	switch v := &l.result.Verdict; {
	case l.admits() && l.knownOver:
		s.UntilReset = wholeSeconds(l.left)
	case l.admits():
		s.UntilReset = wholeSeconds(v.Reset)
		s.Remaining = uint32(min(v.Remaining, math.MaxUint32)) //nolint:gosec // it fits
	case !over:
		s.Remaining = uint32(l.hit.Limit - l.result.Count) //nolint:gosec // at most the limit
	}
}

// wholeSeconds returns a duration in whole seconds, rounded up, at least one.
func wholeSeconds(d time.Duration) time.Duration {
	if d > math.MaxInt64-time.Second {
		return d.Truncate(time.Second)
	}
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}

// inShadowMode reports whether an over-limit outcome is answered as OK (contract L-8).
func (l *line) inShadowMode() bool { return l.rule != nil && l.rule.Shadow }

// addToStats adds the hits to the statistics of the rule (contract L-45). Of a fixed window, those
// hits are over the limit, or near it, that are counted above it or above the ratio of it. Hits
// that an algorithm refuses are all over the limit; near it are those that were admitted above the
// ratio of the limit, or of the burst.
func (d *Decider) addToStats(l *line, over, withheld bool) {
	if !over {
		l.stats.Within.Add(l.addend)
		if !withheld {
			d.addNear(l)
		}
		return
	}
	l.stats.Refused.Add(l.addend)
	beyond := l.addend
	if l.knownOver {
		l.stats.OverLocal.Add(l.addend)
	} else if !l.admits() {
		beyond = l.result.Count - max(l.hit.Limit, l.countBefore())
		d.addNear(l)
	}
	l.stats.Over.Add(beyond)
	if l.inShadowMode() {
		l.stats.Shadow.Add(beyond)
	}
}

// addNear adds the hits near the limit: those that were counted above the ratio of the limit, up to
// the limit.
func (d *Decider) addNear(l *line) {
	bound := l.bound()
	// A product that is less than a whole number by no more than the floating-point error counts as
	// that number.
	ratio := uint64(math.Floor(float64(bound)*d.config.NearLimitRatio + 1e-6))
	if from, to := max(ratio, l.countBefore()), min(l.count(), bound); from < to {
		l.stats.Near.Add(to - from)
	}
}

// countBefore returns the count before the hits.
func (l *line) countBefore() uint64 { return l.count() - min(l.addend, l.count()) }
