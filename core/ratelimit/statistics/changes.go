package statistics

import (
	"iter"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Changes tells what was counted since it was last asked, for sinks that send
// differences. One sink asks, one call at a time.
type Changes struct {
	of      *Statistics
	service map[string]uint64
	hits    map[*ratelimit.Hits]*told
	calls   uint64
	round   uint64
}

// told is what was told last of a subject that has been hit.
type told struct {
	domain ratelimit.Domain
	path   string
	values Values
	round  uint64
}

// NewChanges returns the changes since the start.
func (s *Statistics) NewChanges() *Changes {
	return &Changes{of: s, service: map[string]uint64{}, hits: map[*ratelimit.Hits]*told{}}
}

// Counters goes through all counters that grew, each by its name with dots and
// by how much it grew; a name may come more than once. What the caller did not
// take, because it stopped, comes again.
func (c *Changes) Counters() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		if !c.counters(c.of.Service(), yield) {
			return
		}
		c.round++
		for one := range c.of.subjects() {
			if !c.subject(one, yield) {
				return
			}
		}
		c.forget(yield)
	}
}

// Len returns how many counters there may be, at most: those of the service, and all of each subject
// that has been hit.
func (c *Changes) Len() int { return len(c.service) + len(c.hits)*int(stats) }

// counters tells which counters of the service grew; false when nobody listens any more. It forgets
// those that are gone: an unknown domain makes room when nobody asks for it any more.
func (c *Changes) counters(list []Counter, yield func(string, uint64) bool) bool {
	told := make(map[string]uint64, len(list))
	for i, one := range list {
		told[one.Name] = one.Value
		before := c.service[one.Name]
		if one.Value <= before || yield(one.Name, one.Value-before) {
			continue
		}
		for _, rest := range list[i:] {
			told[rest.Name] = c.service[rest.Name]
		}
		c.service = told
		return false
	}
	c.service = told
	return true
}

// subject tells what grew of a subject; false when nobody listens any more.
// Those that were never hit take no memory.
func (c *Changes) subject(one Subject, yield func(string, uint64) bool) bool {
	known := c.hits[one.Hits]
	values := read(one.Hits)
	if known == nil {
		if values == (Values{}) {
			return true
		}
		known = &told{domain: one.Domain, path: one.Path}
		c.hits[one.Hits] = known
	}
	known.round = c.round
	return known.tell(values, yield)
}

// forget tells the last of subjects that are gone.
func (c *Changes) forget(yield func(string, uint64) bool) {
	for hits, known := range c.hits {
		if known.round == c.round {
			continue
		}
		if !known.tell(read(hits), yield) {
			return
		}
		delete(c.hits, hits)
	}
}

func (t *told) tell(values Values, yield func(string, uint64) bool) bool {
	if values == t.values {
		return true
	}
	name := append(appendName(nil, t.domain, t.path), '.')
	for i, value := range values {
		if value == t.values[i] {
			continue
		}
		if !yield(string(append(name, Stat(i).String()...)), value-t.values[i]) {
			return false
		}
		t.values[i] = value
	}
	return true
}
