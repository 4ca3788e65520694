package eventlog

import "github.com/sirupsen/logrus"

// Recheck logs the errors of the search for keys of policies.
type Recheck struct{ log *logrus.Entry }

// NewRecheck returns a Recheck that writes to log.
func NewRecheck(log *logrus.Entry) *Recheck { return &Recheck{log} }

// RecheckFailed implements recheck.Reporter.
func (r *Recheck) RecheckFailed(err error) {
	r.log.WithError(err).Warn("policies of publishers could not be checked; the next attempt follows")
}
