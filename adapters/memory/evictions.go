package memory

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// warningInterval is the minimum time between two warnings about a full store.
const warningInterval = time.Minute

// evictions counts live counters that were removed because the store was full.
type evictions struct {
	count    atomic.Uint64
	warnedAt atomic.Int64 // nanoseconds since the epoch; 0 for never
	log      *logrus.Entry
}

// recordEviction counts an eviction, and logs a warning at most once per warningInterval. The
// caller holds a lock, so the log is written in another goroutine.
func (e *evictions) recordEviction(now int64) {
	count := e.count.Add(1)
	if e.log == nil {
		return
	}
	last := e.warnedAt.Load()
	if (last == 0 || now-last >= int64(warningInterval)) && e.warnedAt.CompareAndSwap(last, now) {
		go e.log.WithField("evicted", count).
			Warn("the process has its maximum number of counters, and removes some before their windows end; raise COUNTERS_IN_PROCESS_MAX")
	}
}

// Measure registers the metrics of the store under the given name. It also turns on a warning in
// the log, at most once a minute, while live counters are removed because the store is full. It
// must be called once, before the store is used.
func (m *Counters) Measure(store string, r prometheus.Registerer, log *logrus.Entry) {
	m.evicted.log = log.WithField("store", store)
	labels := prometheus.Labels{"store": store}
	r.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "tollgate_counters_evicted_total",
			Help:        "Counters that were removed before their windows ended because the store in the process was full.",
			ConstLabels: labels,
		}, func() float64 { return float64(m.Evicted()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "tollgate_counters_in_process",
			Help:        "Counters in the process, with expired ones that were not removed yet.",
			ConstLabels: labels,
		}, func() float64 { return float64(m.Len()) }),
	)
}
