package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestReviews(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunReviews(t, func(t *testing.T) registrystoretest.ReviewStores {
				db := open(t)
				s := newStores(db)
				return registrystoretest.ReviewStores{
					Reviews: s.Reviews, Backlog: s.Backlog, Writer: s.Writer, Rules: s.ReviewRules, Notices: s.ReviewNotices,
					Runner: db.DB,
				}
			})
		})
	}
}
