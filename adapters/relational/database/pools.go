package database

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Measure adds metrics of the state of the database and of its pools of connections: "records", and
// "records_write" if transactions have their own pool.
func (d *DB) Measure(r prometheus.Registerer) {
	r.MustRegister(
		collectors.NewDBStatsCollector(d.reader.DB, "records"),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_database_available",
			Help: "1 while the database answers; 0 while it is away and calls fail at once.",
		}, func() float64 { return boolMetric(!d.dialect.Breaker.Refuses()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_database_writable",
			Help: "1 while the database accepts writes; 0 after one failed because of missing space or permission.",
		}, func() float64 { return boolMetric(!d.writes.failing.Load()) }),
	)
	if d.writer.DB != d.reader.DB {
		r.MustRegister(collectors.NewDBStatsCollector(d.writer.DB, "records_write"))
	}
}

// boolMetric returns 1 for true and 0 for false.
func boolMetric(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
