package eventlog

import "github.com/sirupsen/logrus"

// Reminder logs the errors of notices of reviews. It implements reviews.Reporter.
type Reminder struct{ log *logrus.Entry }

// NewReminder returns a Reminder that writes to log.
func NewReminder(log *logrus.Entry) *Reminder { return &Reminder{log} }

// Counted implements reviews.Reporter. A number is no event.
func (*Reminder) Counted(int) {}

// ReminderFailed implements reviews.Reporter.
func (r *Reminder) ReminderFailed(err error) {
	r.log.WithError(err).Warn("reviewers and submitters could not be notified of reviews; the next attempt follows")
}
