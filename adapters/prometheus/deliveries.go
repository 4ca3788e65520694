package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
)

// Outcomes of attempts to deliver an event, besides failed, after which others follow.
const (
	deliveryDone = "delivered"
	deliveryDead = "dead" // the attempt failed and was the last one
)

// Deliveries counts attempts to deliver events, and passes the reports on. It implements
// deliver.Reporter.
type Deliveries struct {
	reporter      notifying.Reporter
	outcomes      labelCounters
	pending, dead prometheus.Gauge
}

// NewDeliveries returns a Deliveries that passes reports on to a reporter.
func NewDeliveries(to notifying.Reporter, r prometheus.Registerer) *Deliveries {
	d := &Deliveries{
		reporter: to,
		outcomes: newLabelCounters(r, prometheus.CounterOpts{
			Name: "tollgate_webhook_attempts_total",
			Help: "Attempts to deliver an event to a webhook, by outcome.",
		}, "outcome", deliveryDone, failed, deliveryDead),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_events_pending",
			Help: "Events that wait for their delivery to a webhook, of all instances.",
		}),
		dead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_events_dead",
			Help: "Events whose delivery to a webhook was given up, of all instances.",
		}),
	}
	r.MustRegister(d.pending, d.dead)
	return d
}

// Attempted counts an attempt.
func (d *Deliveries) Attempted(tried event.Delivery) {
	switch tried.State {
	case event.Delivered:
		d.outcomes.increment(deliveryDone)
	case event.Dead:
		d.outcomes.increment(deliveryDead)
	case event.Pending:
		d.outcomes.increment(failed)
	}
	d.reporter.Attempted(tried)
}

// Counted sets the gauges.
func (d *Deliveries) Counted(pending, dead int) {
	d.pending.Set(float64(pending))
	d.dead.Set(float64(dead))
	d.reporter.Counted(pending, dead)
}

// DeliveryFailed passes the error on.
func (d *Deliveries) DeliveryFailed(err error) { d.reporter.DeliveryFailed(err) }
