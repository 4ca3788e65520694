package registryrecords_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
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

// TestNameFilter compares the condition that a name is in one of some ranges with the ranges, for names
// in each of them, between them, before and after all.
func TestNameFilter(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		for _, count := range []int{0, 1, 2, 3, 8, 33} {
			ranges := []registry.NameRange{}
			var names []string
			for i := range 40 {
				r := registry.NameRange{From: fmt.Sprintf("a%02d/", i), Below: fmt.Sprintf("a%02d0", i)}
				if i > 0 && i <= count {
					ranges = append(ranges, r)
				}
				names = append(names, r.From, r.From+"x", r.Below)
			}
			for _, name := range names {
				column := "CAST('" + name + "' AS text)"
				if db.Kind() == relationaltest.PostgreSQL {
					column += ` COLLATE "C"`
				}
				found, err := db.QueryInt(t.Context(), "SELECT count(*) FROM (SELECT 1 AS one) AS o WHERE "+
					registryrecords.NameFilter(column, ranges))
				within := slices.ContainsFunc(ranges, func(r registry.NameRange) bool { return r.Contains(name) })
				if err != nil || (found == 1) != within {
					t.Errorf("%s in %d ranges is %d, want %t, error %v", name, count, found, within, err)
				}
			}
		}
	})
}
