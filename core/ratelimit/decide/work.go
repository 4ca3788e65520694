package decide

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// outcome is what there is to answer from.
type outcome uint8

const (
	counted outcome = iota // the counts
	open                   // no counts: all within
	closed                 // no counts: all over
)

// work is the state of one call. Its memory is used again by later calls.
type work struct {
	request *ratelimit.Request
	now     time.Time
	outcome outcome
	// blocked says that contract L-10 holds back all hits, whatever the store counts.
	blocked bool
	targets []target // one for each descriptor
	hits    []counter.Hit
	after   []uint64
	keys    []byte // of all hits, one behind the other
	ends    []int  // of the keys
	entries []ratelimit.Entry
}

// target is what one descriptor is held against.
type target struct {
	rule   *ratelimit.Rule // nil for an override, and for none
	limit  ratelimit.Limit // zero for none
	window ratelimit.Window
	stats  *ratelimit.Hits // nil for none
	addend uint64
	back   bool // the hits are given back
	quota  bool // quota mode
	// recalled tells that the counter is over its limit, as the process
	// remembers: there is no hit.
	recalled bool
	hit      int // the index of the hit
	kind     kind
}

type kind uint8

const (
	free      kind = iota // no rule, or a replaced one: OK and nothing else
	unlimited             // never sent to the store (contract L-6)
	limited
)

// The memory that a call leaves to later ones is bounded in descriptors and in
// bytes of keys.
const (
	keepAtMost     = 64
	keepKeysAtMost = 1 << 14
)

func (d *Decider) take(r *ratelimit.Request) *work {
	w, ok := d.works.Get().(*work)
	if !ok {
		w = &work{}
	}
	w.request, w.now, w.outcome, w.blocked = r, d.ports.Clock.Now(), counted, false
	return w
}

// give hands the memory on without what it pointed to.
func (d *Decider) give(w *work) {
	if cap(w.targets) > keepAtMost || cap(w.entries) > keepAtMost || cap(w.keys) > keepKeysAtMost {
		return
	}
	clear(w.targets)
	clear(w.hits)
	clear(w.entries)
	w.request = nil
	w.targets, w.hits, w.after = w.targets[:0], w.hits[:0], w.after[:0]
	w.keys, w.ends, w.entries = w.keys[:0], w.ends[:0], w.entries[:0]
	d.works.Put(w)
}

// resolve finds what each descriptor is held against.
func (d *Decider) resolve(w *work, set *ruleset.Set) {
	replacing, found := false, false
	for i := range w.request.Descriptors {
		t := d.target(w, &w.request.Descriptors[i], set)
		replacing = replacing || t.rule != nil && len(t.rule.Replaces) > 0
		found = found || t.kind != free
		w.targets = append(w.targets, t)
	}
	if !found && !set.Has(w.request.Domain) {
		d.countUnknown(w)
	}
	if replacing {
		w.replace(d.config.Quota)
	}
}

func (d *Decider) target(w *work, wanted *ratelimit.Descriptor, set *ruleset.Set) target {
	domain := w.request.Domain
	t := target{addend: addend(w.request, wanted), back: wanted.GiveBack, quota: d.config.Quota}
	if wanted.Override != nil {
		if set.Has(domain) {
			t.kind, t.limit = limited, *wanted.Override
			t.stats = d.series.ofOverride(domain, wanted.Entries, w.now)
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
	t.stats = d.series.ofRule(t.rule, wanted.Entries, w.now)
	return t
}

// addend returns how many hits a descriptor adds (contract L-19).
func addend(r *ratelimit.Request, d *ratelimit.Descriptor) uint64 {
	if d.Hits != nil {
		return *d.Hits
	}
	return uint64(max(r.Hits, 1))
}

// replace frees each target whose limit another one replaces (contract L-7). A limit that is
// replaced still replaces others, and an unlimited one is never replaced. No rule names itself, so
// the names of all of them together are enough.
//
// With quota, the targets that are freed are of quota mode.
func (w *work) replace(quota bool) {
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
			t.kind, t.limit, t.quota = free, ratelimit.Limit{}, quota
		}
	}
}

// addHits makes the batch for the store. All keys are one string, cut up.
func (d *Decider) addHits(w *work) {
	for i := range w.targets {
		if t := &w.targets[i]; t.kind == limited {
			d.addHit(w, t, &w.request.Descriptors[i])
		}
	}
	keys, from := string(w.keys), 0
	for i, end := range w.ends {
		h := &w.hits[i]
		h.Key = keys[from:end]
		h.TTL = h.Window + ratelimit.ClockSkew + d.jitter(h.Key)
		from = end
	}
}

func (d *Decider) addHit(w *work, t *target, wanted *ratelimit.Descriptor) {
	t.window = ratelimit.WindowAt(w.now, t.limit.Unit.Window())
	t.hit = len(w.hits)
	w.keys = ratelimit.AppendKey(w.keys, ratelimit.Counter{
		Prefix:  d.config.Prefix,
		Domain:  w.request.Domain,
		Entries: w.sharing(t.rule, wanted.Entries),
		Window:  t.window,
	})
	w.ends = append(w.ends, len(w.keys))
	w.after = append(w.after, 0)
	hit := counter.Hit{
		Addend: int64(t.addend), //nolint:gosec // at most MaxHits
		Limit:  uint64(t.limit.RequestsPerUnit),
		Window: t.window.Length,
		Left:   t.window.End().Sub(w.now),
	}
	if t.back {
		hit.Addend = -hit.Addend
	}
	w.hits = append(w.hits, hit)
}

// sharing returns the entries that name the counter: those asked for, with the
// pattern in place of a value where values share one counter.
func (w *work) sharing(rule *ratelimit.Rule, entries []ratelimit.Entry) []ratelimit.Entry {
	if rule == nil || rule.Shared == nil {
		return entries
	}
	w.entries = append(w.entries[:0], entries...)
	for i, pattern := range rule.Shared {
		if pattern != "" {
			w.entries[i].Value = pattern
		}
	}
	return w.entries
}

// jitter spreads the ends of counters; the same key always gets the same (FNV-1a
// of the key).
func (d *Decider) jitter(key string) time.Duration {
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
