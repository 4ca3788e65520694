package learning_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var now = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

func newLearner(t *testing.T) (*learning.Learner, *fakedb.History) {
	t.Helper()
	db := fakedb.New()
	accounts, store := fakedb.NewAccounts(db), fakedb.NewHistory(db)
	for _, name := range []string{"anna", "bob"} {
		err := accounts.Create(t.Context(), auth.Account{
			ID: auth.UserID(name), Email: auth.Email(name + "@example.com"), State: auth.AccountActive,
		})
		must.Succeed(t, err)
	}
	return learning.New(learning.Ports{Accounts: accounts, Totals: store, Clock: clocktest.NewManual(now)}), store
}

var signIns = history.Value{Feature: history.SignIns}

func one(v history.Value) []history.Addition {
	return []history.Addition{{Value: v, Person: true, Everyone: true, Weight: 1}}
}

func TestLearner(t *testing.T) {
	l, store := newLearner(t)
	firefox := history.Value{Feature: history.Browser, Text: "Firefox|Linux"}
	for _, e := range []struct {
		who       learning.Person
		additions []history.Addition
		at        time.Time
	}{
		{learning.Person{ID: "anna"}, one(firefox), now.Add(-history.Lifetime)},
		{learning.Person{ID: "anna", Email: "other@example.com"}, one(signIns), now.Add(-2 * time.Hour)},
		{learning.Person{ID: "somebody", Email: "anna@example.com"}, one(signIns), now.Add(-time.Hour)},
		{learning.Person{Email: "bob@example.com"}, one(signIns), now},
		{learning.Person{Email: "carol@example.com"}, one(signIns), now},
		{learning.Person{Email: "carol@example.com"}, one(signIns), now},
		{learning.Person{}, one(signIns), now},
		{learning.Person{Email: "dora@example.com"}, nil, now},
	} {
		must.Succeed(t, l.Add(t.Context(), e.who, e.additions, e.at))
	}
	read := func(user auth.UserID) history.Counts {
		counts, err := store.Read(t.Context(), user, []history.Value{signIns, firefox}, []history.Value{
			signIns, firefox,
		})
		must.Succeed(t, err)
		return counts
	}
	if c := read("anna"); len(c.Person)+len(c.Everyone) != 0 {
		t.Errorf("before Store the counts are %+v", c)
	}
	s, err := l.Store(t.Context())
	if want := (learning.Summary{SignIns: 4, People: 2, UnknownSignIns: 3, UnknownPeople: 2}); err != nil || s != want {
		t.Errorf("Store = %+v, %v, want %+v", s, err, want)
	}
	anna, bob := read("anna"), read("bob")
	want := history.Count{Sum: 2, Last: now.Add(-time.Hour)}
	if anna.Person[signIns] != want || bob.Person[signIns].Sum != 1 || bob.Everyone[signIns].Sum != 3 ||
		len(anna.Person)+len(anna.Everyone) != 2 {
		t.Errorf("the counts are %+v and %+v", anna, bob)
	}
}
