package delegating_test

import (
	"context"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestGrantsOfAnOrigin checks that grants of a provider are replaced, and that others stay.
func TestGrantsOfAnOrigin(t *testing.T) {
	const acme = "provider:acme"
	db := fakedb.New()
	store := fakedb.NewGrants(db)
	account := auth.Account{ID: auth.UserID(ada), Email: "ada@example.com", State: auth.AccountActive}
	must.Succeed(t, fakedb.NewAccounts(db).Create(t.Context(), account))
	o := delegating.NewGrantOperator(delegating.GrantPorts{
		Transactions: db, Grants: store, Operators: fakedb.NewDirectory(db), Recorder: &fakeRecorder{},
	})
	parse := func(action, resource string) registry.Grant {
		g, err := registry.ParseGrant(ada, action, resource)
		must.Succeed(t, err)
		return g
	}
	byHand, edit, operate := parse("publish", "*"), parse("edit", "*"), parse("operate", "*")
	must.Succeed(t, o.Add(t.Context(), byHand))
	replace := func(wanted ...registry.Grant) (done delegating.Replaced) {
		err := db.Atomically(t.Context(), func(ctx context.Context) (err error) {
			done, err = o.Replace(ctx, ada, acme, wanted)
			return err
		})
		must.Succeed(t, err)
		return done
	}
	held := func() (all []string) {
		records, err := store.Records(t.Context(), registrystore.GrantQuery{Holders: []registry.Holder{ada}})
		must.Succeed(t, err)
		for _, r := range records {
			all = append(all, string(r.Action)+" "+r.Origin())
		}
		return all
	}
	for range 2 { // the second time there is nothing to change
		replace(byHand, edit, operate)
		wantEqual(t, held(), []string{"edit provider:acme", "operate provider:acme", "publish hand", "publish provider:acme"}, "held")
	}
	wantFault(t, o.Remove(t.Context(), edit, nil), fault.Conflict, "removed by hand")
	must.Succeed(t, o.Remove(t.Context(), byHand, nil))
	wantFault(t, o.Remove(t.Context(), byHand, nil), fault.Conflict, "removed by hand again")
	wantEqual(t, held(), []string{"edit provider:acme", "operate provider:acme", "publish provider:acme"}, "held")
	must.Succeed(t, o.Add(t.Context(), byHand))
	all, err := store.Records(t.Context(), registrystore.GrantQuery{ManagedBy: acme})
	must.Succeed(t, err)
	for _, r := range all { // and not the one by hand of the same servers
		wantFault(t, o.RemoveByID(t.Context(), r.ID, nil), fault.Conflict, "removed by its id")
	}
	if done := replace(); len(done.Removed) != 2 || !done.KeptOperator {
		t.Errorf("the last operator: %+v", done)
	}
	wantEqual(t, held(), []string{"operate provider:acme", "publish hand"}, "held")
	wantFault(t, o.RemoveOrigin(t.Context(), acme), fault.Conflict, "RemoveOrigin of the last operator")
	another := operate
	another.Holder = "other"
	if err := fakedb.NewAccounts(db).Create(t.Context(), auth.Account{ID: "other", Email: "b@example.com", State: auth.AccountActive}); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, o.Add(t.Context(), another))
	if may, err := o.MayOperate(t.Context(), ada); err != nil || !may {
		t.Errorf("MayOperate = %v, %v", may, err)
	}
	if done := replace(); len(done.Removed) != 1 || done.KeptOperator {
		t.Errorf("with another operator: %+v", done)
	}
	must.Succeed(t, o.Add(t.Context(), operate))
	replace(edit, operate)
	if all, err := o.Operators(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("Operators = %q, %v", all, err)
	}
	must.Succeed(t, o.Remove(t.Context(), operate, nil))
	must.Succeed(t, o.RemoveOrigin(t.Context(), acme))
	wantEqual(t, held(), []string{"publish hand"}, "held")
}
