package eventlog

import (
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/registry/event"
)

// Deliveries logs the attempts to deliver events that fail, without the URL of the webhook. It
// implements deliver.Reporter.
type Deliveries struct{ log *logrus.Entry }

// NewDeliveries returns a Deliveries that writes to log.
func NewDeliveries(log *logrus.Entry) Deliveries { return Deliveries{log} }

// Attempted logs an attempt that failed: as a warning if it was the last one.
func (d Deliveries) Attempted(tried event.Delivery) {
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

// Counted logs nothing.
func (Deliveries) Counted(int, int) {}

// DeliveryFailed logs an error of the service itself.
func (d Deliveries) DeliveryFailed(err error) {
	d.log.WithError(err).Warn("events could not be delivered; the next attempt follows")
}
