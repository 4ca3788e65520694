package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth/notices"
)

// Notices counts the outcomes of notices, and passes them on.
type Notices struct {
	reporter notices.Reporter
	outcomes labelCounters
}

// NewNotices returns a reporter that counts what it passes on.
func NewNotices(to notices.Reporter, r prometheus.Registerer) *Notices {
	return &Notices{to, newLabelCounters(r, prometheus.CounterOpts{
		Name: "tollgate_notices_total",
		Help: "Notices to people about their accounts, by outcome.",
	}, "outcome", "sent", "withheld", failed, "dropped")}
}

// Sent counts a notice that went out.
func (n *Notices) Sent(kind notices.Kind) {
	n.outcomes.increment("sent")
	n.reporter.Sent(kind)
}

// Withheld counts a notice that was not sent on purpose.
func (n *Notices) Withheld(kind notices.Kind) {
	n.outcomes.increment("withheld")
	n.reporter.Withheld(kind)
}

// Failed counts a notice that could not be delivered.
func (n *Notices) Failed(kind notices.Kind, err error) {
	n.outcomes.increment(failed)
	n.reporter.Failed(kind, err)
}

// Dropped counts notices that were dropped because the queue was full or the service stopped.
func (n *Notices) Dropped(count uint64) {
	n.outcomes.addTo("dropped", int(count))
	n.reporter.Dropped(count)
}

// WatchNotices registers a gauge of the length of the queue of n, which may be nil.
func WatchNotices(n *notices.Notifier, r prometheus.Registerer) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tollgate_notices_queued",
		Help: "Notices that wait to be sent.",
	}, func() float64 { return float64(n.QueueLength()) }))
}
