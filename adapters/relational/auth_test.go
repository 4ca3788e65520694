package relational_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
)

// opener opens an empty, migrated database.
type opener func(t *testing.T) *relational.DB

// TestAuthStores runs the contract tests of the stores of authentication on every kind of database.
func TestAuthStores(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			authstoretest.Run(t, func(t *testing.T) authstoretest.Stores { return authStores(open(t)) })
			t.Run("clean-ups go to the end", opener(open).cleansUp)
		})
	}
}

func authStores(db *relational.DB) authstoretest.Stores {
	return authstoretest.Stores{
		Accounts: relational.NewAccounts(db), Devices: relational.NewDevices(db), DeviceTokens: relational.NewDeviceTokens(db),
		Sessions: relational.NewSessions(db), RefreshTokens: relational.NewRefreshTokens(db),
		Challenges: relational.NewChallenges(db), PendingLogins: relational.NewPendingLogins(db),
		Lockouts: relational.NewLockouts(db), AuditLog: relational.NewAuditLog(db), Keys: relational.NewKeyring(db), Runner: db,
	}
}

// cleansUp deletes more than one transaction takes.
func (o opener) cleansUp(t *testing.T) {
	const rows = 5_003
	db := o(t)
	lockouts, now := relational.NewLockouts(db), time.Date(2031, time.March, 14, 0, 0, 0, 0, time.UTC)
	err := db.Atomically(t.Context(), func(ctx context.Context) error {
		for i := range rows {
			key := auth.LockoutKey(fmt.Sprintf("device:%d", i))
			if err := lockouts.Update(ctx, key, func(l *auth.Lockout) error { l.LockedUntil = now; return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{rows, 0} {
		if n, err := lockouts.DeleteBefore(t.Context(), now.Add(time.Second)); err != nil || n != want {
			t.Errorf("DeleteBefore = %d, %v, want %d", n, err, want)
		}
	}
}
