package decide

import (
	"iter"
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

	// seen is when the series was last asked for, in minutes.
	seen atomic.Int64
}

// Series goes through the series by value, in no order.
func (d *Decider) Series() iter.Seq[*Series] { return d.series.all() }
