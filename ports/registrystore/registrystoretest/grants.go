package registrystoretest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// GrantStores is an empty store of an adapter.
type GrantStores struct {
	Grants registrystore.Grants
}

// RunGrants checks an adapter. open is called for every part of the contract.
func RunGrants(t *testing.T, open func(t *testing.T) GrantStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s registrystore.Grants){
		"an empty store has no grants":                                 hasNoGrants,
		"a grant that is added twice is stored once":                   addsGrantTwice,
		"a removed grant is not returned, and cannot be removed again": removesGrants,
		"grants are listed in the order of their bytes":                listsGrantsInOrder,
		"pages list every grant once":                                  readsGrantPages,
		"a grant has an ID of its own, and may have a manager":         keepsGrantRecords,
		"a grant by hand and those of providers do not meet":           keepsGrantsByOrigin,
		"one of several parallel additions of a grant is stored":       addsGrantsInParallel,
		"a call with a cancelled context fails":                        grantsHeedCancel,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t).Grants) })
	}
}

func hasNoGrants(t *testing.T, s registrystore.Grants) {
	t.Helper()
	wantGrantsOf(t, s, "somebody")
	if got := listGrants(t, s, registry.Grant{}, 10); len(got) != 0 {
		t.Errorf("an empty store lists %v", got)
	}
	if err := s.Remove(t.Context(), byHand(newGrant(t, "a", registry.ActionEdit, "*"))); !fault.Is(err, fault.NotFound) {
		t.Errorf("removing from an empty store: %v", err)
	}
}

func addsGrantTwice(t *testing.T, s registrystore.Grants) {
	t.Helper()
	g := newGrant(t, "a", registry.ActionEdit, "com.example/*")
	addGrants(t, s, g)
	if err := s.Add(t.Context(), byHand(g)); !fault.Is(err, fault.Conflict) {
		t.Errorf("adding again: %v, want a fault of kind Conflict", err)
	}
	wantGrantsOf(t, s, "a", g)
}

func removesGrants(t *testing.T, s registrystore.Grants) {
	t.Helper()
	edit, publish := newGrant(t, "a", registry.ActionEdit, "*"), newGrant(t, "a", registry.ActionPublish, "*")
	addGrants(t, s, edit, publish)
	if err := s.Remove(t.Context(), byHand(edit)); err != nil {
		t.Fatal(err)
	}
	wantGrantsOf(t, s, "a", publish)
	if err := s.Remove(t.Context(), byHand(edit)); !fault.Is(err, fault.NotFound) {
		t.Errorf("removing again: %v", err)
	}
}

// grantsInOrder are grants in the order of the port: by bytes, so that capitals come
// first, whatever a locale thinks of it.
func grantsInOrder(t *testing.T) []registry.Grant {
	t.Helper()
	return []registry.Grant{
		newGrant(t, "B", registry.ActionEdit, "com.example/*"),
		newGrant(t, "a", registry.ActionEdit, "*"),
		newGrant(t, "a", registry.ActionEdit, "com.example/A"),
		newGrant(t, "a", registry.ActionEdit, "com.example/Z_*"),
		newGrant(t, "a", registry.ActionEdit, "com.example/a"),
		newGrant(t, "a", registry.ActionPublish, "*"),
		newGrant(t, "a", registry.ActionReview, "com.example/a"),
		newGrant(t, "a-b", registry.ActionEdit, "*"),
		newGrant(t, "aa", registry.ActionEdit, "*"),
	}
}

func listsGrantsInOrder(t *testing.T, s registrystore.Grants) {
	t.Helper()
	want := grantsInOrder(t)
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	addGrants(t, s, backwards...)
	if got := listGrants(t, s, registry.Grant{}, 100); !slices.Equal(got, want) {
		t.Errorf("listed are\n%v, want\n%v", got, want)
	}
	wantGrantsOf(t, s, "a", want[1:7]...)
}

func readsGrantPages(t *testing.T, s registrystore.Grants) {
	t.Helper()
	want := grantsInOrder(t)
	addGrants(t, s, want...)
	for size := 1; size <= len(want); size++ {
		var got []registry.Grant
		for after := (registry.Grant{}); ; after = got[len(got)-1] {
			page := listGrants(t, s, after, size)
			if got = append(got, page...); len(page) < size {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d give\n%v, want\n%v", size, got, want)
		}
	}
}

func keepsGrantRecords(t *testing.T, s registrystore.Grants) {
	t.Helper()
	want := grantsInOrder(t)
	addGrants(t, s, want...)
	if err := s.Manage(t.Context(), want[2], "platform"); err != nil {
		t.Fatal(err)
	}
	err := s.Manage(t.Context(), newGrant(t, "nobody", registry.ActionEdit, "*"), "platform")
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("managing a grant that is not there: %v", err)
	}
	all := grantRecords(t, s, registrystore.GrantQuery{})
	ids := map[registry.GrantID]bool{}
	for i, r := range all {
		ids[r.ID] = true
		if r.Grant != want[i] || (r.ManagedBy == "platform") != (i == 2) || len(r.ID) != 36 {
			t.Errorf("record %d is %+v, want %+v", i, r, want[i])
		}
		if one := grantRecords(t, s, registrystore.GrantQuery{ID: r.ID}); len(one) != 1 || one[0] != r {
			t.Errorf("the grant with the ID %s is %v, want %v", r.ID, one, r)
		}
	}
	if len(all) != len(want) || len(ids) != len(want) {
		t.Errorf("%d records with %d IDs, want %d", len(all), len(ids), len(want))
	}
	if of := grantRecords(t, s, registrystore.GrantQuery{Holders: []registry.Holder{"a"}}); !slices.Equal(of, all[1:7]) {
		t.Errorf("those of a are %v", of)
	}
	of := grantRecords(t, s, registrystore.GrantQuery{Holders: []registry.Holder{"a", want[len(want)-1].Holder, "no one"}})
	if len(of) <= 6 || !slices.Equal(of[:6], all[1:7]) || of[len(of)-1] != all[len(all)-1] {
		t.Errorf("those of a and another one are %v", of)
	}
	if next := grantRecords(t, s, registrystore.GrantQuery{After: byHand(want[3]), Limit: 2}); !slices.Equal(next, all[4:6]) {
		t.Errorf("the page after %v is %v", want[3], next)
	}
}

