package fakedb_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/ports/authorization/authorizationtest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

func TestAuthorizations(t *testing.T) {
	authorizationtest.Run(t, func(*testing.T) authorizationtest.Stores {
		db := fakedb.New()
		return authorizationtest.Stores{
			Requests: fakedb.NewRequests(db), Families: fakedb.NewFamilies(db), Secrets: fakedb.NewSecrets(db),
			Consents: fakedb.NewConsents(db), Sightings: fakedb.NewSightings(db), Runner: db,
			Accounts: fakedb.NewAccounts(db), Devices: fakedb.NewDevices(db), Sessions: fakedb.NewSessions(db),
		}
	})
}
