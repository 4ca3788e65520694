package settings

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry/event"
)

// Webhooks holds the settings of webhooks.
type Webhooks struct {
	RetryFor time.Duration `env:"WEBHOOK_RETRY_FOR" envDefault:"24h" desc:"how long an event that a webhook does not accept is sent again before it counts as dead; 1s to 720h"`
}

// The bounds of WEBHOOK_RETRY_FOR.
const (
	minRetryFor = time.Second
	maxRetryFor = 30 * 24 * time.Hour
)

// firstRetry is the time from the first attempt to deliver an event to the second.
const firstRetry = 5 * time.Second

// Validate returns an error that begins with the name of the setting if it is out of range.
func (w Webhooks) Validate() error {
	if w.RetryFor < minRetryFor || w.RetryFor > maxRetryFor {
		return fmt.Errorf("WEBHOOK_RETRY_FOR: %v is not between %v and %v", w.RetryFor, minRetryFor, maxRetryFor)
	}
	return nil
}

// DeliverySchedule returns when the delivery of an event is tried again.
func DeliverySchedule(w Webhooks) event.Schedule {
	return event.Schedule{First: firstRetry, For: w.RetryFor}
}
