package fakedb_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

func TestAuthStores(t *testing.T) {
	authstoretest.Run(t, func(*testing.T) authstoretest.Stores {
		db := fakedb.New()
		return authstoretest.Stores{
			Accounts: fakedb.NewAccounts(db), Devices: fakedb.NewDevices(db), DeviceTokens: fakedb.NewDeviceTokens(db),
			Sessions: fakedb.NewSessions(db), RefreshTokens: fakedb.NewRefreshTokens(db), Cookies: fakedb.NewSessionCookies(db),
			Challenges: fakedb.NewChallenges(db), PendingLogins: fakedb.NewPendingLogins(db),
			Lockouts: fakedb.NewLockouts(db), AuditLog: fakedb.NewAuditLog(db), Keys: fakedb.NewKeyring(db), History: fakedb.NewHistory(db), Runner: db,
		}
	})
}
