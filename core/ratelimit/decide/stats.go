package decide

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Stats are counts of the service itself, since the start (decisions 3.6).
type Stats struct {
	StoreErrors    atomic.Uint64 // calls on which the counter store failed
	ServiceErrors  atomic.Uint64 // calls refused for the request or for want of rules
	GlobalShadow   atomic.Uint64 // over-limit results that SHADOW_MODE let pass
	FailedOpen     atomic.Uint64 // store failures that were answered as OK
	FailedClosed   atomic.Uint64 // ... as over limit
	CountedLocally atomic.Uint64 // ... from the process's own counters
}

// Series are the statistics of one value, or path of values, that was asked
// for: of rules with detailed_metric or value_to_metric, and of overrides.
type Series struct {
	Domain ratelimit.Domain
	Path   string
	Levels []string
	Hits   *ratelimit.Hits
}

// Series goes through the series by value, in no order.
func (d *Decider) Series() iter.Seq[Series] {
	return slices.Values(d.series.all())
}

// maxSeriesName bounds the name of a series, in bytes, its domain included:
// values are the callers' own, and the table keeps them for good.
const maxSeriesName = 1 << 10

// seriesTable keeps a bounded number of series, each with a bounded name.
type seriesTable struct {
	most  int
	mutex sync.RWMutex
	known map[string]Series
}

func newSeriesTable(most int) *seriesTable {
	return &seriesTable{most: most, known: map[string]Series{}}
}

func (s *seriesTable) all() []Series {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	list := make([]Series, 0, len(s.known))
	for _, one := range s.known {
		list = append(list, one)
	}
	return list
}

// ofRule returns where hits on a rule are counted: on the rule, or on the
// values asked for.
func (s *seriesTable) ofRule(r *ratelimit.Rule, entries []ratelimit.Entry) *ratelimit.Hits {
	if r.Valued == nil {
		return r.Hits
	}
	hits := s.of(r.Domain, len(entries), func(dst []byte, i int) []byte {
		if r.Valued[i] {
			return appendLevel(dst, &entries[i])
		}
		return append(dst, r.Levels[i]...)
	})
	if hits == nil {
		return r.Hits
	}
	return hits
}

// ofOverride returns where hits on an override are counted; nil when there is
// no room for another series, or its name is too long.
func (s *seriesTable) ofOverride(d ratelimit.Domain, entries []ratelimit.Entry) *ratelimit.Hits {
	return s.of(d, len(entries), func(dst []byte, i int) []byte { return appendLevel(dst, &entries[i]) })
}

func appendLevel(dst []byte, e *ratelimit.Entry) []byte {
	dst = append(dst, e.Key...)
	if e.Value != "" {
		dst = append(dst, '_')
		dst = append(dst, e.Value...)
	}
	return dst
}

// of returns the hits of the series with the levels; nil when there is no room
// for it, or its name is too long.
func (s *seriesTable) of(d ratelimit.Domain, levels int, level func([]byte, int) []byte) *ratelimit.Hits {
	var memory [256]byte
	key := append(memory[:0], d...)
	key = append(key, 0)
	ends := make([]int, 0, 8)
	for i := range levels {
		if i > 0 {
			key = append(key, '.')
		}
		key = level(key, i)
		if len(key) > maxSeriesName {
			return nil
		}
		ends = append(ends, len(key))
	}
	s.mutex.RLock()
	one, ok := s.known[string(key)]
	full := len(s.known) >= s.most
	s.mutex.RUnlock()
	if ok || full {
		return one.Hits
	}
	return s.grow(string(key), d, ends)
}

func (s *seriesTable) grow(key string, d ratelimit.Domain, ends []int) *ratelimit.Hits {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if one, ok := s.known[key]; ok || len(s.known) >= s.most {
		return one.Hits
	}
	one := Series{Domain: d, Path: key[len(d)+1:], Hits: &ratelimit.Hits{}}
	from := len(d) + 1
	for _, end := range ends {
		one.Levels = append(one.Levels, key[from:end])
		from = end + 1
	}
	s.known[key] = one
	return one.Hits
}
