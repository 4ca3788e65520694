package inprocess_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/auth"
	authaccess "github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// newMembers returns the members of a database.
func newMembers(db *fakedb.Database, clk *clocktest.Manual, changes authstore.Changes) accessstore.Members {
	accounts := fakedb.NewAccounts(db)
	return inprocess.NewMembers(inprocess.MemberPorts{
		Accounts: accounts, Sessions: fakedb.NewSessions(db), Services: fakedb.NewServices(db), Grants: fakedb.NewGrants(db),
		Groups: authaccess.NewMemberships(authaccess.MembershipPorts{
			Accounts: accounts, Identities: fakedb.NewIdentities(db), Providers: fakedb.NewProviders(db), Clock: clk,
			Changes: changes,
		}),
		Clock: clk, Changes: changes,
	})
}

// TestGroupsOfMembers checks that a person is in the groups of the identities that are linked, and has
// left them within a second after the provider has said so, has refused the person, or is removed.
func TestGroupsOfMembers(t *testing.T) {
	t.Parallel()
	db, clk, ctx := fakedb.New(), clocktest.NewManual(noon), t.Context()
	identities, providers := fakedb.NewIdentities(db), fakedb.NewProviders(db)
	const issuer = "https://login.acme.example"
	acme := company.Provider{Name: "acme", Issuer: issuer}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(fakedb.NewAccounts(db).Create(ctx, auth.Account{ID: "ada", Email: "ada@example.com", State: auth.AccountActive}))
	must(providers.Save(ctx, acme))
	members := newMembers(db, clk, func() uint64 { return 0 })
	matches := func() bool {
		t.Helper()
		found, err := members.Find(ctx, "ada")
		must(err)
		rule := access.Rule{
			Name: "devs", Effect: access.Allow, Subjects: []access.Selector{{Kind: access.SelectGroup, Value: "acme/devs"}},
			Servers: []toolserver.Pattern{mustPattern(t, "*")}, Mode: access.Enforce,
		}
		name, err := toolserver.ParseName("com.example/a")
		must(err)
		snapshot := access.Compile(access.Options{}, []access.Rule{rule}, []access.Listing{{Name: name}})
		e := snapshot.Explain(&access.Question{Subject: &found, Server: "com.example/a", Call: access.NewCall("tools/call", "x"), At: noon})
		return e.Effect == access.Allow && e.Selector.String() == "group:acme/devs"
	}
	want := func(what string, want bool) {
		t.Helper()
		clk.Advance(time.Second)
		if got := matches(); got != want {
			t.Errorf("%s: the rule matches: %t, want %t", what, got, want)
		}
	}
	in := func(groups ...string) *company.Membership {
		return &company.Membership{Provider: "acme", Groups: groups}
	}
	want("no identity", false)
	must(identities.Add(ctx, company.Identity{ID: "i", UserID: "ada", Issuer: issuer, Subject: "s", LinkedAt: noon, ConfirmedAt: noon}))
	want("no group", false)
	must(identities.Confirm(ctx, "i", noon, in("ops", "devs", "devs")))
	want("the group", true)
	must(identities.Confirm(ctx, "i", noon, in("devs2", "dev", "devs/x")))
	want("other groups", false)
	must(identities.Confirm(ctx, "i", noon, in("devs")))
	want("the group again", true)
	must(identities.Confirm(ctx, "i", time.Time{}, nil))
	want("refused by the provider", false)
	must(identities.Confirm(ctx, "i", noon, nil))
	want("confirmed again", true)
	must(providers.Remove(ctx, "acme"))
	want("the provider is removed", false)
}

// TestMembersUntilAChange checks that a person whom this process has disabled is nobody at once, and one
// whom another process has disabled within a second (R9).
func TestMembersUntilAChange(t *testing.T) {
	t.Parallel()
	db, clk, ctx := fakedb.New(), clocktest.NewManual(noon), t.Context()
	var changes uint64
	accounts, members := fakedb.NewAccounts(db), newMembers(db, clk, func() uint64 { return changes })
	if err := accounts.Create(ctx, auth.Account{ID: "ada", Email: "ada@example.com", State: auth.AccountActive}); err != nil {
		t.Fatal(err)
	}
	want := func(what string, found bool) {
		t.Helper()
		if _, err := members.Find(ctx, "ada"); (err == nil) != found {
			t.Errorf("%s: %v, want to find the person: %t", what, err, found)
		}
	}
	want("at first", true)
	if err := accounts.Update(ctx, "ada", func(a *auth.Account) error { a.State = auth.AccountDisabled; return nil }); err != nil {
		t.Fatal(err)
	}
	want("disabled by another process", true)
	changes++
	want("disabled by this one", false)
}

func mustPattern(t *testing.T, text string) toolserver.Pattern {
	t.Helper()
	p, err := toolserver.ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
