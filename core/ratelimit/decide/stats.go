package decide

import (
	"iter"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Stats are counts of the service itself, since the start (contract L-46).
type Stats struct {
	StoreErrors    atomic.Uint64 // calls on which the counter store failed
	ServiceErrors  atomic.Uint64 // calls refused for the request or for want of rules
	GlobalShadow   atomic.Uint64 // over-limit results that SHADOW_MODE let pass
	FailedOpen     atomic.Uint64 // store failures that were answered as OK
	FailedClosed   atomic.Uint64 // ... as over limit
	CountedLocally atomic.Uint64 // ... from the process's own counters
	// OtherDomains are descriptors in unknown domains that have no count of their own.
	OtherDomains atomic.Uint64
}

// MaxUnknownDomains is how many domains that the configuration does not have are counted by their
// names: those are the callers' own words. Names that nobody asked for in an hour make room.
const MaxUnknownDomains = 100

// Series are the statistics of one value, or path of values, that was asked
// for: of rules with detailed_metric or value_to_metric, and of overrides.
type Series struct {
	Domain ratelimit.Domain
	Path   string
	Levels []string
	Hits   *ratelimit.Hits

	// seen is when the series was last asked for, in minutes.
	seen atomic.Int64
}

// Series goes through the series by value, in no order.
func (d *Decider) Series() iter.Seq[*Series] { return d.series.all() }

// UnknownDomains goes through the domains that callers asked for and the configuration did not have,
// with how many descriptors they asked for, in no order. The rest is in Stats.OtherDomains.
func (d *Decider) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(yield func(ratelimit.Domain, uint64) bool) {
		for one := range d.unknown.all() {
			if !yield(one.Domain, one.Hits.Total.Load()) {
				return
			}
		}
	}
}

// countUnknown counts the descriptors of a request in a domain that the configuration does not have.
func (d *Decider) countUnknown(w *work) {
	n := uint64(len(w.request.Descriptors))
	var key [256]byte
	name := newSeriesName(w.request.Domain, key[:0], nil)
	if hits := d.unknown.of(&name, w.now); hits != nil {
		hits.Total.Add(n)
		return
	}
	d.stats.OtherDomains.Add(n)
}
