package manage_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/catalogue/manage"
	"github.com/tollgate-dev/tollgate/core/fault"
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

func (t *fakeRecorder) checkRecorded(test *testing.T, what string, want ...audit.Change) {
	test.Helper()
	if len(t.recorded) != len(want) || len(want) > 0 && !reflect.DeepEqual(t.recorded, want) {
		test.Errorf("%s: recorded are %+v, want %+v", what, t.recorded, want)
	}
	t.recorded = nil
}

func method(id catalogue.MethodID, path string) catalogue.Method {
	return catalogue.Method{ID: id, Path: path, ServiceID: 5, ServiceName: "parking", Parameters: []string{"format"}}
}

func newRecord(action audit.Action, m catalogue.Method) audit.Change {
	return audit.Change{Category: audit.MethodsChange, Action: action, ByOperator: true, Details: audit.Details{
		"methodId": audit.Number(m.ID), "path": audit.Text(m.Path), "service": audit.Text(m.ServiceName),
		"kind": audit.Text("method"), "key": audit.Text(m.Path),
	}}
}

// newOperator returns an operator of a listing with the given methods.
func newOperator(t *testing.T, trail *fakeRecorder, methods ...catalogue.Method) (*manage.Operator, *fakedb.Methods) {
	t.Helper()
	db := fakedb.New()
	store := fakedb.NewMethods(db)
	must.Succeed(t, store.Put(t.Context(), methods, true))
	return manage.New(manage.Ports{Transactions: db, Methods: store, Recorder: trail}), store
}

func TestEveryChangeIsRecorded(t *testing.T) {
	first, second, third := method(1, "/a.{format}"), method(2, "/b.{format}"), method(3, "/c.{format}")
	log := &fakeRecorder{}
	o, store := newOperator(t, log, first)
	must.Succeed(t, o.Add(t.Context(), second))
	log.checkRecorded(t, "add", newRecord("add", second))
	if err := o.Add(t.Context(), second); !fault.Is(err, fault.Conflict) {
		t.Errorf("added again: %v", err)
	}
	if err := o.Remove(t.Context(), 9); !fault.Is(err, fault.NotFound) {
		t.Errorf("remove what is not there: %v", err)
	}
	log.checkRecorded(t, "what changes nothing")
	for name, change := range map[string]func(*catalogue.Method){
		"path":       func(m *catalogue.Method) { m.Path = "/d.{format}" },
		"service":    func(m *catalogue.Method) { m.ServiceName = "cars" },
		"service id": func(m *catalogue.Method) { m.ServiceID++ },
		"parameters": func(m *catalogue.Method) { m.Parameters = []string{"other"} },
	} {
		change(&second)
		for range 2 { // the second time there is nothing to change
			must.Succeed(t, o.Import(t.Context(), []catalogue.Method{first, second}, false))
		}
		log.checkRecorded(t, "import of another "+name, newRecord("import", second))
	}
	must.Succeed(t, o.Import(t.Context(), []catalogue.Method{second, third}, true))
	log.checkRecorded(t, "import that replaces", newRecord("remove", first), newRecord("import", third))
	must.Succeed(t, o.Remove(t.Context(), second.ID))
	log.checkRecorded(t, "remove", newRecord("remove", second))
	if left, err := store.List(t.Context()); err != nil || len(left) != 1 || left[0].ID != third.ID {
		t.Errorf("left is %+v (%v)", left, err)
	}
}

// TestNoChangeWithoutRecord wants methods to stay as they are when the audit log fails.
func TestNoChangeWithoutRecord(t *testing.T) {
	first, second := method(1, "/a.{format}"), method(2, "/b.{format}")
	log := &fakeRecorder{err: fault.New(fault.Unavailable, "away")}
	o, store := newOperator(t, log, first)
	for name, err := range map[string]error{
		"add":    o.Add(t.Context(), second),
		"remove": o.Remove(t.Context(), first.ID),
		"import": o.Import(t.Context(), []catalogue.Method{second}, true),
	} {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := store.List(t.Context()); err != nil || len(left) != 1 || left[0].ID != first.ID {
		t.Errorf("left is %+v (%v)", left, err)
	}
}
