package wiring

import (
	"github.com/google/wire"
	metrics "github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/registry/publish"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// countedSet counts what becomes of sign-ins, of what the audit log tells, of
// password hashes, and of changes of the registry.
var countedSet = wire.NewSet(
	newPartMetrics,
	countedSignIn, wire.Bind(new(authapi.SignIn), new(*prometheus.SignIn)),
	countedAudit,
	countedTransactions, wire.Bind(new(transaction.Runner), new(*prometheus.Transactions)),
	countedAuditLog, wire.Bind(new(authstore.AuditLog), new(*prometheus.AuditLog)),
	countedHasher, wire.Bind(new(secrets.PasswordHasher), new(*argon.Hasher)),
	countedPublisher,
)

// partMetrics is where the metrics of parts are shown. Those of a part that does
// not run are shown nowhere: zeros of it would only mislead.
type partMetrics struct {
	Auth     metrics.Registerer
	Registry metrics.Registerer
	Either   metrics.Registerer // of what both use
}

func newPartMetrics(p Parts, r metrics.Registerer) partMetrics {
	of := func(runs bool) metrics.Registerer {
		if runs {
			return r
		}
		return metrics.NewRegistry()
	}
	return partMetrics{Auth: of(p.Auth), Registry: of(p.Registry), Either: of(p.Auth || p.Registry)}
}

// uncountedSet gives to operator commands, which end before anybody could ask
// for metrics, what countedSet gives to the service.
var uncountedSet = wire.NewSet(
	transactions,
	relational.NewAuditLog, wire.Bind(new(authstore.AuditLog), new(*relational.AuditLog)),
	argon.New, wire.Bind(new(secrets.PasswordHasher), new(*argon.Hasher)),
)

func transactions(db *relational.DB) transaction.Runner { return db }

func countedSignIn(s *signin.Service, m partMetrics) *prometheus.SignIn {
	return prometheus.NewSignIn(s, m.Auth)
}

func countedAudit(m partMetrics) *prometheus.Audit { return prometheus.NewAudit(m.Auth) }

func countedTransactions(db *relational.DB, a *prometheus.Audit) *prometheus.Transactions {
	return a.Transactions(db)
}

func countedAuditLog(db *relational.DB, a *prometheus.Audit) *prometheus.AuditLog {
	return a.Log(relational.NewAuditLog(db))
}

func countedPublisher(p *publish.Publisher, m partMetrics) *prometheus.Publisher {
	return prometheus.NewPublisher(p, m.Registry)
}

func countedHasher(c argon.Config, e secrets.Entropy, m partMetrics) (*argon.Hasher, error) {
	h, err := argon.New(c, e)
	if err != nil {
		return nil, err
	}
	h.Measure(m.Auth)
	return h, nil
}
