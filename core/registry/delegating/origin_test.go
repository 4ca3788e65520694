package delegating_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// TestGrantsOfAnOrigin checks that grants of a provider are replaced, and that others stay.
func TestGrantsOfAnOrigin(t *testing.T) {
	const acme = "provider:acme"
	db := fakedb.New()
	store := fakedb.NewGrants(db)
	account := auth.Account{ID: auth.UserID(ada), Email: "ada@example.com", State: auth.AccountActive}
	if err := fakedb.NewAccounts(db).Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	o := delegating.NewGrantOperator(delegating.GrantPorts{
		Transactions: db, Grants: store, Operators: fakedb.NewDirectory(db), Recorder: &fakeRecorder{},
	})
	parse := func(action, resource string) registry.Grant {
		g, err := registry.ParseGrant(ada, action, resource)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	byHand, edit, operate := parse("publish", "*"), parse("edit", "*"), parse("operate", "*")
	if err := o.Add(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	replace := func(wanted ...registry.Grant) (done delegating.Replaced) {
		err := db.Atomically(t.Context(), func(ctx context.Context) (err error) {
			done, err = o.Replace(ctx, ada, acme, wanted)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	held := func() (all []string) {
		records, err := store.Records(t.Context(), registrystore.GrantQuery{Holder: ada})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			all = append(all, string(r.Action)+" "+r.Origin())
		}
		return all
	}
	if done := replace(byHand, edit, operate); len(done.Added) != 2 || len(done.Removed) != 0 {
		t.Errorf("first: %+v", done)
	}
	if got := held(); !slices.Equal(got, []string{"edit provider:acme", "operate provider:acme", "publish hand"}) {
		t.Errorf("held are %v", got)
	}
	if err := o.Remove(t.Context(), edit); !fault.Is(err, fault.Conflict) {
		t.Errorf("removed by hand: %v", err)
	}
	if done := replace(); len(done.Removed) != 1 || !done.KeptOperator {
		t.Errorf("the last operator: %+v", done)
	}
	if got := held(); !slices.Equal(got, []string{"operate provider:acme", "publish hand"}) {
		t.Errorf("held are %v", got)
	}
	if err := o.RemoveOrigin(t.Context(), acme); !fault.Is(err, fault.Conflict) {
		t.Errorf("RemoveOrigin of the last operator: %v", err)
	}
	another := operate
	another.Holder = "other"
	if err := fakedb.NewAccounts(db).Create(t.Context(), auth.Account{ID: "other", Email: "b@example.com", State: auth.AccountActive}); err != nil {
		t.Fatal(err)
	}
	if err := o.Add(t.Context(), another); err != nil {
		t.Fatal(err)
	}
	if may, err := o.MayOperate(t.Context(), ada); err != nil || !may {
		t.Errorf("MayOperate = %v, %v", may, err)
	}
	if done := replace(); len(done.Removed) != 1 || done.KeptOperator {
		t.Errorf("with another operator: %+v", done)
	}
	replace(edit)
	if err := o.RemoveOrigin(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	if got := held(); !slices.Equal(got, []string{"publish hand"}) {
		t.Errorf("held are %v", got)
	}
}
