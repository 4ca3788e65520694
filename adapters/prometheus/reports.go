package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
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

// Results of questions to remotes, besides failed.
const (
	toolsSame     = "same"    // as the approved tools, or as before
	toolsChanged  = "changed" // others than the approved ones, for the first time
	toolsUnstable = "unstable"
)

// Reports counts the events of work that no caller waits for. It implements [report.Reporter].
type Reports struct {
	notices    labelCounters
	removed    labelCounters
	deliveries labelCounters
	questions  labelCounters

	eventsPending, eventsDead, reviewsPending, toolsChanged prometheus.Gauge

	mirrors *mirrors
}

var _ report.Reporter = (*Reports)(nil)

// Registerers are where the metrics of each part are registered. The metrics of a part that does not run
// are not shown: zeros would only mislead.
type Registerers struct {
	Auth     prometheus.Registerer
	Registry prometheus.Registerer
	Either   prometheus.Registerer // for metrics of both parts
	All      prometheus.Registerer // for the metrics of every part
}

// NewReports returns a Reports.
func NewReports(r Registerers) *Reports {
	return &Reports{
		notices: newLabelCounters(r.Auth, "tollgate_notices_total", "Notices to people about their accounts, by outcome.",
			"outcome", noticeSent, noticeWithheld, failed, noticeDropped),
		removed: newLabelCounters(r.All, "tollgate_records_removed_total", "Old records that were removed, by kind.", "kind", each.Strings(retention.Kinds())...),
		deliveries: newLabelCounters(r.Registry, "tollgate_webhook_attempts_total",
			"Attempts to deliver an event to a webhook, by outcome.", "outcome", deliveryDone, failed, deliveryDead),
		eventsPending: newGauge(r.Registry, "tollgate_webhook_events_pending",
			"Events that wait for their delivery to a webhook, of all instances."),
		eventsDead: newGauge(r.Registry, "tollgate_webhook_events_dead",
			"Events whose delivery to a webhook was given up, of all instances."),
		reviewsPending: newGauge(r.Registry, "tollgate_reviews_pending",
			"Documents that wait for review, of all instances."),
		questions: newLabelCounters(r.Registry, "tollgate_tools_asked_total", "Questions of this instance to remotes for their tools, by result.",
			"result", toolsSame, toolsChanged, toolsUnstable, failed),
		toolsChanged: newGauge(r.Registry, "tollgate_tools_changed",
			"Versions with a remote that shows other tools than the approved ones, of all instances."),
		mirrors: newMirrors(r.Registry),
	}
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
	case watching.Asked:
		v.questions.increment(answerOutcome(&e))
	case watching.Counted:
		v.toolsChanged.Set(float64(e.Changed))
	case mirroring.Synced, mirroring.SyncFailed, mirroring.Listed:
		v.mirrors.report(e)
	}
}

func answerOutcome(e *watching.Asked) string {
	switch {
	case e.Problem != "":
		return failed
	case e.Unstable:
		return toolsUnstable
	case e.Changed:
		return toolsChanged
	}
	return toolsSame
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
	newGaugeFunc(r, "tollgate_notices_queued", "Notices that wait to be sent.", func() float64 { return float64(n.QueueLength()) })
}

// logHook counts log lines.
type logHook struct {
	levels map[logrus.Level]prometheus.Counter
}

// CountLog counts the lines that log writes from now on, by level.
func CountLog(log *logrus.Logger, r prometheus.Registerer) {
	counts := newCounters(r, "tollgate_log_entries_total", "Lines that were logged.", "level")
	h := logHook{map[logrus.Level]prometheus.Counter{}}
	for _, level := range logrus.AllLevels {
		h.levels[level] = counts.WithLabelValues(level.String())
	}
	log.AddHook(h)
}

func (logHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h logHook) Fire(e *logrus.Entry) error {
	h.levels[e.Level].Inc()
	return nil
}

// MeasureLeases registers the metrics of leases on counters.
func MeasureLeases(s *lease.Stats, r prometheus.Registerer) {
	counter := func(name, help string, value func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 {
			return float64(value())
		})
	}
	newGaugeFunc(r, "tollgate_counter_lease_keys", "Hot keys on whose counters this instance has a lease.",
		func() float64 { return float64(s.Keys.Load()) })
	r.MustRegister(
		counter("tollgate_counter_lease_decisions_total",
			"Decisions about hot keys that needed no call to the counter store, counted twice a second.", s.Hits.Load),
		counter("tollgate_counter_lease_hits_taken_total", "Hits that were taken from the counter store as shares.",
			s.Taken.Load),
		counter("tollgate_counter_lease_hits_returned_total",
			"Hits of shares that were given back to the counter store.", s.Given.Load),
	)
}
