package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestAppliedStates(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunAppliedStates(t, func(t *testing.T) registrystoretest.AppliedStores {
				db := open(t)
				return registrystoretest.AppliedStores{States: newStores(db).Applied, Runner: db.DB}
			})
		})
	}
}
