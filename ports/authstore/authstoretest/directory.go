package authstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runDirectory tests the directory.
func runDirectory(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, open, map[string]func(t *testing.T, s Stores){
		"a person is found by id, part and state":     findsPeople,
		"a person has the time of the newest session": findsLastSignIn,
		"identities and passkeys are counted":         countsWaysToSignIn,
		"a person whom no company lets in has left":   findsLeavers,
		"a person is found by a new name":             findsNewNames,
		"a part that very many have":                  findsCommonParts,
		"people are counted up to a number":           countsPeople,
	})
}

func countsPeople(t *testing.T, s Stores) {
	for n, want := range []int{0, 1, 2, 2} {
		if got, err := s.Directory.Count(t.Context(), 2); err != nil || got != want {
			t.Errorf("of %d people %d are counted, want %d (%v)", n, got, want, err)
		}
		recordtest.OK(t, s.Accounts.Create(t.Context(), Account(n)))
	}
}

// findsPeople searches people by each field of a query.
func findsPeople(t *testing.T, s Stores) {
	for n, name := range []string{"Ada Lovelace", "100% Bob_by", `Back\slash`} {
		a := Account(n)
		a.Name, a.State = name, []auth.AccountState{auth.AccountActive, auth.AccountInvited, auth.AccountActive}[n]
		a.AdmittedUntil = []time.Time{{}, recordtest.Epoch(), recordtest.Epoch().Add(time.Microsecond)}[n]
		recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	}
	for name, c := range map[string]struct {
		q    authstore.DirectoryQuery
		want []int
	}{
		"all":                    {authstore.DirectoryQuery{}, []int{0, 1, 2}},
		"a page":                 {authstore.DirectoryQuery{Limit: 1}, []int{0}},
		"the next page":          {authstore.DirectoryQuery{After: Account(0).Email}, []int{1, 2}},
		"an id":                  {authstore.DirectoryQuery{ID: Account(1).ID}, []int{1}},
		"a state":                {authstore.DirectoryQuery{State: auth.AccountInvited}, []int{1}},
		"a part of the address":  {authstore.DirectoryQuery{Part: "PERSON-00002@"}, []int{2}},
		"a part of the name":     {authstore.DirectoryQuery{Part: "a lOVE"}, []int{0}},
		"a per cent sign":        {authstore.DirectoryQuery{Part: "%"}, []int{1}},
		"an underscore":          {authstore.DirectoryQuery{Part: "_"}, []int{1}},
		"a backslash":            {authstore.DirectoryQuery{Part: `\`}, []int{2}},
		"admitted after a time":  {authstore.DirectoryQuery{AdmittedAt: recordtest.Epoch()}, []int{2}},
		"quotes":                 {authstore.DirectoryQuery{Part: `a" OR "`}, nil},
		"both with a space":      {authstore.DirectoryQuery{Part: "com ada"}, nil},
		"a NUL":                  {authstore.DirectoryQuery{Part: "Ada\x00"}, nil},
		"a part and a state":     {authstore.DirectoryQuery{Part: "person", State: auth.AccountActive}, []int{0, 2}},
		"a part and a page":      {authstore.DirectoryQuery{Part: "person", After: Account(0).Email}, []int{1, 2}},
		"a part that nobody has": {authstore.DirectoryQuery{Part: "eve"}, nil},
	} {
		if c.q.Limit == 0 {
			c.q.Limit = 10
		}
		found := recordtest.Must(s.Directory.Search(t.Context(), c.q))(t)
		var got []auth.UserID
		for _, p := range found {
			got = append(got, p.ID)
		}
		var want []auth.UserID
		for _, n := range c.want {
			want = append(want, Account(n).ID)
		}
		t.Run(name, func(t *testing.T) { recordtest.Equal(t, got, want) })
	}
}

func findsLastSignIn(t *testing.T, s Stores) {
	createParents(t, s)
	first, second := Session(0, 1), Session(0, 2)
	second.CreatedAt = first.CreatedAt.Add(time.Hour)
	create(t, s, second, first)
	found := recordtest.Must(s.Directory.Search(t.Context(), authstore.DirectoryQuery{Limit: 2}))(t)
	recordtest.Equal(t, found, []authstore.Person{
		{Account: Account(0), LastSignIn: second.CreatedAt}, {Account: Account(1)},
	})
}

// countsWaysToSignIn counts the identities and the passkeys of people.
func countsWaysToSignIn(t *testing.T, s Stores) {
	createParents(t, s)
	addIdentities(t, s, identitySample(1, 1))
	recordtest.OK(t, s.Passkeys.Add(t.Context(), passkeySample(0, 1)))
	recordtest.OK(t, s.Passkeys.Add(t.Context(), passkeySample(0, 2)))
	found := recordtest.Must(s.Directory.Search(t.Context(), authstore.DirectoryQuery{Limit: 2}))(t)
	recordtest.Equal(t, found, []authstore.Person{
		{Account: Account(0), Passkeys: 2}, {Account: Account(1), Identities: 1},
	})
}

// findsLeavers has a person with one identity that was refused, and another whom a second identity still lets in.
func findsLeavers(t *testing.T, s Stores) {
	createParents(t, s)
	refused, also, left := identitySample(0, 1), identitySample(0, 2), identitySample(1, 1)
	addIdentities(t, s, refused, also, left)
	ended := Living(1, 1)
	recordtest.OK(t, ended.EndFor(Account(1).ID, ended.CreatedAt.Add(time.Minute), auth.EndCompany))
	create(t, s, ended)
	search := func() []authstore.Person {
		return recordtest.Must(s.Directory.Search(t.Context(), authstore.DirectoryQuery{Left: true, Limit: 9}))(t)
	}
	recordtest.Equal(t, search(), nil)
	for _, i := range []company.Identity{refused, left} {
		recordtest.OK(t, s.Companies.Identities.Confirm(t.Context(), i.ID, time.Time{}, nil))
	}
	recordtest.Equal(t, search(), []authstore.Person{
		{Account: Account(1), LastSignIn: ended.CreatedAt, Identities: 1, Left: "acme", LeftAt: ended.EndedAt},
	})
	recordtest.OK(t, s.Companies.Identities.Confirm(t.Context(), left.ID, recordtest.Epoch(), nil))
	recordtest.Equal(t, search(), nil)
}

// findsNewNames changes a name.
func findsNewNames(t *testing.T, s Stores) {
	recordtest.OK(t, s.Accounts.Create(t.Context(), Account(0)))
	recordtest.OK(t, s.Accounts.Update(t.Context(), Account(0).ID, func(a *auth.Account) error {
		a.Name = "Grace Hopper"
		return nil
	}))
	for part, want := range map[string]int{"hopp": 1, Account(0).Name: 0} {
		found := recordtest.Must(s.Directory.Search(t.Context(), authstore.DirectoryQuery{Part: part, Limit: 9}))(t)
		if len(found) != want {
			t.Errorf("%d people with %q, want %d", len(found), part, want)
		}
	}
}

// findsCommonParts searches a part that more people have than an index selects.
func findsCommonParts(t *testing.T, s Stores) {
	const people = 1_203
	recordtest.OK(t, s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		for n := range people {
			if err := s.Accounts.Create(ctx, Account(n)); err != nil {
				return err
			}
		}
		return nil
	}))
	seen, after := 0, auth.Email("")
	for {
		q := authstore.DirectoryQuery{Part: "Person-", After: after, Limit: 500}
		found := recordtest.Must(s.Directory.Search(t.Context(), q))(t)
		if seen += len(found); len(found) < q.Limit {
			break
		}
		after = found[len(found)-1].Email
	}
	if seen != people {
		t.Errorf("%d people, want %d", seen, people)
	}
}

// runOperators tests who can operate.
func runOperators(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, open, map[string]func(t *testing.T, s Stores){
		"only active people with the grant can operate":   findsOperators,
		"parallel changes leave a person who can operate": keepsOneOperator,
	})
}

func wantOperator(t *testing.T, s Stores, want bool) {
	t.Helper()
	if got := recordtest.Must(s.Operators.Any(t.Context()))(t); got != want {
		t.Errorf("Any is %t, want %t", got, want)
	}
}

// setState changes the state of an account.
func setState(ctx context.Context, s Stores, id auth.UserID, to auth.AccountState) error {
	return s.Accounts.Update(ctx, id, func(a *auth.Account) error {
		a.State = to
		return nil
	})
}

func findsOperators(t *testing.T, s Stores) {
	a, other := Account(0), Account(1)
	other.State = auth.AccountActive
	recordtest.OK(t, s.Accounts.Create(t.Context(), a))
	recordtest.OK(t, s.Accounts.Create(t.Context(), other))
	wantOperator(t, s, false)
	recordtest.OK(t, s.Operate(t.Context(), a.ID))
	for state, want := range map[auth.AccountState]bool{
		auth.AccountActive: true, auth.AccountInvited: false, auth.AccountLocked: false, auth.AccountDisabled: false,
	} {
		recordtest.OK(t, setState(t.Context(), s, a.ID, state))
		wantOperator(t, s, want)
	}
}

// keepsOneOperator disables both of two people who can operate at the same time.
func keepsOneOperator(t *testing.T, s Stores) {
	const tries = 20
	for n := range 2 {
		a := Account(n)
		a.State = auth.AccountActive
		recordtest.OK(t, s.Accounts.Create(t.Context(), a))
		recordtest.OK(t, s.Operate(t.Context(), a.ID))
	}
	for range tries {
		recordtest.OK(t, setState(t.Context(), s, Account(0).ID, auth.AccountActive))
		recordtest.OK(t, setState(t.Context(), s, Account(1).ID, auth.AccountActive))
		recordtest.WantOne(t, recordtest.Parallel(2, func(i int) error {
			return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
				return authstore.KeepOperator(ctx, s.Operators, func(ctx context.Context) error {
					return setState(ctx, s, Account(i).ID, auth.AccountDisabled)
				})
			})
		}), fault.Conflict)
		wantOperator(t, s, true)
	}
	recordtest.OK(t, s.Runner.Atomically(authstore.ByForce(t.Context()), func(ctx context.Context) error {
		return authstore.KeepOperator(ctx, s.Operators, func(ctx context.Context) error {
			for n := range 2 {
				recordtest.OK(t, setState(ctx, s, Account(n).ID, auth.AccountDisabled))
			}
			return nil
		})
	}))
	wantOperator(t, s, false)
}
