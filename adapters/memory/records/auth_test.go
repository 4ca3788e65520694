package records_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
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

func TestAccounts(t *testing.T) {
	accountstoretest.Run(t, func(*testing.T) accountstoretest.Subject {
		db := records.New()
		return accountstoretest.Subject{Accounts: records.NewAccounts(db), Runner: db}
	})
}

func TestDevices(t *testing.T) {
	devicestoretest.Run(t, func(*testing.T) devicestoretest.Subject {
		db := records.New()
		return devicestoretest.Subject{
			Devices: records.NewDevices(db), Tokens: records.NewDeviceTokens(db),
			Accounts: records.NewAccounts(db), Runner: db,
		}
	})
}

func TestSessions(t *testing.T) {
	sessionstoretest.Run(t, func(*testing.T) sessionstoretest.Subject {
		db := records.New()
		return sessionstoretest.Subject{
			Sessions: records.NewSessions(db), Tokens: records.NewRefreshTokens(db),
			Devices: records.NewDevices(db), Accounts: records.NewAccounts(db), Runner: db,
		}
	})
}

func TestChallenges(t *testing.T) {
	challengestoretest.Run(t, func(*testing.T) challengestoretest.Subject {
		db := records.New()
		return challengestoretest.Subject{
			Challenges: records.NewChallenges(db), Sessions: records.NewSessions(db),
			Devices: records.NewDevices(db), Accounts: records.NewAccounts(db), Runner: db,
		}
	})
}

func TestAuditLog(t *testing.T) {
	auditlogtest.Run(t, func(*testing.T) auditlogtest.Subject {
		db := records.New()
		return auditlogtest.Subject{Log: records.NewAuditLog(db), Runner: db}
	})
}

func TestLockouts(t *testing.T) {
	lockoutstoretest.Run(t, func(*testing.T) lockoutstoretest.Subject {
		db := records.New()
		return lockoutstoretest.Subject{Lockouts: records.NewLockouts(db), Runner: db}
	})
}

func TestPendingLogins(t *testing.T) {
	pendingstoretest.Run(t, func(*testing.T) pendingstoretest.Subject {
		db := records.New()
		return pendingstoretest.Subject{Pending: records.NewPendingLogins(db), Accounts: records.NewAccounts(db), Runner: db}
	})
}

func TestKeyring(t *testing.T) {
	keyringtest.Run(t, func(*testing.T) keyring.Ring { return records.NewKeyring(records.New()) })
}
