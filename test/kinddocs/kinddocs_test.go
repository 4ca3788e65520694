package kinddocs_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/test/kinddocs"
)

// TestAllKinds compares the kinds in the document with those that the service has.
func TestAllKinds(t *testing.T) {
	served := inprocess.NewKinds(
		new(federating.Providers), ruling.New(ruling.Ports{}), new(viewing.Operator), new(mirroring.Operator), new(delegating.Services),
		registering.NewClients(registering.Ports{}), registering.NewResources(registering.Ports{}), watching.NewSources(watching.SourcePorts{}),
		viewing.NewCollections(nil, nil, nil), authorizing.Config{On: true},
	)
	for _, k := range kinddocs.All() {
		if one := served[k.List]; one == nil || one.Kind() != k {
			t.Errorf("%s is in the document but not served", k.List)
		}
		delete(served, k.List)
	}
	for list := range served {
		t.Errorf("%s is served but not in the document", list)
	}
}
