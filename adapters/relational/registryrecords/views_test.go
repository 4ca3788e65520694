package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestViews(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunViews(t, func(t *testing.T) registrystoretest.ViewStores {
				db := open(t)
				return registrystoretest.ViewStores{Views: newStores(db).Views, Runner: db.DB}
			})
		})
	}
}

// TestBrokenViews checks that a row that breaks a rule of the model is not returned, and is not the
// mistake of the caller.
func TestBrokenViews(t *testing.T) {
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			views := newStores(db).Views
			v, err := view.New(view.Draft{Name: "team", Include: []string{"com.example/*"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := views.Put(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			if err := views.AddToken(t.Context(), view.Token{View: "team", Name: "a", CreatedAt: epoch}); err != nil {
				t.Fatal(err)
			}
			hash := map[string]string{relationaltest.PostgreSQL: `'\x00'`, relationaltest.SQLite: "x'00'"}[kind]
			for _, statement := range []string{
				"UPDATE registry_views SET include = 'a*b'", "UPDATE registry_view_tokens SET hash = " + hash,
			} {
				if err := db.Execute(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			if found, err := views.List(t.Context()); !fault.Is(err, fault.Internal) {
				t.Errorf("List = %+v, %v, want fault.Internal", found, err)
			}
			if found, err := views.Tokens(t.Context()); !fault.Is(err, fault.Internal) {
				t.Errorf("Tokens = %+v, %v, want fault.Internal", found, err)
			}
		})
	}
}
