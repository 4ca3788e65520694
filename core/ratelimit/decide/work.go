package decide

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// outcome says what the statuses are made from.
type outcome uint8

const (
	fromCounts outcome = iota // the counts of the store
	allWithin                 // no counts: all descriptors are within their limits
	allOver                   // no counts: all descriptors with a limit are over it
)

// work is the state of one call. Later calls reuse its memory.
type work struct {
	request *ratelimit.Request
	now     time.Time
	outcome outcome
	// countNothing reports that no hit is counted, whatever the counts are (contract L-10).
	countNothing bool
	targets      []target // one for each descriptor
	hits         []counter.Hit
	after        []uint64
	admits       bool // a hit is of another algorithm than a fixed window; then the store writes admitted
	admitted     []counter.Admitted
	keys         []byte     // the keys of all hits, one after another
	ends         []int      // where each key ends
	leases       []lease.ID // of the hits; empty if none has a lease
	entries      []ratelimit.Entry
}

// target is what one descriptor is compared with: its limit and its counter.
type target struct {
	rule      *ratelimit.Rule // nil without a rule, and for an override
	limit     ratelimit.Limit // zero without a limit
	window    ratelimit.Window
	stats     *ratelimit.Hits // nil when no statistics are kept
	addend    uint64
	givesBack bool // the hits are given back
	quota     bool // quota mode
	// knownOver reports that the local cache has the counter over its limit; then there is no hit.
	knownOver bool
	left      time.Duration // how long a known counter is over its limit
	admits    bool          // the algorithm counts only what it admits
	hit       int           // the index of the hit
	kind      targetKind
}

// targetKind says how a target is limited.
type targetKind uint8

const (
	noRule    targetKind = iota // no rule, or a replaced rule: the status is OK
	unlimited                   // never sent to the store (contract L-6)
	limited
)

// These bounds limit the memory that one call leaves to later calls, in descriptors and in bytes of
// keys.
const (
	maxKeptItems    = 64
	maxKeptKeyBytes = 1 << 14
)

// takeWork returns the state of a new call, in memory of an earlier one if there is any.
func (d *Decider) takeWork(r *ratelimit.Request) *work {
	w, ok := d.works.Get().(*work)
	if !ok {
		w = &work{}
	}
	w.request, w.now, w.outcome, w.countNothing, w.admits = r, d.ports.Clock.Now(), fromCounts, false, false
	return w
}

// releaseWork clears the state of a call and keeps its memory for later calls.
func (d *Decider) releaseWork(w *work) {
	if cap(w.targets) > maxKeptItems || cap(w.entries) > maxKeptItems || cap(w.keys) > maxKeptKeyBytes {
		return
	}
	clear(w.targets)
	clear(w.hits)
	clear(w.entries)
	w.request = nil
	w.targets, w.hits, w.after, w.admitted = w.targets[:0], w.hits[:0], w.after[:0], w.admitted[:0]
	w.keys, w.ends, w.entries, w.leases = w.keys[:0], w.ends[:0], w.entries[:0], w.leases[:0]
	d.works.Put(w)
}

// findTargets finds the target of each descriptor.
func (d *Decider) findTargets(w *work, set *ruleset.Set) {
	replacing, found := false, false
	for i := range w.request.Descriptors {
		t := d.findTarget(w, &w.request.Descriptors[i], set)
		replacing = replacing || t.rule != nil && len(t.rule.Replaces) > 0
		found = found || t.kind != noRule
		w.targets = append(w.targets, t)
	}
	if !found && !set.HasDomain(w.request.Domain) {
		d.countUnknownDomain(w)
	}
	if replacing {
		w.applyReplaces(d.config.Quota)
	}
}

// findTarget returns the target of one descriptor.
func (d *Decider) findTarget(w *work, wanted *ratelimit.Descriptor, set *ruleset.Set) target {
	domain := w.request.Domain
	t := target{addend: addendOf(w.request, wanted), givesBack: wanted.GiveBack, quota: d.config.Quota}
	if wanted.Override != nil {
		if set.HasDomain(domain) {
			t.kind, t.limit = limited, *wanted.Override
			t.stats = d.series.hitsOfOverride(domain, wanted.Entries, w.now)
		}
		return t
	}
	t.rule = set.Match(domain, wanted.Entries)
	if t.rule == nil {
		return t
	}
	t.kind, t.limit, t.quota = limited, t.rule.Limit, t.rule.Quota
	if t.rule.Unlimited {
		t.kind = unlimited
	}
	t.stats = d.series.hitsOfRule(t.rule, wanted.Entries, w.now)
	return t
}

