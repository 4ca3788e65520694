package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestBrokenViews checks that a row that breaks a rule of the model is not returned, and is not the
// mistake of the caller.
func TestBrokenViews(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		views := newStores(db).Views
		v, err := view.New(view.Draft{Name: "team", Include: []string{"com.example/*"}})
		must.Succeed(t, err)
		must.Succeed(t, views.Put(t.Context(), v))
		must.Succeed(t, views.AddToken(t.Context(), view.Token{View: "team", Name: "a", CreatedAt: epoch}))
		hash := map[string]string{relationaltest.PostgreSQL: `'\x00'`, relationaltest.SQLite: "x'00'"}[db.Kind()]
		db.Fill(t, "UPDATE registry_views SET include = 'a*b'", "UPDATE registry_view_tokens SET hash = "+hash)
		if found, err := views.List(t.Context()); !fault.Is(err, fault.Internal) {
			t.Errorf("List = %+v, %v, want fault.Internal", found, err)
		}
		if found, err := views.Tokens(t.Context()); !fault.Is(err, fault.Internal) {
			t.Errorf("Tokens = %+v, %v, want fault.Internal", found, err)
		}
	})
}
