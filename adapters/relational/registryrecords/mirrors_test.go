package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestMirrors(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunMirrors(t, func(t *testing.T) registrystoretest.MirrorStores {
				db := open(t)
				servers := registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
				return registrystoretest.MirrorStores{
					Mirrors: registryrecords.NewMirrors(db.DB), Rereader: registryrecords.NewMirrors(db.DB),
					Mirrored: registryrecords.NewMirroredVersions(db.DB, servers),
					Reader:   servers, Writer: servers, Runner: db.DB,
				}
			})
		})
	}
}
