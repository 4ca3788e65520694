package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth/retention"
)

// Retention counts records that were removed because their time was over.
type Retention struct{ kinds counts }

// NewRetention returns a counter of removed records.
func NewRetention(r prometheus.Registerer) *Retention {
	var names []string
	for _, kind := range retention.Kinds() {
		names = append(names, string(kind))
	}
	return &Retention{newCounts(r, prometheus.CounterOpts{
		Name: "tollgate_records_removed_total",
		Help: "Old records that were removed, by kind.",
	}, "kind", names...)}
}

// Removed counts what a sweep removed.
func (k *Retention) Removed(removed []retention.Removed) {
	for _, r := range removed {
		k.kinds.add(string(r.Kind), r.Count)
	}
}
