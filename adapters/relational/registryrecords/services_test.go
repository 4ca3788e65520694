package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestServices(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunServices(t, func(t *testing.T) registrystoretest.ServiceStores {
				db := open(t)
				return registrystoretest.ServiceStores{
					Services: newStores(db).Services, Grants: newStores(db).Grants, Runner: db.DB,
				}
			})
		})
	}
}
