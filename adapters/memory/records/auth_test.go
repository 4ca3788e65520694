package records_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
)

func TestAuthStores(t *testing.T) {
	authstoretest.Run(t, func(*testing.T) authstoretest.Stores {
		db := records.New()
		return authstoretest.Stores{
			Accounts: records.NewAccounts(db), Devices: records.NewDevices(db), DeviceTokens: records.NewDeviceTokens(db),
			Sessions: records.NewSessions(db), RefreshTokens: records.NewRefreshTokens(db), Cookies: records.NewSessionCookies(db),
			Challenges: records.NewChallenges(db), PendingLogins: records.NewPendingLogins(db),
			Lockouts: records.NewLockouts(db), AuditLog: records.NewAuditLog(db), Keys: records.NewKeyring(db), History: records.NewHistory(db), Runner: db,
		}
	})
}