// keepsGrantsByOrigin wants one grant to be stored once for each provider and once by hand, and each of
// them to be changed alone.
func keepsGrantsByOrigin(t *testing.T, s registrystore.Grants) {
	t.Helper()
	g, other := newGrant(t, "a", registry.ActionEdit, "*"), newGrant(t, "a", registry.ActionPublish, "*")
	given := func(by string) registry.GrantRecord { return registry.GrantRecord{Grant: g, ManagedBy: by} }
	for _, r := range []registry.GrantRecord{given("provider:b"), given(""), given("provider:a"), byHand(other)} {
		if err := s.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range []string{"", "platform", "provider:a"} {
		if err := s.Add(t.Context(), given(by)); !fault.Is(err, fault.Conflict) {
			t.Errorf("adding one of %q again: %v, want a fault of kind Conflict", by, err)
		}
	}
	want := func(when string, managers ...string) {
		t.Helper()
		var got []string
		var after registry.GrantRecord
		for {
			page := grantRecords(t, s, registrystore.GrantQuery{Holders: []registry.Holder{"a"}, After: after, Limit: 1})
			if len(page) == 0 {
				break
			}
			after = page[0]
			got = append(got, after.ManagedBy)
		}
		if !slices.Equal(got, append(managers, "")) {
			t.Errorf("%s, the managers are %q, want %q and the other grant", when, got, managers)
		}
		wantGrantsOf(t, s, "a", g, other)
	}
	want("at first", "", "provider:a", "provider:b")
	if err := s.Manage(t.Context(), g, "platform"); err != nil {
		t.Fatal(err)
	}
	want("managed by a file", "platform", "provider:a", "provider:b")
	if of := grantRecords(t, s, registrystore.GrantQuery{ManagedBy: "provider:a"}); len(of) != 1 || of[0].Grant != g {
		t.Errorf("those of a provider are %v", of)
	}
	for _, r := range []registry.GrantRecord{given("platform"), given("provider:a")} {
		if err := s.Remove(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	want("without two", "provider:b")
	if err := s.Manage(t.Context(), g, "platform"); !fault.Is(err, fault.NotFound) {
		t.Errorf("managing where only a provider gives it: %v", err)
	}
}

func grantRecords(t *testing.T, s registrystore.Grants, q registrystore.GrantQuery) []registry.GrantRecord {
	t.Helper()
	records, err := s.Records(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func addsGrantsInParallel(t *testing.T, s registrystore.Grants) {
	t.Helper()
	g := newGrant(t, "a", registry.ActionEdit, "*")
	var all sync.WaitGroup
	var added atomic.Int32
	for range 10 {
		all.Go(func() {
			switch err := s.Add(t.Context(), byHand(g)); {
			case err == nil:
				added.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := added.Load(); n != 1 {
		t.Errorf("%d of 10 callers added the same grant, want 1", n)
	}
	wantGrantsOf(t, s, "a", g)
}

func grantsHeedCancel(t *testing.T, s registrystore.Grants) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := newGrant(t, "a", registry.ActionEdit, "*")
	_, ofErr := s.Of(ctx, "a")
	_, listErr := s.Records(ctx, registrystore.GrantQuery{})
	for call, err := range map[string]error{
		"add": s.Add(ctx, byHand(g)), "remove": s.Remove(ctx, byHand(g)), "of": ofErr, "list": listErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", call, err)
		}
	}
	wantGrantsOf(t, s, "a")
}

func newGrant(t *testing.T, holder registry.Holder, action registry.Action, pattern string) registry.Grant {
	t.Helper()
	p, err := registry.ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return registry.Grant{Holder: holder, Action: action, Pattern: p}
}

func byHand(g registry.Grant) registry.GrantRecord { return registry.GrantRecord{Grant: g} }

func addGrants(t *testing.T, s registrystore.Grants, grants ...registry.Grant) {
	t.Helper()
	for _, g := range grants {
		if err := s.Add(t.Context(), byHand(g)); err != nil {
			t.Fatal(err)
		}
	}
}

func listGrants(t *testing.T, s registrystore.Grants, after registry.Grant, limit int) []registry.Grant {
	t.Helper()
	var got []registry.Grant
	for _, r := range grantRecords(t, s, registrystore.GrantQuery{After: byHand(after), Limit: limit}) {
		got = append(got, r.Grant)
	}
	return got
}

// wantGrantsOf checks the grants of a holder.
func wantGrantsOf(t *testing.T, s registrystore.Grants, holder registry.Holder, want ...registry.Grant) {
	t.Helper()
	got, err := s.Of(t.Context(), holder)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the grants of %s are\n%v, want\n%v", holder, got, want)
	}
}
