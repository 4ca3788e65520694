package wiring

import (
	"github.com/google/wire"
	metrics "github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/argon"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/ports/auditlog"
	"github.com/tollgate-dev/tollgate/ports/entropy"
	"github.com/tollgate-dev/tollgate/ports/passwords"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// countedSet counts what becomes of sign-ins, of what the audit log tells, of
// password hashes, and of changes of the registry.
var countedSet = wire.NewSet(
	prometheus.NewSignIn, wire.Bind(new(authapi.SignIn), new(*prometheus.SignIn)),
	prometheus.NewAudit,
	countedTransactions, wire.Bind(new(transaction.Runner), new(*prometheus.Transactions)),
	countedAuditLog, wire.Bind(new(auditlog.Log), new(*prometheus.AuditLog)),
	countedHasher, wire.Bind(new(passwords.Hasher), new(*argon.Hasher)),
	prometheus.NewPublisher, prometheus.NewRetention,
)

// uncountedSet gives to operator commands, which end before anybody could ask
// for metrics, what countedSet gives to the service.
var uncountedSet = wire.NewSet(
	transactions,
	relational.NewAuditLog, wire.Bind(new(auditlog.Log), new(*relational.AuditLog)),
	argon.New, wire.Bind(new(passwords.Hasher), new(*argon.Hasher)),
)

func transactions(db *relational.DB) transaction.Runner { return db }

func countedTransactions(db *relational.DB, a *prometheus.Audit) *prometheus.Transactions {
	return a.Transactions(db)
}

func countedAuditLog(db *relational.DB, a *prometheus.Audit) *prometheus.AuditLog {
	return a.Log(relational.NewAuditLog(db))
}

func countedHasher(c argon.Config, e entropy.Source, r metrics.Registerer) (*argon.Hasher, error) {
	h, err := argon.New(c, e)
	if err != nil {
		return nil, err
	}
	h.Measure(r)
	return h, nil
}
