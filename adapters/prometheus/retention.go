package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth/retention"
)

// Retention counts removed records and passes the reports on. It implements retention.Reporter.
type Retention struct {
	reporter retention.Reporter
	kinds    labelCounters
}

// NewRetention returns a Retention that passes reports on to a reporter.
func NewRetention(to retention.Reporter, r prometheus.Registerer) *Retention {
	var names []string
	for _, kind := range retention.Kinds() {
		names = append(names, string(kind))
	}
	return &Retention{to, newLabelCounters(r, prometheus.CounterOpts{
		Name: "tollgate_records_removed_total",
		Help: "Old records that were removed, by kind.",
	}, "kind", names...)}
}

// Removed counts the records that a sweep removed.
func (k *Retention) Removed(removed []retention.Removed) {
	for _, r := range removed {
		k.kinds.addTo(string(r.Kind), r.Count)
	}
	k.reporter.Removed(removed)
}

// Failed passes the error on.
func (k *Retention) Failed(err error) { k.reporter.Failed(err) }
