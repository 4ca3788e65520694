package database_test

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/methodrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/transaction"
	"github.com/tollgate-dev/tollgate/ports/transaction/transactiontest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestTransactions(t *testing.T) {
	relationaltest.RunContract(t, transactiontest.Run,
		func(_ *testing.T, db *relationaltest.Database) transactiontest.Opened {
			grants := registryrecords.NewStores(db.DB, registryrecords.Config{}).Grants
			return transactiontest.Opened{Runner: db.DB, Grants: grants}
		})
}

// TestAFailedStatementIsNeverCommitted ignores a conflict and returns nil. Without the check of
// Atomically, PostgreSQL would roll back without an error.
func TestAFailedStatementIsNeverCommitted(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		grants, methods := registryrecords.NewStores(db.DB, registryrecords.Config{}).Grants, methodrecords.NewMethods(db.DB)
		err := db.Atomically(t.Context(), func(ctx context.Context) error {
			if err := grants.Add(ctx, registry.GrantRecord{Grant: registry.Grant{
				Holder: "a", Action: registry.ActionEdit, Pattern: anything(t),
			}}); err != nil {
				return err
			}
			taken := methods.Add(ctx, catalogue.Method{ID: catalogue.ListingID, Path: "/x"})
			if !fault.Is(taken, fault.Conflict) {
				t.Errorf("adding a taken id: %v", taken)
			}
			return nil
		})
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("the transaction ended with %v", err)
		}
		if got, err := grants.Of(t.Context(), "a"); err != nil || len(got) != 0 {
			t.Errorf("stored grants = %v, %v", got, err)
		}
	})
}

// TestConnectionsThatTheServerClosedAreReplaced ends all idle connections, as a restart of the
// server does. The next calls do not fail.
func TestConnectionsThatTheServerClosedAreReplaced(t *testing.T) {
	address := postgrestest.NewEmpty(t)
	db, operator := relationaltest.OpenPostgres(t, address), relationaltest.OpenPostgres(t, address)
	// two connections at once
	err := db.Atomically(t.Context(), func(ctx context.Context) error { return db.Ping(ctx) })
	must.Succeed(t, err)
	err = operator.Execute(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	must.Succeed(t, err)
	for range 3 {
		must.Succeed(t, db.Atomically(t.Context(), func(ctx context.Context) error { return db.Ping(ctx) }))
	}
}

func anything(t *testing.T) registry.Pattern {
	t.Helper()
	p, err := registry.ParsePattern("*")
	must.Succeed(t, err)
	return p
}

// TestLongSnapshots: a snapshot that is marked as long may take longer than a call, and so may each of its
// statements; another one may not.
func TestLongSnapshots(t *testing.T) {
	t.Parallel()
	config := relationaltest.PostgresConfig(postgrestest.NewEmpty(t))
	config.Timeout = 300 * time.Millisecond
	db, closeDB, err := postgres.Open(t.Context(), config)
	must.Succeed(t, err)
	t.Cleanup(closeDB)
	for long, ctx := range map[bool]context.Context{false: t.Context(), true: transaction.Long(t.Context())} {
		err := db.Snapshot(ctx, func(ctx context.Context) error {
			var text string
			return db.ScanRow(ctx, database.Query{Text: "SELECT CAST(pg_sleep(0.5) AS text)"}, &text)
		})
		if long != (err == nil) || err != nil && !fault.Is(err, fault.Unavailable) {
			t.Errorf("long %v: error %v", long, err)
		}
	}
}
