package decide

import (
	"math"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// answer makes the decision of the counts.
func (d *Decider) answer(w *work) ratelimit.Decision {
	held := w.outcome == counted && d.config.StopWhenOver && (w.blocked || w.anyOver())
	statuses := make([]ratelimit.Status, len(w.targets))
	var v verdict
	for i := range w.targets {
		t := &w.targets[i]
		d.status(w, t, held, &statuses[i])
		v.hear(t, statuses[i].Code)
	}
	return ratelimit.Decision{Code: d.overall(v), Statuses: statuses}
}

// verdict is what all statuses come to.
type verdict struct {
	over       bool // a descriptor that is not of quota mode
	quota      bool // there are descriptors of quota mode, ...
	quotaUnder bool // ... and one of them is within its limit
}

// hear adds a descriptor. An unlimited one has no quota. One without a rule, or with a rule that
// another one replaces, is of quota mode, and within its limit, only with QUOTA_MODE.
func (v *verdict) hear(t *target, c ratelimit.Code) {
	switch {
	case t.kind == unlimited:
	case t.quota:
		v.quota = true
		v.quotaUnder = v.quotaUnder || c != ratelimit.OverLimit
	case c == ratelimit.OverLimit:
		v.over = true
	}
}

// overall is over when any descriptor is (contract L-5), those of quota mode only when all of them
// are (contract L-15). Global shadow mode makes it OK (contract L-9).
func (d *Decider) overall(v verdict) ratelimit.Code {
	if !v.over && (!v.quota || v.quotaUnder) {
		return ratelimit.OK
	}
	if d.config.Shadow {
		d.stats.GlobalShadow.Add(1)
		return ratelimit.OK
	}
	return ratelimit.OverLimit
}

// anyOver tells whether the store has held back the hits that are not over.
func (w *work) anyOver() bool {
	for i := range w.hits {
		if w.after[i] > w.hits[i].Limit {
			return true
		}
	}
	return false
}

func (d *Decider) status(w *work, t *target, held bool, s *ratelimit.Status) {
	s.Code = ratelimit.OK
	switch t.kind {
	case unlimited:
		s.Remaining = ratelimit.Unlimited
		if !t.back {
			t.stats.Total.Add(t.addend)
			t.stats.Within.Add(t.addend)
		}
	case limited:
		d.limitedStatus(w, t, held, s)
	case free:
	}
}

func (d *Decider) limitedStatus(w *work, t *target, held bool, s *ratelimit.Status) {
	if w.outcome == open && !t.recalled {
		return
	}
	s.Limit, s.Rule, s.Quota = t.limit, t.rule, t.quota
	s.UntilReset = t.window.UntilReset(w.now)
	if t.recalled {
		t.recalledStatus(s)
		return
	}
	c := crossing{limit: uint64(t.limit.RequestsPerUnit), after: w.after[t.hit]}
	over := w.outcome == closed || c.over()
	if !over {
		s.Remaining = uint32(c.limit - c.after) //nolint:gosec // at most the limit
	} else if !t.shadow() {
		s.Code = ratelimit.OverLimit
	}
	if w.outcome == counted && t.stats != nil && !t.back && t.addend > 0 {
		c.hits, c.held = t.addend, held && !over
		c.near = near(c.limit, d.config.NearLimitRatio)
		c.tell(t)
	}
}

// recalledStatus is over, and all hits with it.
func (t *target) recalledStatus(s *ratelimit.Status) {
	if !t.shadow() {
		s.Code = ratelimit.OverLimit
	}
	if t.stats == nil {
		return
	}
	t.stats.Total.Add(t.addend)
	t.stats.Over.Add(t.addend)
	t.stats.OverLocal.Add(t.addend)
	if t.shadow() {
		t.stats.Shadow.Add(t.addend)
	}
}

// shadow reports whether an over-limit outcome is answered as OK (contract L-8).
func (t *target) shadow() bool { return t.rule != nil && t.rule.Shadow }

// near is the count above which hits are near the limit: floor(limit × ratio),
// where a product that misses a whole number by no more than the error of
// floating point is that number.
func near(limit uint64, ratio float64) uint64 {
	return uint64(math.Floor(float64(limit)*ratio + 1e-6))
}

// crossing is where a batch of hits took a counter.
type crossing struct {
	limit, near, after, hits uint64
	held                     bool // the store did not count the hits
}

// over reports whether the count is over the limit. A limit of zero blocks every request, also one
// that adds no hits (contract L-4).
func (c *crossing) over() bool { return c.after > c.limit || c.limit == 0 }

func (c *crossing) before() uint64 { return c.after - min(c.hits, c.after) }

// tell adds the hits to the rule's statistics (contract L-45).
func (c *crossing) tell(t *target) {
	t.stats.Total.Add(c.hits)
	switch {
	case c.held:
		t.stats.Within.Add(c.hits)
	case c.over():
		c.tellOver(t)
	default:
		t.stats.Within.Add(c.hits)
		if c.after > c.near {
			t.stats.Near.Add(c.after - max(c.near, c.before()))
		}
	}
}

// tellOver parts the hits of a batch into those over the limit and those that
// were near it.
func (c *crossing) tellOver(t *target) {
	before := c.before()
	over := c.after - max(c.limit, before)
	t.stats.Over.Add(over)
	if t.shadow() {
		t.stats.Shadow.Add(over)
	}
	if from := max(c.near, before); from < c.limit {
		t.stats.Near.Add(c.limit - from)
	}
}
