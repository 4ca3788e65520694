package argon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics contains the metrics of the queue of hashes.
type metrics struct {
	hashes                  *prometheus.CounterVec
	done, refused, canceled prometheus.Counter
	waited, took            prometheus.Histogram
}

func newMetrics() metrics {
	m := metrics{
		hashes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_password_hashes_total",
			Help: "Password hashes, by their outcome.",
		}, []string{"outcome"}),
		waited: newHistogram("tollgate_password_hash_wait_seconds", "How long password hashes waited for a core."),
		took:   newHistogram("tollgate_password_hash_duration_seconds", "How long password hashes took on their core."),
	}
	m.done = m.hashes.WithLabelValues("done")
	m.refused = m.hashes.WithLabelValues("refused")   // the queue was full
	m.canceled = m.hashes.WithLabelValues("canceled") // the caller canceled while it waited
	return m
}

func newHistogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	})
}

func (m *metrics) recordHash(waited, took time.Duration) {
	m.waited.Observe(waited.Seconds())
	m.took.Observe(took.Seconds())
	m.done.Inc()
}

// Measure registers metrics in r: the number of hashes by outcome, how long they waited and ran,
// and how many wait.
func (h *Hasher) Measure(r prometheus.Registerer) {
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tollgate_password_hashes_waiting",
		Help: "Password hashes that wait for a core.",
	}, func() float64 { return float64(h.countWaiting()) })
	r.MustRegister(h.metrics.hashes, h.metrics.waited, h.metrics.took, waiting)
}

// countWaiting returns how many hashes wait. The two lengths are not read at the same time, so the
// difference may be negative for a moment.
func (h *Hasher) countWaiting() int { return max(0, len(h.queue)-len(h.cores)) }
