package database_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/test/must"
)

// insertCountedLockouts returns the statement that adds lockouts in the form before migration 0007:
// two failures, a lock after five, one that was reset, and one with more failures than are allowed.
func insertCountedLockouts(kind string) string {
	first, until := "'2026-01-02T03:04:05.678901Z'", "'2026-01-02T03:19:05.678901Z'"
	if kind == "sqlite" {
		first, until = "1767323045678901", "1767323945678901"
	}
	return "INSERT INTO lockouts (key, failures, first_at, locked_until) VALUES " +
		"('two', 2, " + first + ", NULL), ('locked', 5, " + first + ", " + until + "), " +
		"('reset', 0, NULL, NULL), ('many', 1000, " + first + ", " + until + ")"
}

// TestLockoutsOfOlderVersions checks that migration 0007 keeps failures and locks.
func TestLockoutsOfOlderVersions(t *testing.T) {
	for kind, place := range emptyDatabases() {
		t.Run(kind, func(t *testing.T) {
			db := place(t)()
			all, err := db.Pending(t.Context())
			must.Succeed(t, err)
			if _, err := db.MigrateTo(t.Context(), slices.Index(all, "0007_lockout_window")); err != nil {
				t.Fatal(err)
			}
			must.Succeed(t, db.Execute(t.Context(), insertCountedLockouts(kind)))
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			lockouts, until := authStores(t, db).Lockouts, epoch.Add(15*time.Minute)
			for key, want := range map[auth.LockoutKey]auth.Lockout{
				"two": {Failures: slices.Repeat([]time.Time{epoch}, 2)}, "reset": {},
				"locked": {Failures: slices.Repeat([]time.Time{epoch}, 5), LockedUntil: until},
				"many":   {Failures: slices.Repeat([]time.Time{epoch}, auth.MaxLockoutThreshold), LockedUntil: until},
			} {
				if got, err := lockouts.Get(t.Context(), key); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s is %+v (%v), want %+v", key, got, err, want)
				}
			}
			for _, c := range []struct {
				before time.Time
				want   int
			}{{epoch, 1}, {epoch.Add(time.Second), 1}, {until, 0}, {until.Add(time.Second), 2}} {
				if n, err := lockouts.DeleteBefore(t.Context(), c.before); err != nil || n != c.want {
					t.Errorf("%d lockouts were over before %v (%v), want %d", n, c.before, err, c.want)
				}
			}
		})
	}
}

// TestEnrolmentsOfOlderVersions checks authenticators of a version that did not record enrolments:
// they are kept, active ones stay active, and inactive ones cannot be activated.
func TestEnrolmentsOfOlderVersions(t *testing.T) {
	for kind, place := range emptyDatabases() {
		t.Run(kind, func(t *testing.T) {
			db := place(t)()
			const before = 8 // the number of migrations before the one that records enrolments
			if _, err := db.MigrateTo(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			blob, moment := "x'01'", "1700000000000000"
			if kind == "postgres" {
				blob, moment = `'\x01'`, "'2023-11-14T22:13:20Z'"
			}
			for id, active := range map[string]string{
				"00000001-1234-4abc-8def-0123456789ab": "true", "00000002-1234-4abc-8def-0123456789ab": "false",
			} {
				err := db.Execute(t.Context(),
					`INSERT INTO accounts (id, email, name, phone, password_hash, state, mfa_secret, mfa_active, mfa_last_step,
					created_at, updated_at) VALUES ('`+id+`', '`+id+`@example.com', 'A', '', 'h', 'active', `+blob+`, `+
						active+`, 7, `+moment+`, `+moment+`)`)
				must.Succeed(t, err)
			}
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			accounts, err := authStores(t, db).Accounts.List(t.Context(), "", 10)
			if err != nil || len(accounts) != 2 {
				t.Fatalf("accounts %+v, %v", accounts, err)
			}
			for i, active := range []bool{true, false} {
				m := accounts[i].MFA
				if m.Active != active || len(m.Secret) != 1 || m.LastStep != 7 || m.Enrolment != (auth.Enrolment{}) ||
					m.Pending(epoch) {
					t.Errorf("account %d has %+v", i, m)
				}
			}
		})
	}
}

func authStores(t *testing.T, db *relationaltest.Database) authrecords.Stores {
	t.Helper()
	s, err := authrecords.NewStores(db.DB, auth.RootSecret(strings.Repeat("k", 32)))
	must.Succeed(t, err)
	return s
}
