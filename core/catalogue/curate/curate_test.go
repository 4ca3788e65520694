package curate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/catalogue/curate"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// trail remembers what it is told, unless it is away.
type trail struct {
	told []authority.MethodChange
	away error
}

func (t *trail) RecordMethods(_ context.Context, changes ...authority.MethodChange) error {
	if t.away == nil {
		t.told = append(t.told, changes...)
	}
	return t.away
}

func (t *trail) want(test *testing.T, what string, want ...authority.MethodChange) {
	test.Helper()
	if !slices.Equal(t.told, want) {
		test.Errorf("%s: told is %+v, want %+v", what, t.told, want)
	}
	t.told = nil
}

func method(id catalogue.MethodID, path string) catalogue.Method {
	return catalogue.Method{ID: id, Path: path, ServiceID: 5, ServiceName: "parking", Parameters: []string{"format"}}
}

func told(action string, m catalogue.Method) authority.MethodChange {
	return authority.MethodChange{Action: action, ID: int(m.ID), Path: m.Path, Service: m.ServiceName}
}

// open returns an operator of a listing that holds nothing but what is given.
func open(t *testing.T, told *trail, methods ...catalogue.Method) (*curate.Operator, *records.Methods) {
	t.Helper()
	db := records.New()
	store := records.NewMethods(db)
	if err := store.Put(t.Context(), methods, true); err != nil {
		t.Fatal(err)
	}
	return curate.New(curate.Ports{Transactions: db, Methods: store, Trail: told}), store
}

func TestEveryChangeIsTold(t *testing.T) {
	first, second, third := method(1, "/a.{format}"), method(2, "/b.{format}"), method(3, "/c.{format}")
	log := &trail{}
	o, store := open(t, log, first)
	if err := o.Add(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	log.want(t, "add", told("add", second))
	if err := o.Add(t.Context(), second); !fault.Is(err, fault.Conflict) {
		t.Errorf("added again: %v", err)
	}
	if err := o.Remove(t.Context(), 9); !fault.Is(err, fault.NotFound) {
		t.Errorf("remove what is not there: %v", err)
	}
	log.want(t, "what changes nothing")
	for name, change := range map[string]func(*catalogue.Method){
		"path":       func(m *catalogue.Method) { m.Path = "/d.{format}" },
		"service":    func(m *catalogue.Method) { m.ServiceName = "cars" },
		"service id": func(m *catalogue.Method) { m.ServiceID++ },
		"parameters": func(m *catalogue.Method) { m.Parameters = []string{"other"} },
	} {
		change(&second)
		for range 2 { // the second time there is nothing to change
			if err := o.Import(t.Context(), []catalogue.Method{first, second}, false); err != nil {
				t.Fatal(err)
			}
		}
		log.want(t, "import of another "+name, told("import", second))
	}
	if err := o.Import(t.Context(), []catalogue.Method{second, third}, true); err != nil {
		t.Fatal(err)
	}
	log.want(t, "import that replaces", told("remove", first), told("import", third))
	if err := o.Remove(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	log.want(t, "remove", told("remove", second))
	if left, err := store.List(t.Context()); err != nil || len(left) != 1 || left[0].ID != third.ID {
		t.Errorf("left is %+v (%v)", left, err)
	}
}

// TestNoChangeGoesUntold wants methods to stay as they are when the audit log is
// away.
func TestNoChangeGoesUntold(t *testing.T) {
	first, second := method(1, "/a.{format}"), method(2, "/b.{format}")
	log := &trail{away: fault.New(fault.Unavailable, "", "away")}
	o, store := open(t, log, first)
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
