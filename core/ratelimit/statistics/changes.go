package statistics

import (
	"iter"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Changes returns what was counted since its last call, for sinks that send differences. Each sink
// has its own, and calls it once at a time.
type Changes struct {
	statistics *Statistics
	service    map[string]uint64
	hits       map[*ratelimit.Hits]*reported
	calls      uint64
	round      uint64
}

// reported is what was last reported of a subject with hits.
type reported struct {
	domain ratelimit.Domain
	path   string
	values Values
	round  uint64
}

// NewChanges returns the changes since the start.
func (s *Statistics) NewChanges() *Changes {
	return &Changes{statistics: s, service: map[string]uint64{}, hits: map[*ratelimit.Hits]*reported{}}
}

// Counters returns an iterator over all counters that grew, each with its name with dots and with
// how much it grew. A name may occur more than once. What the caller did not take, because it
// stopped, is returned by the next call.
func (c *Changes) Counters() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		if !c.serviceChanges(c.statistics.Service(), yield) {
			return
		}
		c.round++
		for s := range c.statistics.allSubjects() {
			if !c.subjectChanges(s, yield) {
				return
			}
		}
		c.removeGone(yield)
	}
}

// Len returns how many counters there may be at most: those of the service, and all of each subject
// with hits.
func (c *Changes) Len() int { return len(c.service) + len(c.hits)*int(stats) }

// serviceChanges yields the counters of the service that grew. It returns false when the caller
// stopped. It removes counters that no longer exist: unknown domains come and go.
func (c *Changes) serviceChanges(list []Counter, yield func(string, uint64) bool) bool {
	values := make(map[string]uint64, len(list))
	for i, counter := range list {
		values[counter.Name] = counter.Value
		before := c.service[counter.Name]
		if counter.Value <= before || yield(counter.Name, counter.Value-before) {
			continue
		}
		for _, rest := range list[i:] {
			values[rest.Name] = c.service[rest.Name]
		}
		c.service = values
		return false
	}
	c.service = values
	return true
}

// subjectChanges yields what grew of a subject. It returns false when the caller stopped. Subjects
// without hits take no memory.
func (c *Changes) subjectChanges(s Subject, yield func(string, uint64) bool) bool {
	known := c.hits[s.Hits]
	values := readValues(s.Hits)
	if known == nil {
		if values == (Values{}) {
			return true
		}
		known = &reported{domain: s.Domain, path: s.Path}
		c.hits[s.Hits] = known
	}
	known.round = c.round
	return known.yieldChanges(values, yield)
}

// removeGone yields the last changes of subjects that no longer exist, and removes them.
func (c *Changes) removeGone(yield func(string, uint64) bool) {
	for hits, known := range c.hits {
		if known.round == c.round {
			continue
		}
		if !known.yieldChanges(readValues(hits), yield) {
			return
		}
		delete(c.hits, hits)
	}
}

// yieldChanges yields the values that grew. It returns false when the caller stopped.
func (r *reported) yieldChanges(values Values, yield func(string, uint64) bool) bool {
	if values == r.values {
		return true
	}
	name := append(appendName(nil, r.domain, r.path), '.')
	for i, value := range values {
		if value == r.values[i] {
			continue
		}
		if !yield(string(append(name, Stat(i).String()...)), value-r.values[i]) {
			return false
		}
		r.values[i] = value
	}
	return true
}
