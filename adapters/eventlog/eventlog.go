// Package eventlog writes what happens inside the service to its log: rate limit configurations
// that are loaded or refused, notices and events that cannot be delivered, and old records that are
// removed.
package eventlog

import (
	"runtime/debug"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
)

// manyRules is the number of rules from which on Loaded returns the memory of parsing to the system
// at once. This takes a tenth of a second.
const manyRules = 10_000

// Rules logs rate limit configurations. It implements reload.Reporter, which calls it from one
// goroutine.
type Rules struct {
	log    *logrus.Entry
	loaded bool // a configuration is in force
}

// NewRules returns a Rules that writes to log.
func NewRules(log *logrus.Entry) *Rules { return &Rules{log: log} }

// Loaded logs that a configuration is in force.
func (r *Rules) Loaded(domains, rules int) {
	r.loaded = true
	r.log.WithFields(logrus.Fields{"domains": domains, "rules": rules}).Info("rate limit configuration is in force")
	if rules >= manyRules {
		debug.FreeOSMemory()
	}
}

// Refused logs everything that is wrong with a configuration.
func (r *Rules) Refused(err error) {
	line := r.log.WithError(err)
	if r.loaded {
		line.Error("rate limit configuration is refused; the previous one stays in force")
	} else {
		line.Error("rate limit configuration is refused, and there is no previous one")
	}
}

// Notices logs the notices that are not delivered, without their recipients. It implements
// notices.Reporter.
type Notices struct{ log *logrus.Entry }

// NewNotices returns a Notices that writes to log.
func NewNotices(log *logrus.Entry) Notices { return Notices{log} }

// Sent logs nothing.
func (Notices) Sent(notices.Kind) {}

// Withheld logs nothing: a limit that is used up would fill the log.
func (Notices) Withheld(notices.Kind) {}

// Failed logs a notice that could not be delivered.
func (n Notices) Failed(kind notices.Kind, err error) {
	n.log.WithError(err).WithField("kind", string(kind)).Warn("a notice could not be delivered")
}

// Dropped logs how many notices were dropped because the queue was full or the service ended.
func (n Notices) Dropped(count uint64) {
	n.log.WithField("notices", count).Warn("notices were dropped")
}

// Retention logs what sweeps remove. It implements retention.Reporter.
type Retention struct{ log *logrus.Entry }

// NewRetention returns a Retention that writes to log.
func NewRetention(log *logrus.Entry) Retention { return Retention{log} }

// Removed logs how many records of each kind were removed, if any.
func (r Retention) Removed(removed []retention.Removed) {
	if len(removed) == 0 {
		return
	}
	line := r.log
	for _, of := range removed {
		line = line.WithField(string(of.Kind), of.Count)
	}
	line.Info("old records were removed")
}

// Failed logs the error of a sweep.
func (r Retention) Failed(err error) {
	r.log.WithError(err).Warn("old records could not be removed")
}
