package relational_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/accountstore/accountstoretest"
	"github.com/tollgate-dev/tollgate/ports/auditlog/auditlogtest"
	"github.com/tollgate-dev/tollgate/ports/challengestore/challengestoretest"
	"github.com/tollgate-dev/tollgate/ports/devicestore/devicestoretest"
	"github.com/tollgate-dev/tollgate/ports/keyring"
	"github.com/tollgate-dev/tollgate/ports/keyring/keyringtest"
	"github.com/tollgate-dev/tollgate/ports/lockoutstore/lockoutstoretest"
	"github.com/tollgate-dev/tollgate/ports/pendingstore/pendingstoretest"
	"github.com/tollgate-dev/tollgate/ports/sessionstore/sessionstoretest"
)

// opener opens an empty, migrated database.
type opener func(t *testing.T) *relational.DB

// TestAuthStores runs the suites of all stores of authentication on every kind
// of database.
func TestAuthStores(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Run("accounts", opener(open).accounts)
			t.Run("devices", opener(open).devices)
			t.Run("sessions", opener(open).sessions)
			t.Run("challenges", opener(open).challenges)
			t.Run("audit log", opener(open).auditLog)
			t.Run("lockouts", opener(open).lockouts)
			t.Run("pending logins", opener(open).pendingLogins)
			t.Run("keyring", opener(open).keyring)
			t.Run("clean-ups go to the end", opener(open).cleansUp)
		})
	}
}

func (o opener) accounts(t *testing.T) {
	accountstoretest.Run(t, func(t *testing.T) accountstoretest.Subject {
		db := o(t)
		return accountstoretest.Subject{Accounts: relational.NewAccounts(db), Runner: db}
	})
}

func (o opener) devices(t *testing.T) {
	devicestoretest.Run(t, func(t *testing.T) devicestoretest.Subject {
		db := o(t)
		return devicestoretest.Subject{
			Devices: relational.NewDevices(db), Tokens: relational.NewDeviceTokens(db),
			Accounts: relational.NewAccounts(db), Runner: db,
		}
	})
}

func (o opener) sessions(t *testing.T) {
	sessionstoretest.Run(t, func(t *testing.T) sessionstoretest.Subject {
		db := o(t)
		return sessionstoretest.Subject{
			Sessions: relational.NewSessions(db), Tokens: relational.NewRefreshTokens(db),
			Devices: relational.NewDevices(db), Accounts: relational.NewAccounts(db), Runner: db,
		}
	})
}

func (o opener) challenges(t *testing.T) {
	challengestoretest.Run(t, func(t *testing.T) challengestoretest.Subject {
		db := o(t)
		return challengestoretest.Subject{
			Challenges: relational.NewChallenges(db), Sessions: relational.NewSessions(db),
			Devices: relational.NewDevices(db), Accounts: relational.NewAccounts(db), Runner: db,
		}
	})
}

func (o opener) auditLog(t *testing.T) {
	auditlogtest.Run(t, func(t *testing.T) auditlogtest.Subject {
		db := o(t)
		return auditlogtest.Subject{Log: relational.NewAuditLog(db), Runner: db}
	})
}

func (o opener) lockouts(t *testing.T) {
	lockoutstoretest.Run(t, func(t *testing.T) lockoutstoretest.Subject {
		db := o(t)
		return lockoutstoretest.Subject{Lockouts: relational.NewLockouts(db), Runner: db}
	})
}

func (o opener) pendingLogins(t *testing.T) {
	pendingstoretest.Run(t, func(t *testing.T) pendingstoretest.Subject {
		db := o(t)
		return pendingstoretest.Subject{Pending: relational.NewPendingLogins(db), Accounts: relational.NewAccounts(db), Runner: db}
	})
}

func (o opener) keyring(t *testing.T) {
	keyringtest.Run(t, func(t *testing.T) keyring.Ring { return relational.NewKeyring(o(t)) })
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
