package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestReviews(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunReviews(t, func(t *testing.T) registrystoretest.ReviewStores {
				db := open(t)
				reviews := registryrecords.NewReviews(db.DB)
				return registrystoretest.ReviewStores{
					Reviews: reviews, Backlog: reviews,
					Writer: registryrecords.NewServers(db.DB, registryrecords.Config{}),
					Rules:  registryrecords.NewReviewRules(db.DB), Notices: registryrecords.NewReviewNotices(db.DB),
					Runner: db.DB,
				}
			})
		})
	}
}
