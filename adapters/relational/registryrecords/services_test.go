package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestServices(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunServices(t, func(t *testing.T) registrystoretest.ServiceStores {
				db := open(t)
				return registrystoretest.ServiceStores{
					Services: registryrecords.NewServices(db.DB), Grants: registryrecords.NewGrants(db.DB), Runner: db.DB,
				}
			})
		})
	}
}
