package quarantining_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRemaining checks that what offers the same as a hidden version is named, before and after, and
// nothing for a whole server and for what the registry does not have.
func TestRemaining(t *testing.T) {
	t.Parallel()
	for target, want := range map[quarantining.Target]string{
		{ServerName: serverA, Version: "1.0.0"}:         "[{2.0.0 [https://a.example/mcp]}]",
		{ServerName: serverA, Version: "3.0.0"}:         "[]",
		{ServerName: serverA}:                           "[]",
		{ServerName: serverA, Version: "9.0.0"}:         "[]",
		{ServerName: "com.example/x", Version: "1.0.0"}: "[]",
		{ServerName: "x", Version: "1.0.0"}:             "[]",
		{Version: "1.0.0"}:                              "[]",
	} {
		f := newFixture(t)
		f.publishAs(t, serverA, "3.0.0", "cem")
		for range 2 {
			got, err := f.service.Remaining(t.Context(), target)
			if fmt.Sprint(got) != want || err != nil {
				t.Errorf("of %v remains %v, %v, want %s", target, got, err, want)
			}
			_, _ = f.hide(t, target, "it sends mail") // what does not exist is refused
		}
	}
}

// TestEntries checks that the entries of several servers are found by their names.
func TestEntries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, target := range []quarantining.Target{{ServerName: serverA, Version: "1.0.0"}, {ServerName: serverB}} {
		if _, err := f.hide(t, target, "r"); err != nil {
			t.Fatal(err)
		}
	}
	var names []registry.Name
	for _, text := range []string{serverA, serverB, "com.example/c"} {
		name, err := registry.ParseName(text)
		must.Succeed(t, err)
		names = append(names, name)
	}
	all, err := f.service.Entries(t.Context(), names...)
	if err != nil || len(all[names[0]]) != 1 || all[names[0]][0].Version.String() != "1.0.0" ||
		len(all[names[1]]) != 1 || len(all[names[2]]) != 0 {
		t.Errorf("in quarantine are %+v, %v", all, err)
	}
}

// TestPublishersAreNotified checks that the people who are responsible get a notice at once of what a
// person hides, except for that person, and not of what is refused or an operator hides.
func TestPublishersAreNotified(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.publishAs(t, serverA, "3.0.0", "ada", "cem")
	f.publishAs(t, serverA, "4.0.0", "dan")
	expect := func(what string, err error, want ...string) {
		t.Helper()
		var got []string
		for _, n := range f.people.notices {
			got = append(got, fmt.Sprint(n.People, n.ServerName, n.Version, n.Reason, n.At.IsZero()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the notices are %q, %v, want %q", what, got, err, want)
		}
		f.people.notices = nil
	}
	_, err := f.add(t, "ada", serverA, "3.0.0", "it sends mail")
	expect("a version", err, "[cem] "+serverA+" 3.0.0it sends mailfalse")
	_, err = f.add(t, "ada", serverA, "3.0.0", "it sends mail")
	expect("what is there already", err)
	_, err = f.add(t, "ada", serverA, "", "all of it")
	expect("a server", err, "[cem dan] "+serverA+" all of itfalse")
	_, err = f.hide(t, quarantining.Target{ServerName: serverA, Version: "4.0.0"}, "by a command")
	expect("an operator", err)
	n, err := f.service.ByOperators(t.Context(), epoch, epoch.Add(time.Hour))
	if len(n) != 1 || err != nil || n[0].Reason != "by a command" || !slices.Equal(n[0].People, []registry.Holder{"dan"}) {
		t.Errorf("by operators is %v, %v", n, err)
	}
	for _, window := range [][2]time.Time{{n[0].At, epoch.Add(time.Hour)}, {epoch, n[0].At.Add(-1)}} {
		if late, err := f.service.ByOperators(t.Context(), window[0], window[1]); len(late) > 0 || err != nil {
			t.Errorf("from %v until %v is %v, %v, want nothing", window[0], window[1], late, err)
		}
	}
	f.people.fails = fault.New(fault.Unavailable, "the audit log is away")
	_, err = f.add(t, "ada", serverB, "", "all of it")
	expect("what is not recorded", err)
}
