package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestCatalogue(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunCatalogue(t, func(t *testing.T) registrystoretest.CatalogueStores {
				db := open(t)
				servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
				return registrystoretest.CatalogueStores{
					ServerStores: registrystoretest.ServerStores{Reader: servers, Writer: servers, Free: servers, Runner: db.DB},
					Catalogue:    newStores(db).Catalogue,
				}
			})
		})
	}
}
