package decide

import (
	"iter"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Stats are counts of the service itself since its start (contract L-46).
type Stats struct {
	StoreErrors    atomic.Uint64 // calls on which the counter store failed
	ServiceErrors  atomic.Uint64 // calls refused because of the request, or because no rules are loaded
	GlobalShadow   atomic.Uint64 // over-limit results that shadow mode let pass
	FailedOpen     atomic.Uint64 // store failures that were answered as OK
	FailedClosed   atomic.Uint64 // store failures that were answered as over limit
	CountedLocally atomic.Uint64 // store failures that were answered from the counters of this process
	// OtherDomains are the descriptors in unknown domains that have no count by name.
	OtherDomains atomic.Uint64
}

// MaxUnknownDomains is the number of unknown domains that are counted by name. Callers choose these
// names, so there is a limit; a name without a request for an hour is removed when others need its
// place.
const MaxUnknownDomains = 100

// Series are the statistics of one value, or path of values, of requests: for rules with
// detailed_metric or value_to_metric, and for overrides.
type Series struct {
	Domain ratelimit.Domain
	Path   string
	Levels []string
	Hits   *ratelimit.Hits

	// lastUsed is the minute of the last request.
	lastUsed atomic.Int64
}

// Series returns an iterator over the series by value, in no order.
func (d *Decider) Series() iter.Seq[*Series] { return d.series.allSeries() }

// UnknownDomains returns an iterator over the domains of requests that the configuration does not
// have, each with its number of descriptors, in no order. Stats.OtherDomains has the rest.
func (d *Decider) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(yield func(ratelimit.Domain, uint64) bool) {
		for s := range d.unknown.allSeries() {
			if !yield(s.Domain, s.Hits.Total()) {
				return
			}
		}
	}
}

// countUnknownDomain counts the descriptors of a request in a domain that the configuration does
// not have.
func (d *Decider) countUnknownDomain(w *work) {
	n := uint64(len(w.request.Descriptors))
	var key [256]byte
	name := newSeriesName(w.request.Domain, key[:0], nil)
	if hits := d.unknown.findOrAdd(&name, w.now); hits != nil {
		hits.Within.Add(n)
		return
	}
	d.stats.OtherDomains.Add(n)
}
