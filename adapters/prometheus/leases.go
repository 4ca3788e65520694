package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
)

// MeasureLeases registers the metrics of leases on counters.
func MeasureLeases(s *lease.Stats, r prometheus.Registerer) {
	counter := func(name, help string, value func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 {
			return float64(value())
		})
	}
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_counter_lease_keys", Help: "Hot keys on whose counters this instance has a lease.",
		}, func() float64 { return float64(s.Keys.Load()) }),
		counter("tollgate_counter_lease_decisions_total",
			"Decisions about hot keys that needed no call to the counter store, counted twice a second.", s.Hits.Load),
		counter("tollgate_counter_lease_hits_taken_total", "Hits that were taken from the counter store as shares.",
			s.Taken.Load),
		counter("tollgate_counter_lease_hits_returned_total",
			"Hits of shares that were given back to the counter store.", s.Given.Load),
	)
}
