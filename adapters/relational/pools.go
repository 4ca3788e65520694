package relational

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Measure adds the metrics of the pools of connections: "records", and where
// transactions have a pool of their own, that as "records_write".
func (d *DB) Measure(r prometheus.Registerer) {
	r.MustRegister(collectors.NewDBStatsCollector(d.reader.DB, "records"))
	if d.writer.DB != d.reader.DB {
		r.MustRegister(collectors.NewDBStatsCollector(d.writer.DB, "records_write"))
	}
}
