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
				s := registryrecords.NewStores(db.DB, registryrecords.Config{RemoteURLUnique: true})
				return registrystoretest.MirrorStores{
					Mirrors: s.Mirrors, Rereader: s.Rereader, Mirrored: s.Mirrored,
					Reader: s.Reader, Writer: s.Writer, Runner: db.DB,
				}
			})
		})
	}
}
