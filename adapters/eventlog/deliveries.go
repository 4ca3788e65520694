package eventlog

import (
	"sync/atomic"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/registry/event"
)

// Deliveries logs the attempts to deliver events that fail, without the URL of the webhook. It
// implements deliver.Reporter.
type Deliveries struct {
	log     *logrus.Entry
	failing atomic.Bool // the service itself fails, and the log says so
}

// NewDeliveries returns a Deliveries that writes to log.
func NewDeliveries(log *logrus.Entry) *Deliveries { return &Deliveries{log: log} }

// Attempted logs an attempt that failed: as a warning if it was the last one.
func (d *Deliveries) Attempted(tried event.Delivery) {
	if tried.State == event.Delivered {
		return
	}
	line := d.log.WithFields(logrus.Fields{
		"webhook": string(tried.Webhook), "event": string(tried.Event), "type": string(tried.Type), "serverName": tried.Name.String(),
		"attempt": tried.Attempts, "problem": tried.Problem,
	})
	if tried.State == event.Dead {
		line.Warn("an event could not be delivered and is dead")
	} else {
		line.Info("an event could not be delivered; the next attempt follows")
	}
}

// Counted logs nothing. It shows that the database works.
func (d *Deliveries) Counted(int, int) { d.failing.Store(false) }

// DeliveryFailed logs an error of the service itself: as a warning if it is the first one since the
// database worked, because there is one every few seconds while it is away.
func (d *Deliveries) DeliveryFailed(err error) {
	level := logrus.WarnLevel
	if d.failing.Swap(true) {
		level = logrus.DebugLevel
	}
	d.log.WithError(err).Log(level, "events could not be delivered; the next attempt follows")
}
