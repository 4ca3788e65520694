package wiring

import (
	"github.com/google/wire"
	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/decisionlog"
	"github.com/tollgate-dev/tollgate/adapters/eventlog"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// countedSet provides sign-in, audit log, password hashes and changes of the registry with metrics.
var countedSet = wire.NewSet(
	prometheus.NewSignIn, wire.Bind(new(authapi.SignIn), new(*prometheus.SignIn)), prometheus.NewAudit, countTransactions,
	countAuditEvents, measureHasher,
	countDecisions, countSeenTools, prometheus.NewPublisher, prometheus.NewProver, wire.Bind(new(registryapi.Prover), new(*prometheus.Prover)),
)

// uncountedSet provides for operator commands what countedSet provides for the service.
var uncountedSet = wire.NewSet(
	newTransactions, newAuditLog, newHasher,
)

func newTransactions(db *database.DB) transaction.Runner { return db }

func newAuditLog(db *database.DB) authstore.AuditLog { return authrecords.NewAuditLog(db) }

func newHasher(c argon.Config, e secrets.Entropy) (secrets.PasswordHasher, error) {
	return argon.New(c, e)
}

func newRegisterer(r *prometheus.Registry) metrics.Registerer { return r }

func newPartMetrics(p settings.Parts, r metrics.Registerer) prometheus.Registerers {
	shownIf := func(runs bool) metrics.Registerer {
		if runs {
			return r
		}
		return metrics.NewRegistry()
	}
	return prometheus.Registerers{
		Auth: shownIf(p.Auth), Registry: shownIf(p.Registry), Either: shownIf(p.Auth || p.Registry), All: r,
	}
}

func countTransactions(db *database.DB, a *prometheus.Audit) transaction.Runner {
	return a.Transactions(db)
}

func countAuditEvents(db *database.DB, a *prometheus.Audit) authstore.AuditLog {
	return a.Log(authrecords.NewAuditLog(db))
}

func countDecisions(m prometheus.Registerers) deciding.Count {
	return prometheus.NewDecisions(m.Registry).Count
}

func countSeenTools(m prometheus.Registerers) deciding.CountTool {
	return prometheus.NewSeenTools(m.Registry)
}

func newCallLog(log *logrus.Entry) deciding.Log { return decisionlog.New(log).DecidedCall }

func measureHasher(c argon.Config, e secrets.Entropy, m prometheus.Registerers) (secrets.PasswordHasher, error) {
	h, err := argon.New(c, e)
	if err != nil {
		return nil, err
	}
	h.Measure(m.Auth)
	return h, nil
}

// newReporter returns what logs and counts the work that no caller waits for.
func newReporter(log *logrus.Entry, m prometheus.Registerers) report.Reporter {
	return report.All{eventlog.New(log), prometheus.NewReports(m)}
}

// newLogReporter is newReporter for the rate limit service alone, which counts what it does itself.
func newLogReporter(log *logrus.Entry) report.Reporter { return eventlog.New(log) }

// measureCounters returns the counter store with metrics, and with tracing if it is on. Counters in
// the process have neither: measuring would cost more than counting.
func measureCounters(c counter.Chosen, t otlp.Tracing, r metrics.Registerer) counter.Store {
	measured := prometheus.NewCounters(c.Store, r)
	switch {
	case c.System == "":
		return c.Store
	case t.Enabled():
		return t.Counters(measured, c.System)
	default:
		return measured
	}
}

// openPlugins finds the plugins. Their calls have metrics, and tracing if it is on.
func openPlugins(
	c pluginhost.Config, t otlp.Tracing, m prometheus.Registerers, log *logrus.Entry,
) (*pluginhost.Host, func(), error) {
	if t.Enabled() {
		c.Interceptor = t.PluginCall
	}
	host, cleanup, err := pluginhost.Open(c, log)
	if err != nil {
		return nil, nil, err
	}
	host.RegisterMetrics(m.Either)
	return host, cleanup, nil
}
