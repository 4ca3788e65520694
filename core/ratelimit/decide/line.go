package decide

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// work is the state of one call. Later calls reuse its memory.
type work struct {
	request *ratelimit.Request
	now     time.Time
	outcome outcome
	// countNothing reports that no hit is counted, whatever the counts are (contract L-10).
	countNothing bool
	lines        []line // one for each descriptor

	keys    []byte // of all counters, one after another
	entries []ratelimit.Entry
	hits    []counter.Hit // that a store counts
	leases  []lease.ID    // of the hits, if any has one
	results []counter.Result
}

// outcome says what the statuses are made from.
type outcome uint8

const (
	fromCounts outcome = iota // the counts of the store
	allWithin                 // no counts: all descriptors are within their limits
	allOver                   // no counts: all descriptors with a limit are over it
)

// line is one descriptor on its way to a status: what limits it, its hit on the counter, and the
// result.
type line struct {
	kind      lineKind
	rule      *ratelimit.Rule // nil without a rule, and for an override
	limit     ratelimit.Limit // zero without a limit
	stats     *ratelimit.Hits // nil when no statistics are kept
	addend    uint64
	givesBack bool // the hits are given back
	quota     bool // quota mode

	window ratelimit.Window
	keyEnd int // in the keys of the call
	hit    counter.Hit
	// knownOver reports that the local cache has the counter over its limit; then there is no
	// result.
	knownOver bool
	left      time.Duration // how long a known counter is over its limit
	result    counter.Result
}

// lineKind says how a descriptor is limited.
type lineKind uint8

const (
	noRule    lineKind = iota // no rule, or a replaced rule: the status is OK
	unlimited                 // never sent to the store (contract L-6)
	limited
)

// admits reports whether the algorithm counts only what it admits.
func (l *line) admits() bool { return l.hit.Algorithm != ratelimit.FixedWindow }

// isCounted reports whether the store counts the hit.
func (l *line) isCounted() bool { return l.kind == limited && !l.knownOver }

// bound returns the greatest number of hits at once.
func (l *line) bound() uint64 {
	if l.admits() {
		return uint64(l.limit.Bound())
	}
	return l.hit.Limit
}

// count returns the count after the hit; of an algorithm that admits, the hits that do not fit any
// more.
func (l *line) count() uint64 {
	if !l.admits() {
		return l.result.Count
	}
	return l.bound() - min(l.result.Verdict.Remaining, l.bound())
}

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
	w.request, w.now, w.outcome, w.countNothing = r, d.ports.Clock.Now(), fromCounts, false
	return w
}

// releaseWork clears the state of a call and keeps its memory for later calls.
func (d *Decider) releaseWork(w *work) {
	if cap(w.lines) > maxKeptItems || cap(w.entries) > maxKeptItems || cap(w.keys) > maxKeptKeyBytes {
		return
	}
	clear(w.lines)
	clear(w.hits)
	clear(w.entries)
	w.request = nil
	w.lines, w.hits, w.keys, w.entries = w.lines[:0], w.hits[:0], w.keys[:0], w.entries[:0]
	d.works.Put(w)
}

// findLines finds what limits each descriptor.
func (d *Decider) findLines(w *work, set *ruleset.Set) {
	replacing, found := false, false
	n := len(w.request.Descriptors)
	w.lines = slices.Grow(w.lines, n)[:n]
	for i := range w.lines {
		l := &w.lines[i]
		d.findLimit(w, l, &w.request.Descriptors[i], set)
		replacing = replacing || l.rule != nil && len(l.rule.Replaces) > 0
		found = found || l.kind != noRule
	}
	if !found && !set.HasDomain(w.request.Domain) {
		d.countUnknownDomain(w)
	}
	if replacing {
		w.applyReplaces(d.config.Quota)
	}
}

// findLimit finds what limits one descriptor.
func (d *Decider) findLimit(w *work, l *line, wanted *ratelimit.Descriptor, set *ruleset.Set) {
	domain := w.request.Domain
	l.addend, l.givesBack, l.quota = uint64(max(w.request.Hits, 1)), wanted.GiveBack, d.config.Quota
	if wanted.Hits != nil {
		l.addend = *wanted.Hits // contract L-19
	}
	if wanted.Override != nil {
		if set.HasDomain(domain) {
			l.kind, l.limit = limited, *wanted.Override
			l.stats = d.series.hitsOfOverride(domain, wanted.Entries, w.now)
		}
		return
	}
	l.rule = set.Match(domain, wanted.Entries)
	if l.rule == nil {
		return
	}
	l.kind, l.limit, l.quota = limited, l.rule.Limit, l.rule.Quota
	if l.rule.Unlimited {
		l.kind = unlimited
	}
	l.stats = d.series.hitsOfRule(l.rule, wanted.Entries, w.now)
}

// applyReplaces removes the limit from each line whose limit is replaced by another one
// (contract L-7). A replaced limit still replaces others, and an unlimited one is never replaced.
// No rule names itself, so one set of all the names is enough.
//
// quota is the quota mode of the lines without a limit.
func (w *work) applyReplaces(quota bool) {
	replaced := map[ratelimit.Name]bool{}
	for i := range w.lines {
		if rule := w.lines[i].rule; rule != nil {
			for _, name := range rule.Replaces {
				replaced[name] = true
			}
		}
	}
	for i := range w.lines {
		if l := &w.lines[i]; l.kind == limited && l.rule != nil && replaced[l.rule.Name] {
			l.kind, l.limit, l.quota = noRule, ratelimit.Limit{}, quota
		}
	}
}

// buildHits makes the hits of all lines that have a limit. All keys are parts of one string.
func (d *Decider) buildHits(w *work) {
	for i := range w.lines {
		if l := &w.lines[i]; l.kind == limited {
			d.buildHit(w, l, &w.request.Descriptors[i])
		}
	}
	keys, from := string(w.keys), 0
	for i := range w.lines {
		if l := &w.lines[i]; l.kind == limited {
			l.hit.Key = keys[from:l.keyEnd]
			l.hit.TTL = l.hit.Window + ratelimit.ClockSkew + d.keyJitter(l.hit.Key)
			from = l.keyEnd
		}
	}
}

// buildHit makes the hit of one line, without its key, and appends the key to the keys of the call.
func (d *Decider) buildHit(w *work, l *line, wanted *ratelimit.Descriptor) {
	l.window = ratelimit.WindowAt(w.now, l.limit.Unit.Window())
	l.hit = counter.Hit{
		Addend: int64(l.addend), //nolint:gosec // at most MaxHits
		Limit:  uint64(l.limit.RequestsPerUnit),
		Window: l.window.Length,
		Left:   l.window.End().Sub(w.now),
	}
	if l.givesBack {
		l.hit.Addend = -l.hit.Addend
	}
	counted := ratelimit.Counter{
		Prefix:  d.config.Prefix,
		Domain:  w.request.Domain,
		Entries: w.counterEntries(l.rule, wanted.Entries),
		Window:  l.window,
	}
	// A limit of zero is always over, whatever the algorithm (contract L-53): it is counted as
	// usual.
	if l.limit.Algorithm != ratelimit.FixedWindow && l.limit.RequestsPerUnit > 0 {
		l.hit.Algorithm, l.hit.Burst, counted.Limit = l.limit.Algorithm, uint64(l.limit.Burst), l.limit
	}
	w.keys = ratelimit.AppendKey(w.keys, counted)
	l.keyEnd = len(w.keys)
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
