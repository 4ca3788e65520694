package readcache

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of a Cache.
type metrics struct {
	reads               *prometheus.CounterVec
	hits, misses, stale prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{reads: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_registry_cache_reads_total",
		Help: "Reads of the registry, by where the response came from: the cache (hit), the database (miss), or the cache while the database is away (stale).",
	}, []string{"result"})}
	m.hits, m.misses, m.stale = m.reads.WithLabelValues("hit"), m.reads.WithLabelValues("miss"),
		m.reads.WithLabelValues("stale")
	return m
}

// Measure registers the metrics in r.
func (c *Cache[K, R]) Measure(r prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	r.MustRegister(c.metrics.reads,
		gauge("tollgate_registry_cache_entries", "Responses to reads of the registry that are kept.", func() float64 {
			entries, _ := c.Kept()
			return float64(entries)
		}),
		gauge("tollgate_registry_cache_bytes",
			"Memory of the responses to reads of the registry that are kept, in bytes.", func() float64 {
				_, bytes := c.Kept()
				return float64(bytes)
			}),
		gauge("tollgate_registry_stale_seconds",
			"While the database is away: seconds since the kept responses were known to be current. Otherwise 0.",
			func() float64 { return c.staleAge().Seconds() }),
	)
}
