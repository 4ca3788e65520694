package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

// Reviews shows how many reviews are pending, and passes the reports on. It implements
// reviews.Reporter.
type Reviews struct {
	reporter reviewing.Reporter
	pending  prometheus.Gauge
}

// NewReviews returns a Reviews that passes reports on to a reporter.
func NewReviews(to reviewing.Reporter, r prometheus.Registerer) *Reviews {
	v := &Reviews{reporter: to, pending: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tollgate_reviews_pending",
		Help: "Documents that wait for review, of all instances.",
	})}
	r.MustRegister(v.pending)
	return v
}

// Counted sets the gauge.
func (v *Reviews) Counted(pending int) {
	v.pending.Set(float64(pending))
	v.reporter.Counted(pending)
}

// ReminderFailed passes the error on.
func (v *Reviews) ReminderFailed(err error) { v.reporter.ReminderFailed(err) }
