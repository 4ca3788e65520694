package ratelimit

import (
	"cmp"
	"hash/maphash"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of HotKeys.
const (
	// MaxHotKeys is the greatest number of keys that HotKeys.Top returns.
	MaxHotKeys = 20

	hotMinutes  = 5   // over which hits of keys are counted
	trackedKeys = 100 // of one rule
	maxKeyText  = 200 // bytes of a descriptor that are kept

	// exactDecisions is how many decisions of a rule are counted in each minute. Of further ones one
	// of sampling, chosen by a hash of its number, is counted for all of them, so that a busy rule
	// costs little and its lock is free.
	exactDecisions = 2000
	sampling       = 8
	// deviations is the error of sampled hits in standard deviations: that of one key of a thousand
	// is greater.
	deviations = 3.3

	// maxTrackedKeys is the greatest number of keys of all rules together, about 20 MB.
	maxTrackedKeys = 50_000
)

// HotKeyBudget bounds the number of keys that the rules of a process count together. Its zero value
// is ready for use. It is safe for concurrent use.
type HotKeyBudget struct {
	used      atomic.Int64
	lastSweep atomic.Int64 // the minute in which the keys without hits were last removed
}

// take reports whether one more key may be counted.
func (b *HotKeyBudget) take() bool {
	if b.used.Add(1) <= maxTrackedKeys {
		return true
	}
	b.used.Add(-1)
	return false
}

// IsFull reports whether there is no room for another key.
func (b *HotKeyBudget) IsFull() bool { return b.used.Load() >= maxTrackedKeys }

// Sweep removes the keys without hits from all rules when the budget is full, at most once a
// minute. Keys of rules that were removed make room too.
func (b *HotKeyBudget) Sweep(rules iter.Seq[*Rule], now time.Time) {
	minute := now.Unix() / 60
	if !b.IsFull() || b.lastSweep.Swap(minute) == minute {
		return
	}
	used := 0
	for r := range rules {
		used += r.Hits.Keys.size(b, now)
	}
	b.used.Store(int64(used))
}

// HotKeys counts the hits of those keys of a rule that have the most, over the last five minutes,
// in bounded memory: it is the algorithm space-saving (Metwally, Agrawal, El Abbadi 2005) with a
// count for each minute. Its zero value is ready for use. It is safe for concurrent use.
type HotKeys struct {
	sampled atomic.Int64  // the Unix time in minutes of the latest one with exactDecisions
	number  atomic.Uint64 // of the latest decision in that minute
	mutex   sync.Mutex
	keys    *trackedHotKeys // nil until the first hit
}

// trackedHotKeys are the counts of the keys of one rule.
type trackedHotKeys struct {
	minute    int64            // Unix time in minutes, up to which old counts are removed
	decisions int              // that were counted in this minute
	index     map[uint64]int32 // by the hash of the values
	keys      []hotKey
	hits      []uint64           // of each key, in all minutes together, with its error
	evicted   [hotMinutes]uint64 // the most hits of a key that lost its place in that minute
}

// hotKey is a key and its counts by minute. A minute has the index that is its remainder.
type hotKey struct {
	hash    uint64
	text    string
	error   uint64 // hits that may be of other keys
	hits    [hotMinutes]uint64
	refused [hotMinutes]uint64
	// variance is that of hits because of sampling.
	variance [hotMinutes]float64
}

// HotKey is a key with many hits.
type HotKey struct {
	Descriptor string // "key=value,key=value"; cut after 200 bytes
	Hits       uint64 // at least as many as there were, unless they were sampled
	Refused    uint64 // hits that were answered with OVER_LIMIT
	Error      uint64 // Hits may be too many by this number, and too few if they were sampled
}

// hotKeySeed makes the hashes of values differ between processes, so that callers cannot choose
// values with equal hashes.
var hotKeySeed = maphash.MakeSeed()

// KeyHits are hits of one key of a rule.
type KeyHits struct {
	Entries []Entry // that name the key (Rule.AppendCounterEntries)
	Hits    uint64  // at most MaxHits
	Weight  uint64  // how many of these decisions it counts for
	Refused bool
	Now     time.Time
}

// Weight returns how many decisions a decision at this time counts for, and 0 if it need not be
// counted, because others of its rule stand for it.
func (k *HotKeys) Weight(now time.Time) uint64 {
	switch {
	case k.sampled.Load() != now.Unix()/60:
		return 1
	case maphash.Comparable(hotKeySeed, k.number.Add(1))%sampling == 0:
		return sampling
	default:
		return 0
	}
}

// Count counts hits, unless the budget has no room for the first key of a rule. A rule that has
// keys already then counts this one in place of the key with the fewest hits.
func (k *HotKeys) Count(h KeyHits, b *HotKeyBudget) {
	hash := uint64(len(h.Entries))
	for i := range h.Entries {
		hash = hash*0x9E3779B97F4A7C15 ^ maphash.String(hotKeySeed, h.Entries[i].Value)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.keys == nil {
		k.keys = &trackedHotKeys{index: map[uint64]int32{}}
	}
	t := k.keys
	t.forgetBefore(b, h.Now)
	i, ok := t.index[hash]
	if !ok {
		if i, ok = t.add(hash, h.Entries, b); !ok {
			return
		}
	}
	if t.decisions++; t.decisions == exactDecisions {
		k.sampled.Store(t.minute)
	}
	t.hits[i] += h.Hits * h.Weight
	t.keys[i].add(h, t.minute%hotMinutes)
}

func (k *hotKey) add(h KeyHits, minute int64) {
	k.hits[minute] += h.Hits * h.Weight
	if h.Refused {
		k.refused[minute] += h.Hits * h.Weight
	}
	k.variance[minute] += float64(h.Hits) * float64(h.Hits) * float64(h.Weight*(h.Weight-1))
}

// add returns the index of a new key: a free one, or that of the key with the fewest hits. It
// returns false if there is neither.
func (t *trackedHotKeys) add(hash uint64, entries []Entry, b *HotKeyBudget) (int32, bool) {
	free := len(t.keys) < trackedKeys && b.take()
	if !free && len(t.keys) == 0 {
		return 0, false
	}
	at := len(t.keys)
	if free {
		t.keys, t.hits = append(t.keys, hotKey{}), append(t.hits, 0)
	} else {
		at = t.evictLeast()
	}
	// The key may have lost its place before, in any of the minutes that count.
	missed := slices.Max(t.evicted[:])
	t.keys[at], t.hits[at] = hotKey{hash: hash, text: descriptorText(entries), error: missed}, missed
	t.index[hash] = int32(at) //nolint:gosec // at most trackedKeys
	return t.index[hash], true
}

// evictLeast takes the place of the key with the fewest hits, and returns its index.
func (t *trackedHotKeys) evictLeast() int {
	least := 0
	for i, hits := range t.hits {
		if hits < t.hits[least] {
			least = i
		}
	}
	slot := t.minute % hotMinutes
	t.evicted[slot] = max(t.evicted[slot], t.hits[least])
	delete(t.index, t.keys[least].hash)
	return least
}

// forgetBefore removes the counts of minutes that are too old, and the keys that have no others.
func (t *trackedHotKeys) forgetBefore(b *HotKeyBudget, now time.Time) {
	minute := now.Unix() / 60
	if minute <= t.minute {
		return
	}
	from := max(t.minute+1, minute-hotMinutes+1)
	t.minute, t.decisions = minute, 0
	for m := from; m <= minute; m++ {
		t.evicted[m%hotMinutes] = 0
		for i := range t.keys {
			t.keys[i].hits[m%hotMinutes], t.keys[i].refused[m%hotMinutes], t.keys[i].variance[m%hotMinutes] = 0, 0, 0
		}
	}
	before := len(t.keys)
	t.dropIdle()
	b.used.Add(int64(len(t.keys) - before))
}

// dropIdle removes the keys without hits, and corrects the errors and sums of the others.
func (t *trackedHotKeys) dropIdle() {
	bound := slices.Max(t.evicted[:])
	kept := t.keys[:0]
	t.hits = t.hits[:0]
	clear(t.index)
	for _, k := range t.keys {
		counted := sum(k.hits)
		if counted == 0 {
			continue
		}
		k.error = min(k.error, bound)
		t.index[k.hash] = int32(len(kept)) //nolint:gosec // at most trackedKeys
		kept, t.hits = append(kept, k), append(t.hits, counted+k.error)
	}
	clear(t.keys[len(kept):])
	t.keys = kept
}

// size returns the number of keys that have hits.
func (k *HotKeys) size(b *HotKeyBudget, now time.Time) int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.keys == nil {
		return 0
	}
	k.keys.forgetBefore(b, now)
	return len(k.keys.keys)
}

// Top returns the keys with the most hits, at most MaxHotKeys, the most first.
func (k *HotKeys) Top(b *HotKeyBudget, now time.Time) []HotKey {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.keys == nil {
		return nil
	}
	t := k.keys
	t.forgetBefore(b, now)
	list := make([]HotKey, len(t.keys))
	for i, key := range t.keys {
		list[i] = HotKey{key.text, t.hits[i], sum(key.refused), key.error + uint64(deviations*math.Sqrt(sum(key.variance)))}
	}
	slices.SortFunc(list, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), strings.Compare(a.Descriptor, b.Descriptor))
	})
	return slices.Clip(list[:min(len(list), MaxHotKeys)])
}

func sum[N uint64 | float64](minutes [hotMinutes]N) (n N) {
	for _, one := range minutes {
		n += one
	}
	return n
}

// descriptorText returns the entries as "key=value,key=value", cut after maxKeyText bytes.
func descriptorText(entries []Entry) string {
	text := make([]byte, 0, maxKeyText)
	for i, e := range entries {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, e.Key...), '='), e.Value[:min(len(e.Value), maxKeyText+1)]...)
		if len(text) > maxKeyText {
			return strings.ToValidUTF8(string(text[:maxKeyText]), "") + "…"
		}
	}
	return strings.ToValidUTF8(string(text), "�")
}
