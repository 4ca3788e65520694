package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/report"
)

// Outcomes of notices besides failed.
const (
	noticeSent     = "sent"
	noticeWithheld = "withheld" // on purpose
	noticeDropped  = "dropped"  // the queue was full, or the service stopped
)

// Outcomes of attempts to deliver an event, besides failed, after which others follow.
const (
	deliveryDone = "delivered"
	deliveryDead = "dead" // the attempt failed and was the last one
)

// Reports counts the events of work that no caller waits for. It implements [report.Reporter].
type Reports struct {
	notices    labelCounters
	removed    labelCounters
	deliveries labelCounters

	eventsPending, eventsDead, reviewsPending prometheus.Gauge

	mirrors *mirrors
}

var _ report.Reporter = (*Reports)(nil)

// Registerers are where the metrics of each part are registered.
type Registerers struct {
	Auth     prometheus.Registerer
	Registry prometheus.Registerer
	All      prometheus.Registerer // for the metrics of every part
}

// NewReports returns a Reports.
func NewReports(r Registerers) *Reports {
	var kinds []string
	for _, kind := range retention.Kinds() {
		kinds = append(kinds, string(kind))
	}
	v := &Reports{
		notices: newLabelCounters(r.Auth, prometheus.CounterOpts{
			Name: "tollgate_notices_total",
			Help: "Notices to people about their accounts, by outcome.",
		}, "outcome", noticeSent, noticeWithheld, failed, noticeDropped),
		removed: newLabelCounters(r.All, prometheus.CounterOpts{
			Name: "tollgate_records_removed_total",
			Help: "Old records that were removed, by kind.",
		}, "kind", kinds...),
		deliveries: newLabelCounters(r.Registry, prometheus.CounterOpts{
			Name: "tollgate_webhook_attempts_total",
			Help: "Attempts to deliver an event to a webhook, by outcome.",
		}, "outcome", deliveryDone, failed, deliveryDead),
		eventsPending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_events_pending",
			Help: "Events that wait for their delivery to a webhook, of all instances.",
		}),
		eventsDead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_webhook_events_dead",
			Help: "Events whose delivery to a webhook was given up, of all instances.",
		}),
		reviewsPending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_reviews_pending",
			Help: "Documents that wait for review, of all instances.",
		}),
		mirrors: newMirrors(r.Registry),
	}
	r.Registry.MustRegister(v.eventsPending, v.eventsDead, v.reviewsPending)
	return v
}

// Report implements [report.Reporter].
func (v *Reports) Report(e any) {
	switch e := e.(type) {
	case notices.Sent:
		v.notices.increment(noticeSent)
	case notices.Withheld:
		v.notices.increment(noticeWithheld)
	case notices.Failed:
		v.notices.increment(failed)
	case notices.Dropped:
		v.notices.addTo(noticeDropped, int(e.Count))
	case retention.Swept:
		for _, r := range e.Removed {
			v.removed.addTo(string(r.Kind), r.Count)
		}
	case notifying.Attempted:
		v.deliveries.increment(deliveryOutcome(e.State))
	case notifying.Counted:
		v.eventsPending.Set(float64(e.Pending))
		v.eventsDead.Set(float64(e.Dead))
	case reviewing.Counted:
		v.reviewsPending.Set(float64(e.Pending))
	case mirroring.Synced, mirroring.SyncFailed, mirroring.Listed:
		v.mirrors.report(e)
	}
}

func deliveryOutcome(s event.State) string {
	switch s {
	case event.Delivered:
		return deliveryDone
	case event.Dead:
		return deliveryDead
	}
	return failed
}

// WatchNotices registers a gauge of the length of the queue of n, which may be nil.
func WatchNotices(n *notices.Notifier, r prometheus.Registerer) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tollgate_notices_queued",
		Help: "Notices that wait to be sent.",
	}, func() float64 { return float64(n.QueueLength()) }))
}
