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

// maxSeriesName bounds the name of a series, in bytes, its domain included:
// values are the callers' own, and the table keeps them for long.
const maxSeriesName = 1 << 10

// idleMinutes is how long nobody may have asked for a series before it gives
// its place to another, when the table is full. It is longer than any interval
// at which statistics are sent.
const idleMinutes = 60

// seriesShards is how many parts the table has. Each is a map that never
// changes; a new series makes a copy of one part.
const seriesShards = 64

// seriesTable keeps a bounded number of series, each with a bounded name.
// Looking one up takes no lock.
type seriesTable struct {
	most   int
	seed   maphash.Seed
	shards [seriesShards]atomic.Pointer[map[string]*Series]
	size   atomic.Int64
	swept  atomic.Int64 // the minute of the last search for idle series

	mutex sync.Mutex // held by whoever changes a shard
}

func newSeriesTable(most int) *seriesTable {
	s := &seriesTable{most: most, seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].Store(&map[string]*Series{})
	}
	return s
}

func (s *seriesTable) all() iter.Seq[*Series] {
	return func(yield func(*Series) bool) {
		for i := range s.shards {
			for _, one := range *s.shards[i].Load() {
				if !yield(one) {
					return
				}
			}
		}
	}
}

// ofRule returns where hits on a rule are counted: on the rule, or on the
// values asked for.
func (s *seriesTable) ofRule(r *ratelimit.Rule, entries []ratelimit.Entry, now time.Time) *ratelimit.Hits {
	if r.Valued == nil {
		return r.Hits
	}
	var key [256]byte
	var ends [8]int
	name := newSeriesName(r.Domain, key[:0], ends[:0])
	for i := range entries {
		if r.Valued[i] {
			name.add(entries[i].Key, entries[i].Value)
		} else {
			name.add(r.Levels[i], "")
		}
	}
	if hits := s.of(&name, now); hits != nil {
		return hits
	}
	return r.Hits
}

// ofOverride returns where hits on an override are counted; nil when there is
// no room for another series, or its name is too long.
func (s *seriesTable) ofOverride(d ratelimit.Domain, entries []ratelimit.Entry, now time.Time) *ratelimit.Hits {
	var key [256]byte
	var ends [8]int
	name := newSeriesName(d, key[:0], ends[:0])
	for i := range entries {
		name.add(entries[i].Key, entries[i].Value)
	}
	return s.of(&name, now)
}

// of returns the hits of the series of a name; nil when there is no room for
// it, or its name is too long.
func (s *seriesTable) of(name *seriesName, now time.Time) *ratelimit.Hits {
	if name.long {
		return nil
	}
	minute := now.Unix() / 60
	shard := &s.shards[maphash.Bytes(s.seed, name.key)%seriesShards]
	one := (*shard.Load())[string(name.key)]
	if one == nil {
		if one = s.grow(shard, name, minute); one == nil {
			return nil
		}
	}
	if one.seen.Load() != minute {
		one.seen.Store(minute)
	}
	return one.Hits
}

// grow adds the series of a name; nil when there is no room for it.
func (s *seriesTable) grow(shard *atomic.Pointer[map[string]*Series], name *seriesName, minute int64) *Series {
	if s.full() && s.swept.Load() == minute {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := string(name.key)
	if one := (*shard.Load())[key]; one != nil {
		return one
	}
	if s.full() && s.swept.Swap(minute) != minute {
		s.sweep(minute - idleMinutes)
	}
	if s.full() {
		return nil
	}
	one := name.series(key)
	one.seen.Store(minute)
	grown := maps.Clone(*shard.Load())
	grown[key] = one
	shard.Store(&grown)
	s.size.Add(1)
	return one
}

func (s *seriesTable) full() bool { return s.size.Load() >= int64(s.most) }

// sweep gives up the series that nobody has asked for since a minute.
func (s *seriesTable) sweep(since int64) {
	for i := range s.shards {
		known := *s.shards[i].Load()
		kept := make(map[string]*Series, len(known))
		for key, one := range known {
			if one.seen.Load() >= since {
				kept[key] = one
			}
		}
		s.shards[i].Store(&kept)
		s.size.Add(int64(len(kept) - len(known)))
	}
}

// seriesName is the name of a series while it is put together.
type seriesName struct {
	domain ratelimit.Domain
	key    []byte // the domain, a zero byte, and the levels joined by dots
	ends   []int  // of the levels, in the key
	long   bool
}

func newSeriesName(d ratelimit.Domain, key []byte, ends []int) seriesName {
	if len(d) >= maxSeriesName {
		return seriesName{long: true}
	}
	return seriesName{domain: d, key: append(append(key, d...), 0), ends: ends}
}

// add appends a level of a key and a value.
func (n *seriesName) add(key, value string) {
	if len(n.key)+len(key)+len(value)+len("._") > maxSeriesName {
		n.long = true
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

// series returns a series of the name, with the parts of its key as its own.
func (n *seriesName) series(key string) *Series {
	from := len(n.domain) + 1
	one := &Series{Domain: ratelimit.Domain(key[:from-1]), Path: key[from:], Hits: &ratelimit.Hits{}}
	for _, end := range n.ends {
		one.Levels = append(one.Levels, key[from:end])
		from = end + 1
	}
	return one
}
