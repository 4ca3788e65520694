package eventlog

import "github.com/sirupsen/logrus"

// Reminder logs the errors of notices to reviewers.
type Reminder struct{ log *logrus.Entry }

// NewReminder returns a Reminder that writes to log.
func NewReminder(log *logrus.Entry) *Reminder { return &Reminder{log} }

// ReminderFailed implements reviews.Reporter.
func (r *Reminder) ReminderFailed(err error) {
	r.log.WithError(err).Warn("reviewers could not be notified of what waits for them; the next attempt follows")
}
