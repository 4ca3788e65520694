package methodrecords_test

import (
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/methodfile"
	"github.com/tollgate-dev/tollgate/adapters/relational/methodrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestSample: a new embedded database has the methods of the document, a new PostgreSQL has none, and one that was there before
// keeps what it has.
func TestSample(t *testing.T) {
	sample, err := methodfile.Sample()
	must.Succeed(t, err)
	list := func(db *relationaltest.Database) []catalogue.Method {
		_, err := db.Migrate(t.Context())
		must.Succeed(t, err)
		all, err := methodrecords.NewMethods(db.DB).List(t.Context())
		must.Succeed(t, err)
		return all
	}
	if got := list(relationaltest.NewSQLite(t)); len(got) != 35 || !reflect.DeepEqual(got, sample) {
		t.Errorf("a new embedded database has %+v", got)
	}
	db := relationaltest.OpenPostgres(t, postgrestest.NewEmpty(t))
	if got := list(db); len(got) != 0 {
		t.Errorf("a new database has %d methods", len(got))
	}
	step, err := postgres.Migrations.ReadFile("migrations/0079_methods_sample.sql")
	must.Succeed(t, err)
	must.Succeed(t, methodrecords.NewMethods(db.DB).Put(t.Context(), sample, false))
	must.Succeed(t, db.Execute(t.Context(), "UPDATE migrations SET applied_at = now() - interval '1 day'"))
	must.Succeed(t, db.Execute(t.Context(), string(step)))
	if got := list(db); !reflect.DeepEqual(got, sample) {
		t.Errorf("a database that was there before has %d methods", len(got))
	}
}
