package authrecords_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestAuthStores runs the contract tests of the stores of authentication on every kind of database.
func TestAuthStores(t *testing.T) {
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			authstoretest.Run(t, func(t *testing.T) authstoretest.Stores { return openStores(t, open(t)) })
			t.Run("removal continues after the first batch", func(t *testing.T) { removesAllBatches(t, open(t)) })
		})
	}
}

func openStores(t *testing.T, db *relationaltest.Database) authstoretest.Stores {
	t.Helper()
	all := newStores(t, db.DB)
	return authstoretest.Stores{
		Accounts: all.Accounts, Devices: all.Devices,
		DeviceTokens: all.DeviceTokens,
		Sessions: struct {
			authstore.Sessions
			authstore.SessionHistory
			authstore.SessionLevels
			authstore.SessionRetention
		}{all.Sessions, all.SessionHistory, all.SessionLevels, all.SessionRetention},
		RefreshTokens: all.RefreshTokens,
		Cookies:       all.SessionCookies, Challenges: all.Challenges,
		PendingLogins: all.PendingLogins,
		Lockouts:      all.Lockouts, AuditLog: authrecords.NewAuditLog(db.DB),
		Keys:    authrecords.NewKeyring(db.DB),
		History: historyOf(all), Runner: db.DB, APITokens: struct {
			authstore.APITokens
			authstore.APITokenExpiry
		}{all.APITokens, all.APITokenExpiry},
		Passkeys:  all.Passkeys,
		Companies: authstoretest.Companies{Providers: all.Providers, Identities: all.Identities, Logins: all.Logins},
		AddService: func(t *testing.T, name string, active bool) {
			t.Helper()
			state := map[bool]string{true: "active", false: "disabled"}[active]
			if _, err := db.DB.Exec(t.Context(), `INSERT INTO service_accounts
				(name, description, state, workloads, created_at) VALUES (?, '', ?, '[]', ?)`,
				name, state, database.NewInstant(time.Now())); err != nil {
				t.Fatal(err)
			}
		},
		Links:     all.Links,
		Directory: all.Directory, Operators: all.Operators,
		Operate: func(ctx context.Context, user auth.UserID) error {
			_, err := db.Exec(ctx, "INSERT INTO grants (id, holder, action, pattern) VALUES (?, ?, 'operate', '*')",
				string(user), string(user))
			return err
		},
	}
}

// removesAllBatches deletes more rows than one transaction deletes.
func removesAllBatches(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	const rows = 5_003
	lockouts, now := newStores(t, db.DB).Lockouts, time.Date(2031, time.March, 14, 0, 0, 0, 0, time.UTC)
	err := db.Atomically(t.Context(), func(ctx context.Context) error {
		for i := range rows {
			key := auth.LockoutKey(fmt.Sprintf("device:%d", i))
			if err := lockouts.Update(ctx, key, func(l *auth.Lockout) error {
				l.LockedUntil = now
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	must.Succeed(t, err)
	for _, want := range []int{rows, 0} {
		if n, err := lockouts.DeleteBefore(t.Context(), now.Add(time.Second)); err != nil || n != want {
			t.Errorf("DeleteBefore = %d, %v, want %d", n, err, want)
		}
	}
}

// newStores returns the stores of a database, with the same key in all tests.
func newStores(t testing.TB, db *database.DB) authrecords.Stores {
	t.Helper()
	s, err := authrecords.NewStores(db, auth.RootSecret(strings.Repeat("k", 32)))
	must.Succeed(t, err)
	return s
}

// historyStore has all ports of the counts of the history score.
type historyStore struct {
	authstore.HistoryCounts
	authstore.HistoryDeferrals
	authstore.HistoryTotals
}

func historyOf(s authrecords.Stores) historyStore {
	return historyStore{s.HistoryCounts, s.HistoryDeferrals, s.HistoryTotals}
}
