package registryrecords_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// allNames matches a plan of PostgreSQL that computes the parts of all names.
var allNames = regexp.MustCompile(`Seq Scan on servers`)

// TestSearchOfSmallRegistry checks that a search uses the index of the parts of names also if there
// are few names. Reading all rows of a small table is cheap, but computing the parts of names is
// not.
func TestSearchOfSmallRegistry(t *testing.T) {
	open, ok := relationaltest.Databases(t)[relationaltest.PostgreSQL]
	if !ok {
		t.Skip("TEST_DATABASE_URL is not set")
	}
	db := open(t)
	for _, statement := range []string{
		"INSERT INTO servers (name) SELECT 'com.example.o' || i || '/server-' || i FROM generate_series(1, 250) AS n (i)",
		`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
			SELECT name, '1.0.0', 'active', '', now(), now(), now(), true, '{}' FROM servers`,
		"VACUUM ANALYZE servers", "VACUUM ANALYZE versions",
	} {
		must.Succeed(t, db.Execute(t.Context(), statement))
	}
	servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
	for _, text := range []string{"jjj", "server-11", "zz"} {
		plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
			_, err := servers.List(ctx, registrystore.Query{Limit: 31, Search: text})
			return err
		})
		if err != nil || len(plans) == 0 {
			t.Fatalf("%s: %d plans, %v", text, len(plans), err)
		}
		for query, plan := range plans {
			if allNames.MatchString(plan) {
				t.Errorf("a search for %q computes the parts of all names:\n%s\n%s", text, query, plan)
			}
		}
	}
}
