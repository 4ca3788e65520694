package decide

import (
	"hash/maphash"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// maxSeriesName is the greatest length of the name of a series, in bytes, including its domain:
// callers choose the values, the table keeps them for a long time, and each answer of /metrics has
// each name in a dozen places.
const maxSeriesName = 200

// idleMinutes is the time without a request after which a series is removed when the table is full.
// It is longer than the intervals at which statistics are sent.
const idleMinutes = 60

// seriesShards is the number of parts of the table. Each part is a map that never changes; a new
// series replaces one part by a copy.
const seriesShards = 64

// seriesTable keeps a bounded number of series with bounded names. A lookup takes no lock.
type seriesTable struct {
	maxSeries   int
	seed        maphash.Seed
	shards      [seriesShards]atomic.Pointer[map[string]*Series]
	size        atomic.Int64
	lastRemoval atomic.Int64 // the minute in which idle series were last removed

	mutex sync.Mutex // protects changes of shards
}

func newSeriesTable(limit int) *seriesTable {
	s := &seriesTable{maxSeries: limit, seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].Store(&map[string]*Series{})
	}
	return s
}

// allSeries returns an iterator over all series, in no order.
func (s *seriesTable) allSeries() iter.Seq[*Series] {
	return func(yield func(*Series) bool) {
		for i := range s.shards {
			for _, entry := range *s.shards[i].Load() {
				if !yield(entry) {
					return
				}
			}
		}
	}
}

// hitsOfRule returns where hits on a rule are counted: on the series of the requested values if the
// rule has such series, else on the rule.
func (s *seriesTable) hitsOfRule(r *ratelimit.Rule, entries []ratelimit.Entry, now time.Time) *ratelimit.Hits {
	if r.ShowValue == nil {
		return r.Hits
	}
	var key [256]byte
	var ends [8]int
	name := newSeriesName(r.Domain, key[:0], ends[:0])
	for i := range entries {
		if r.ShowValue[i] {
			name.addLevel(entries[i].Key, entries[i].Value)
		} else {
			name.addLevel(r.Levels[i], "")
		}
	}
	if hits := s.findOrAdd(&name, now); hits != nil {
		return hits
	}
	return r.Hits
}

// hitsOfOverride returns where hits on an override are counted: on the series of its keys and
// values, or on that of its keys if that name is too long; nil when the table is full or both are
// too long.
func (s *seriesTable) hitsOfOverride(d ratelimit.Domain, entries []ratelimit.Entry, now time.Time) *ratelimit.Hits {
	var key [256]byte
	var ends [8]int
	name := newSeriesName(d, key[:0], ends[:0])
	for i := range entries {
		name.addLevel(entries[i].Key, entries[i].Value)
	}
	if name.tooLong {
		name = newSeriesName(d, key[:0], ends[:0])
		for i := range entries {
			name.addLevel(entries[i].Key, "")
		}
	}
	return s.findOrAdd(&name, now)
}

// findOrAdd returns the hits of the series of a name, or nil when the table is full or the name is
// too long.
func (s *seriesTable) findOrAdd(name *seriesName, now time.Time) *ratelimit.Hits {
	if name.tooLong {
		return nil
	}
	minute := now.Unix() / 60
	shard := &s.shards[maphash.Bytes(s.seed, name.key)%seriesShards]
	entry := (*shard.Load())[string(name.key)]
	if entry == nil {
		if entry = s.addSeries(shard, name, minute); entry == nil {
			return nil
		}
	}
	if entry.lastUsed.Load() != minute {
		entry.lastUsed.Store(minute)
	}
	return entry.Hits
}

// addSeries adds the series of a name, or returns nil when the table is full.
func (s *seriesTable) addSeries(shard *atomic.Pointer[map[string]*Series], name *seriesName, minute int64) *Series {
	if s.isFull() && s.lastRemoval.Load() == minute {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := string(name.key)
	if entry := (*shard.Load())[key]; entry != nil {
		return entry
	}
	if s.isFull() && s.lastRemoval.Swap(minute) != minute {
		s.removeIdle(minute - idleMinutes)
	}
	if s.isFull() {
		return nil
	}
	entry := name.newSeries(key)
	entry.lastUsed.Store(minute)
	grown := maps.Clone(*shard.Load())
	grown[key] = entry
	shard.Store(&grown)
	s.size.Add(1)
	return entry
}

func (s *seriesTable) isFull() bool { return s.size.Load() >= int64(s.maxSeries) }

// removeIdle removes the series that were last used before the minute since.
func (s *seriesTable) removeIdle(since int64) {
	for i := range s.shards {
		known := *s.shards[i].Load()
		kept := make(map[string]*Series, len(known))
		for key, entry := range known {
			if entry.lastUsed.Load() >= since {
				kept[key] = entry
			}
		}
		s.shards[i].Store(&kept)
		s.size.Add(int64(len(kept) - len(known)))
	}
}

// seriesName builds the name of a series.
type seriesName struct {
	domain  ratelimit.Domain
	key     []byte // the domain, a zero byte, and the levels joined by dots
	ends    []int  // where each level ends in the key
	tooLong bool
}

func newSeriesName(d ratelimit.Domain, key []byte, ends []int) seriesName {
	if len(d) >= maxSeriesName {
		return seriesName{tooLong: true}
	}
	return seriesName{domain: d, key: append(append(key, d...), 0), ends: ends}
}

// addLevel appends a level with a key and a value.
func (n *seriesName) addLevel(key, value string) {
	if len(n.key)+len(key)+len(value)+len("._") > maxSeriesName {
		n.tooLong = true
		return
	}
	if len(n.ends) > 0 {
		n.key = append(n.key, '.')
	}
	n.key = append(n.key, key...)
	if value != "" {
		n.key = append(n.key, '_')
		n.key = append(n.key, value...)
	}
	n.ends = append(n.ends, len(n.key))
}

// newSeries returns a series of the name. Its texts are parts of key.
func (n *seriesName) newSeries(key string) *Series {
	from := len(n.domain) + 1
	entry := &Series{Domain: ratelimit.Domain(key[:from-1]), Path: key[from:], Hits: &ratelimit.Hits{}}
	for _, end := range n.ends {
		entry.Levels = append(entry.Levels, key[from:end])
		from = end + 1
	}
	return entry
}
