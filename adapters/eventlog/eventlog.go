// Package eventlog writes what happens inside the service to its log: rate limit configurations
// that are loaded or refused, notices and events that cannot be delivered, mirrors that are read,
// and old records that are removed.
package eventlog

import (
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/ports/report"
)

// manyRules is the number of rules from which on the memory of parsing them is returned to the
// system at once. This takes a tenth of a second.
const manyRules = 10_000

// Log writes events to the log. It has neither the recipients of notices nor the URLs of webhooks.
// It implements [report.Reporter].
type Log struct {
	log              *logrus.Entry
	rulesInForce     atomic.Bool
	deliveriesFailed atomic.Bool // the service itself fails, and the log says so
}

var _ report.Reporter = (*Log)(nil)

// New returns a Log that writes to log.
func New(log *logrus.Entry) *Log { return &Log{log: log} }

// Report implements [report.Reporter].
func (l *Log) Report(e any) {
	switch e := e.(type) {
	case reload.InForce:
		l.logRules(e)
	case reload.Rejected:
		l.logRejection(e)
	case notices.Failed:
		l.log.WithError(e.Err).WithField("kind", string(e.Kind)).Warn("a notice could not be delivered")
	case notices.Dropped:
		l.log.WithField("notices", e.Count).Warn("notices were dropped")
	case retention.Swept:
		l.logSweep(e)
	case learning.GatherFailed:
		l.log.WithError(e.Err).
			Warn("what sign-ins have taught about everybody could not be gathered; it is kept, and the next attempt follows")
	case delegating.RecheckFailed:
		l.log.WithError(e.Err).Warn("policies of publishers could not be checked; the next attempt follows")
	case reviewing.ReminderFailed:
		l.log.WithError(e.Err).
			Warn("reviewers and submitters could not be notified of reviews; the next attempt follows")
	case browsing.IndexFailed:
		l.log.WithError(e.Err).Warn("the index of the catalogue could not be made; the next attempt follows")
	case tokens.ReminderFailed:
		l.log.WithError(e.Err).Warn("the end of tokens could not be announced; the next attempt follows")
	case deciding.ReadFailed:
		l.log.WithError(e.Err).WithField("age", e.Age.Round(time.Millisecond).String()).
			Warn("access rules and listings could not be read; calls are decided by older ones, at most as old as DECIDE_STALE_MAX, and the next attempt follows")
	case deciding.ReadAgain:
		l.log.Info("access rules and listings are read again")
	case deciding.RecordFailed:
		l.log.WithError(e.Err).Warn("denied calls could not be written to the audit log; the next attempt follows")
	case notifying.Attempted:
		l.logAttempt(e.Delivery)
	case notifying.Counted:
		l.deliveriesFailed.Store(false) // the database works
	case notifying.DeliveryFailed:
		l.logDeliveryFailure(e.Err)
	case watching.Asked:
		if e.Failures == 1 {
			l.log.WithFields(logrus.Fields{"serverName": e.Name.String(), "problem": e.Problem}).
				Info("a remote could not be asked for its tools; the next attempt follows")
		}
	case watching.WatchFailed:
		l.log.WithError(e.Err).Warn("remotes could not be asked for their tools; the next attempt follows")
	case mirroring.Synced:
		l.logSync(e)
	case mirroring.SyncFailed:
		l.logSyncFailure(e)
	}
}

func (l *Log) logRules(e reload.InForce) {
	l.rulesInForce.Store(true)
	l.log.WithFields(logrus.Fields{"domains": e.Domains, "rules": e.Rules}).Info("rate limit configuration is in force")
	if e.Rules >= manyRules {
		debug.FreeOSMemory()
	}
}

// logRejection logs everything that is wrong with a configuration.
func (l *Log) logRejection(e reload.Rejected) {
	line := l.log.WithError(e.Err)
	if l.rulesInForce.Load() {
		line.Error("rate limit configuration is refused; the previous one stays in force")
	} else {
		line.Error("rate limit configuration is refused, and there is no previous one")
	}
}

// logSweep logs how many records of each kind were removed, if any, and the error.
func (l *Log) logSweep(e retention.Swept) {
	if len(e.Removed) > 0 {
		line := l.log
		for _, of := range e.Removed {
			line = line.WithField(string(of.Kind), of.Count)
		}
		line.Info("old records were removed")
	}
	if e.Err != nil {
		l.log.WithError(e.Err).Warn("old records could not be removed")
	}
}

// logAttempt logs an attempt that failed: as a warning if it was the last one.
func (l *Log) logAttempt(tried event.Delivery) {
	if tried.State == event.Delivered {
		return
	}
	line := l.log.WithFields(logrus.Fields{
		"webhook": string(tried.Webhook), "event": string(tried.Event), "type": string(tried.Type),
		"serverName": tried.Name.String(),
		"attempt":    tried.Attempts, "problem": tried.Problem,
	})
	if tried.State == event.Dead {
		line.Warn("an event could not be delivered and is dead")
	} else {
		line.Info("an event could not be delivered; the next attempt follows")
	}
}

// logDeliveryFailure logs an error of the service itself: as a warning if it is the first one since
// the database worked, because there is one every few seconds while it is away.
func (l *Log) logDeliveryFailure(err error) {
	level := logrus.WarnLevel
	if l.deliveriesFailed.Swap(true) {
		level = logrus.DebugLevel
	}
	l.log.WithError(err).Log(level, "events could not be delivered; the next attempt follows")
}

// logSync logs a read that changed something, or refused something.
func (l *Log) logSync(e mirroring.Synced) {
	if len(e.Summary.Count) == 0 {
		return
	}
	line := l.log.WithFields(logrus.Fields{
		"mirror": string(e.Name), "records": e.Summary.Records, "servers": e.Summary.Servers,
	})
	for verdict, n := range e.Summary.Count {
		line = line.WithField(string(verdict), n)
	}
	line.Info("another registry was read")
}

func (l *Log) logSyncFailure(e mirroring.SyncFailed) {
	if e.Name == "" {
		l.log.WithError(e.Err).Warn("the mirrors could not be listed; the next attempt follows")
		return
	}
	l.log.WithError(e.Err).WithField("mirror", string(e.Name)).
		Warn("another registry could not be read; what it listed before stays listed, and the next attempt follows")
}

// NewLog returns the service's log, written to w. level is a name that logrus.ParseLevel takes; any
// other means info. format is json for JSON lines, any other means text.
func NewLog(w io.Writer, level, format string) *logrus.Entry {
	log := logrus.New()
	log.SetOutput(w)
	if parsed, err := logrus.ParseLevel(level); err == nil {
		log.SetLevel(parsed)
	}
	if format == "json" {
		log.SetFormatter(&logrus.JSONFormatter{
			TimestampFormat: time.RFC3339Nano,
			FieldMap: logrus.FieldMap{
				logrus.FieldKeyMsg:   "@message",
				logrus.FieldKeyTime:  "@timestamp",
				logrus.FieldKeyLevel: "level",
			},
		})
	} else {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true})
	}
	return logrus.NewEntry(log)
}
