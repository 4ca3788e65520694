package delegating_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// fakeRecorder keeps the recorded changes, or fails.
type fakeRecorder struct {
	recorded []audit.Change
	err      error
}

func (t *fakeRecorder) RecordChanges(_ context.Context, changes ...audit.Change) error {
	if t.err == nil {
		t.recorded = append(t.recorded, changes...)
	}
	return t.err
}

const ada = registry.Holder("11111111-1111-4111-8111-111111111111")

func grant(t *testing.T) registry.Grant {
	t.Helper()
	pattern, err := registry.ParsePattern("com.example/*")
	must.Succeed(t, err)
	return registry.Grant{Holder: ada, Action: registry.ActionEdit, Pattern: pattern}
}

func TestEveryChangeIsRecorded(t *testing.T) {
	db, trail := fakedb.New(), &fakeRecorder{}
	store := fakedb.NewGrants(db)
	o := delegating.NewGrantOperator(delegating.GrantPorts{
		Transactions: db, Grants: store, Operators: fakedb.NewDirectory(db), Recorder: trail,
	})
	for range 2 { // the second time there is nothing to change
		must.Succeed(t, o.Add(t.Context(), grant(t)))
	}
	if held, err := store.Of(t.Context(), ada); err != nil || !slices.Equal(held, []registry.Grant{grant(t)}) {
		t.Errorf("held are %v (%v)", held, err)
	}
	must.Succeed(t, o.Remove(t.Context(), grant(t), nil))
	wantFault(t, o.Remove(t.Context(), grant(t), nil), fault.NotFound, "removed again")
	want := audit.Change{Category: audit.AccountChange, Action: "grant_add", ByOperator: true, Details: audit.Details{
		"userId": audit.Text(ada), "grant": audit.Text("edit"), "resource": audit.Text("com.example/*"),
		"kind": audit.Text("grant"), "key": audit.Text(ada + " edit com.example/*"),
	}}
	back := want
	back.Action = "grant_remove"
	wantEqual(t, trail.recorded, []audit.Change{want, back}, "recorded")
}

// TestNoChangeWithoutRecord wants grants to stay as they are when the audit log fails.
func TestNoChangeWithoutRecord(t *testing.T) {
	db, trail := fakedb.New(), &fakeRecorder{err: fault.New(fault.Unavailable, "away")}
	store := fakedb.NewGrants(db)
	o := delegating.NewGrantOperator(delegating.GrantPorts{
		Transactions: db, Grants: store, Operators: fakedb.NewDirectory(db), Recorder: trail,
	})
	wantFault(t, o.Add(t.Context(), grant(t)), fault.Unavailable, "Add")
	if held, err := store.Of(t.Context(), ada); err != nil || len(held) != 0 {
		t.Errorf("held are %v (%v)", held, err)
	}
	must.Succeed(t, store.Add(t.Context(), registry.GrantRecord{Grant: grant(t)}))
	wantFault(t, o.Remove(t.Context(), grant(t), nil), fault.Unavailable, "Remove")
	if held, err := store.Of(t.Context(), ada); err != nil || len(held) != 1 {
		t.Errorf("held are %v (%v)", held, err)
	}
}