// addendOf returns how many hits a descriptor adds (contract L-19).
func addendOf(r *ratelimit.Request, d *ratelimit.Descriptor) uint64 {
	if d.Hits != nil {
		return *d.Hits
	}
	return uint64(max(r.Hits, 1))
}

// applyReplaces removes the limit from each target whose limit is replaced by another one
// (contract L-7). A replaced limit still replaces others, and an unlimited one is never replaced.
// No rule names itself, so one set of all the names is enough.
//
// quota is the quota mode of the targets without a limit.
func (w *work) applyReplaces(quota bool) {
	replaced := map[ratelimit.Name]bool{}
	for i := range w.targets {
		if rule := w.targets[i].rule; rule != nil {
			for _, name := range rule.Replaces {
				replaced[name] = true
			}
		}
	}
	for i := range w.targets {
		if t := &w.targets[i]; t.kind == limited && t.rule != nil && replaced[t.rule.Name] {
			t.kind, t.limit, t.quota = noRule, ratelimit.Limit{}, quota
		}
	}
}

// buildHits makes the batch of hits for the store. All keys are parts of one string.
func (d *Decider) buildHits(w *work) {
	for i := range w.targets {
		if t := &w.targets[i]; t.kind == limited {
			d.buildHit(w, t, &w.request.Descriptors[i])
		}
	}
	keys, from := string(w.keys), 0
	for i, end := range w.ends {
		h := &w.hits[i]
		h.Key = keys[from:end]
		h.TTL = h.Window + ratelimit.ClockSkew + d.keyJitter(h.Key)
		from = end
	}
}

// buildHit appends the hit of one target, without its key, and the key to the keys of the call.
func (d *Decider) buildHit(w *work, t *target, wanted *ratelimit.Descriptor) {
	t.window = ratelimit.WindowAt(w.now, t.limit.Unit.Window())
	t.hit = len(w.hits)
	// A limit of zero is always over, whatever the algorithm (contract L-53): it is counted as usual.
	t.admits = t.limit.Algorithm != ratelimit.FixedWindow && t.limit.RequestsPerUnit > 0
	counted := ratelimit.Counter{
		Prefix:  d.config.Prefix,
		Domain:  w.request.Domain,
		Entries: w.counterEntries(t.rule, wanted.Entries),
		Window:  t.window,
	}
	if t.admits {
		w.admits, counted.Limit = true, t.limit
	}
	w.keys = ratelimit.AppendKey(w.keys, counted)
	w.ends = append(w.ends, len(w.keys))
	w.after = append(w.after, 0)
	hit := counter.Hit{
		Addend: int64(t.addend), //nolint:gosec // at most MaxHits
		Limit:  uint64(t.limit.RequestsPerUnit),
		Window: t.window.Length,
		Left:   t.window.End().Sub(w.now),
	}
	if t.givesBack {
		hit.Addend = -hit.Addend
	}
	if t.admits {
		hit.Algorithm, hit.Burst = t.limit.Algorithm, uint64(t.limit.Burst)
	}
	w.hits = append(w.hits, hit)
}

// counterEntries returns the entries that name the counter: those of the request, with the pattern
// in place of each value that shares a counter.
func (w *work) counterEntries(rule *ratelimit.Rule, entries []ratelimit.Entry) []ratelimit.Entry {
	if rule == nil || rule.Shared == nil {
		return entries
	}
	w.entries = rule.AppendCounterEntries(w.entries[:0], entries)
	return w.entries
}

// keyJitter returns the time that is added to the life of a counter, so that not all counters end
// at once. It is the same for the same key (FNV-1a).
func (d *Decider) keyJitter(key string) time.Duration {
	seconds := uint64(d.config.JitterMax / time.Second)
	if seconds == 0 {
		return 0
	}
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return time.Duration(h%(seconds+1)) * time.Second //nolint:gosec // at most JitterMax
}
