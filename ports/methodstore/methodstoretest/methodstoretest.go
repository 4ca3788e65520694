// Package methodstoretest is the contract of ports/methodstore: every adapter
// of that port passes Run.
package methodstoretest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
)

// Opened is a new store of an adapter, as it comes.
type Opened struct {
	Methods methodstore.Store
}

// documented is how many methods a new database holds (contract M-9).
const documented = 35

// Run checks an adapter. open is called for every part of the contract.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	t.Helper()
	parts := map[string]func(t *testing.T, s methodstore.Store){
		"the store begins with the methods of the document":                 beginsWithDocument,
		"an added method is listed, and another one with its id is refused": addsMethods,
		"a removed method is not listed, and cannot be removed again":       removesMethods,
		"methods that are put replace those with their ids":                 putsMethods,
		"a replacement removes all other methods":                           replacesAll,
		"a refused put changes nothing":                                     refusesConflicts,
		"one of several parallel additions of a method is stored":           addsMethodInParallel,
		"a call with a cancelled context fails":                             refusesEndedContext,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t).Methods) })
	}
}

func beginsWithDocument(t *testing.T, s methodstore.Store) {
	t.Helper()
	got := list(t, s)
	if len(got) != documented {
		t.Fatalf("a new store holds %d methods, want %d", len(got), documented)
	}
	for i, m := range got {
		if i > 0 && m.ID <= got[i-1].ID {
			t.Errorf("method %d is listed behind %d", m.ID, got[i-1].ID)
		}
	}
	want := catalogue.Method{
		ID: 1163, Path: "/courses/{department}/{number}.{format}", ServiceID: 239, ServiceName: "courses",
		Parameters: []string{"department", "number", "format"},
	}
	if m := find(t, s, want.ID); !reflect.DeepEqual(m, want) {
		t.Errorf("method %d is %+v, want %+v", want.ID, m, want)
	}
	find(t, s, catalogue.ListingID)
}

func addsMethods(t *testing.T, s methodstore.Store) {
	t.Helper()
	m := method(1, "/first.{format}")
	if err := s.Add(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := list(t, s); len(got) != documented+1 || !reflect.DeepEqual(got[0], m) {
		t.Errorf("after adding %+v the first of %d is %+v", m, len(got), got[0])
	}
	for what, taken := range map[string]catalogue.Method{
		"id": method(1, "/other"), "path": method(2, "/first.{format}"),
	} {
		if err := s.Add(t.Context(), taken); !fault.Is(err, fault.Conflict) {
			t.Errorf("adding a taken %s: %v", what, err)
		}
	}
	if got := list(t, s); len(got) != documented+1 {
		t.Errorf("refused methods were added: %d", len(got))
	}
}

func removesMethods(t *testing.T, s methodstore.Store) {
	t.Helper()
	if err := s.Remove(t.Context(), catalogue.ListingID); err != nil {
		t.Fatal(err)
	}
	if got := list(t, s); len(got) != documented-1 {
		t.Errorf("after removing one there are %d", len(got))
	}
	if err := s.Remove(t.Context(), catalogue.ListingID); !fault.Is(err, fault.NotFound) {
		t.Errorf("removing again: %v", err)
	}
}

func putsMethods(t *testing.T, s methodstore.Store) {
	t.Helper()
	replaced := method(catalogue.ListingID, "/elsewhere")
	put(t, s, []catalogue.Method{method(1, "/one"), replaced}, false)
	if got := list(t, s); len(got) != documented+1 {
		t.Errorf("after putting a new one and a known one there are %d", len(got))
	}
	if m := find(t, s, catalogue.ListingID); !reflect.DeepEqual(m, replaced) {
		t.Errorf("the replaced method is %+v", m)
	}
	put(t, s, []catalogue.Method{method(1, "/elsewhere"), method(catalogue.ListingID, "/one")}, false)
	if m := find(t, s, 1); m.Path != "/elsewhere" {
		t.Errorf("two methods did not change places: %+v", m)
	}
	put(t, s, nil, false)
	if got := list(t, s); len(got) != documented+1 {
		t.Errorf("after putting none there are %d", len(got))
	}
}

func replacesAll(t *testing.T, s methodstore.Store) {
	t.Helper()
	want := []catalogue.Method{method(5, "/five"), method(7, "/seven/{a}.{format}", "a", "format")}
	put(t, s, []catalogue.Method{want[1], want[0]}, true)
	if got := list(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("listed are %+v, want %+v", got, want)
	}
}

func refusesConflicts(t *testing.T, s methodstore.Store) {
	t.Helper()
	before := list(t, s)
	listing := find(t, s, catalogue.ListingID)
	cases := map[string][]catalogue.Method{
		"a path of another method": {method(1, "/one"), method(2, listing.Path)},
		"one path twice":           {method(1, "/one"), method(2, "/one")},
		"one id twice":             {method(1, "/one"), method(1, "/two")},
	}
	for name, methods := range cases {
		if err := s.Put(t.Context(), methods, false); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Put(t.Context(), cases["one path twice"], true); !fault.Is(err, fault.Conflict) {
		t.Errorf("one path twice, replacing all: %v", err)
	}
	if got := list(t, s); !reflect.DeepEqual(got, before) {
		t.Errorf("refused methods changed the table to %+v", got)
	}
}

func addsMethodInParallel(t *testing.T, s methodstore.Store) {
	t.Helper()
	var all sync.WaitGroup
	var added atomic.Int32
	for range 10 {
		all.Go(func() {
			switch err := s.Add(t.Context(), method(1, "/one")); {
			case err == nil:
				added.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if added.Load() != 1 {
		t.Errorf("%d of the writers added the method", added.Load())
	}
}

func refusesEndedContext(t *testing.T, s methodstore.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, listErr := s.List(ctx)
	for call, err := range map[string]error{
		"list": listErr, "add": s.Add(ctx, method(1, "/one")),
		"remove": s.Remove(ctx, 1), "put": s.Put(ctx, nil, true),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", call, err)
		}
	}
	if got := list(t, s); len(got) != documented {
		t.Errorf("calls with an ended context left %d methods", len(got))
	}
}

func method(id catalogue.MethodID, path string, parameters ...string) catalogue.Method {
	return catalogue.Method{
		ID: id, Path: path, ServiceID: 3, ServiceName: "things", Parameters: append([]string{}, parameters...),
	}
}

func list(t *testing.T, s methodstore.Store) []catalogue.Method {
	t.Helper()
	got, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func find(t *testing.T, s methodstore.Store, id catalogue.MethodID) catalogue.Method {
	t.Helper()
	for _, m := range list(t, s) {
		if m.ID == id {
			return m
		}
	}
	t.Fatalf("there is no method %d", id)
	return catalogue.Method{}
}

func put(t *testing.T, s methodstore.Store, methods []catalogue.Method, replace bool) {
	t.Helper()
	if err := s.Put(t.Context(), methods, replace); err != nil {
		t.Fatal(err)
	}
}
