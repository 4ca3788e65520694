package authstoretest

import (
	"context"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// History are the ports that one adapter implements over its counts.
type History interface {
	authstore.HistoryCounts
	authstore.HistoryDeferrals
	authstore.HistoryTotals
}

// runHistory tests the store of counts.
func runHistory(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	testCases(t, func(t *testing.T) Stores {
		s := open(t)
		createParents(t, s)
		create(t, s, Living(0, 1), Living(0, 2), Living(1, 3))
		return s
	}, map[string]func(t *testing.T, s Stores){
		"a stored count has the value of every field":                        historyKeepsEveryField,
		"a value that was never added has no count":                          historyNotFound,
		"an addition gives the result of history.Count.Plus":                 historyAddsLikeCounts,
		"counts of two people are separate":                                  historyOfPeople,
		"parallel additions are all counted":                                 historyParallel,
		"parallel gathering counts each addition once":                       historyGathersOnce,
		"a failed transaction adds nothing":                                  historyRollsBack,
		"an addition for an unknown person or session is refused":            historyOfUnknownPerson,
		"whole counts can be merged into stored ones":                        historyMerges,
		"a sign-in is confirmed once":                                        historyConfirmsOnce,
		"a confirmation counts at the time of the session":                   historyConfirmsInThePast,
		"a deferred addition is not counted before its confirmation":         historyDefers,
		"a deferred addition ends with the tokens or the end of its session": historyDeferralsEnd,
		"deletion removes counts that have expired":                          historyExpires,
		"a call with a cancelled context fails":                              historyHeedsCancel,
	})
}

// samples are values whose texts are stored as they are, and one with an address.
func samples() []history.Value {
	return []history.Value{
		{Feature: history.SignIns}, {Feature: history.Browser, Text: "Firefox|it's \"Linux\" é \\"},
		{Feature: history.Address, Text: "203.0.113.7/32"}, {Feature: history.Network, Text: "AS64500|52.5 13.0"},
	}
}

// addition returns an addition for a person and for everybody.
func addition(v history.Value, weight float64, version uint32) history.Addition {
	return history.Addition{Value: v, Person: true, Everyone: true, Weight: weight, Version: version}
}

// readAll gathers, and returns the counts of the samples.
func readAll(t testing.TB, s Stores, user int) history.Counts {
	t.Helper()
	_, err := s.History.Gather(context.WithoutCancel(t.Context()))
	recordtest.OK(t, err)
	counts, err := s.History.Read(context.WithoutCancel(t.Context()), Account(user).ID, samples(), samples())
	recordtest.OK(t, err)
	return counts
}

func historyKeepsEveryField(t *testing.T, s Stores) {
	at, later := recordtest.Epoch(), recordtest.Epoch().Add(time.Hour)
	list := samples()
	recordtest.OK(t, s.History.Add(t.Context(), Account(0).ID, []history.Addition{
		addition(list[0], 1, 0), addition(list[1], history.Growth(at), 14502),
		{Value: list[2], Person: true, Weight: .25}, {Value: list[3], Everyone: true, Weight: 2, Version: 1},
	}, at))
	recordtest.OK(t, s.History.Add(t.Context(), Account(0).ID, []history.Addition{addition(list[0], 1, 0)}, later))
	twice, once := history.Count{Sum: 2, Last: later}, history.Count{Sum: history.Growth(at), Last: at, Version: 14502}
	recordtest.Equal(t, readAll(t, s, 0), history.Counts{
		Person:   history.Table{list[0]: twice, list[1]: once, list[2]: {Sum: .25, Last: at}},
		Everyone: history.Table{list[0]: twice, list[1]: once, list[3]: {Sum: 2, Last: at, Version: 1}},
	})
}

func historyNotFound(t *testing.T, s Stores) {
	recordtest.OK(t,
		s.History.Add(t.Context(), Account(0).ID, []history.Addition{addition(samples()[0], 1, 0)}, recordtest.Epoch()))
	readAll(t, s, 0)
	other := []history.Value{{Feature: history.Recent}, {Feature: history.SignIns, Text: "x"}}
	for _, lists := range [][2][]history.Value{{other, other}, {nil, other}, {other, nil}, {nil, nil}} {
		counts := recordtest.Must(s.History.Read(t.Context(), Account(0).ID, lists[0], lists[1]))(t)
		if len(counts.Person) != 0 || len(counts.Everyone) != 0 {
			t.Errorf("Read of other values returned %+v", counts)
		}
	}
	if counts := readAll(t, s, 1); len(counts.Person) != 0 {
		t.Errorf("Read of another person returned %+v", counts.Person)
	}
	recordtest.OK(t, s.History.Confirm(t.Context(), Living(0, 1).ID))
}

// historyAddsLikeCounts adds in any order, and compares the store with the model.
func historyAddsLikeCounts(t *testing.T, s Stores) {
	model := history.Counts{Person: history.Table{}, Everyone: history.Table{}}
	rapid.Check(t, func(rt *rapid.T) {
		at := recordtest.Epoch().Add(time.Duration(rapid.IntRange(0, 5).Draw(rt, "hours")) * time.Hour)
		var list []history.Addition
		for _, v := range samples() {
			if n := rapid.IntRange(0, 3).Draw(rt, "version"); n > 0 {
				list = append(list, history.Addition{
					Value: v, Person: rapid.Bool().Draw(rt, "person"), Everyone: rapid.Bool().Draw(rt, "everyone"),
					Weight: .5, Version: uint32(n),
				})
			}
		}
		recordtest.OK(rt, s.History.Add(t.Context(), Account(0).ID, list, at))
		model.Apply(list, at)
	})
	recordtest.Equal(t, readAll(t, s, 0), model)
}

func historyOfPeople(t *testing.T, s Stores) {
	for user := range 2 {
		for range user + 1 {
			recordtest.OK(t,
				s.History.Add(t.Context(), Account(user).ID, []history.Addition{addition(samples()[2], 1, 0)},
					recordtest.Epoch()))
		}
	}
	for user := range 2 {
		counts := readAll(t, s, user)
		if own, all := counts.Person[samples()[2]].Sum,
			counts.Everyone[samples()[2]].Sum; own != float64(user+1) || all != 3 {
			t.Errorf("person %d has %v of %v", user, own, all)
		}
	}
}

// historyParallel adds for two people at once, while others gather.
func historyParallel(t *testing.T, s Stores) {
	const calls = 24
	for _, err := range recordtest.Parallel(calls, func(i int) error {
		if i%6 == 5 {
			_, err := s.History.Gather(t.Context())
			return err
		}
		var list []history.Addition
		for _, v := range samples() {
			list = append(list, addition(v, 1, uint32(i+1)))
		}
		return s.History.Add(t.Context(), Account(i%2).ID, list, recordtest.Epoch())
	}) {
		recordtest.OK(t, err)
	}
	for _, v := range samples() {
		first, second := readAll(t, s, 0), readAll(t, s, 1)
		if a, b := first.Person[v], second.Person[v]; a.Sum+b.Sum != calls/6*5 || a.Version != 23 || b.Version != 22 {
			t.Errorf("the counts of %v are %+v and %+v", v, a, b)
		}
		if all := first.Everyone[v]; all.Sum != calls/6*5 || all.Version != 23 {
			t.Errorf("everybody's count of %v is %+v", v, all)
		}
	}
}

func historyGathersOnce(t *testing.T, s Stores) {
	const signIns = 30
	for range signIns {
		recordtest.OK(t,
			s.History.Add(t.Context(), Account(0).ID, []history.Addition{addition(samples()[0], 1, 0)},
				recordtest.Epoch()))
	}
	gathered := make([]int, 4)
	for _, err := range recordtest.Parallel(len(gathered), func(i int) (err error) {
		gathered[i], err = s.History.Gather(t.Context())
		return err
	}) {
		recordtest.OK(t, err)
	}
	total := 0
	for _, n := range gathered {
		total += n
	}
	if all := readAll(t, s, 0).Everyone[samples()[0]].Sum; all != signIns || total != signIns {
		t.Errorf("%v sign-ins are counted, %d were gathered, want %d", all, total, signIns)
	}
}

func historyRollsBack(t *testing.T, s Stores) {
	at, session, list := recordtest.Epoch(), Living(0, 1), []history.Addition{addition(samples()[0], 1, 0)}
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		return s.History.Add(ctx, Account(0).ID, list, at)
	})
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error { return s.History.Defer(ctx, session, list) })
	recordtest.OK(t, s.History.Confirm(t.Context(), session.ID))
	recordtest.Equal(t, readAll(t, s, 0), history.Counts{Person: history.Table{}, Everyone: history.Table{}})
	recordtest.OK(t, s.History.Defer(t.Context(), session, list))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error { return s.History.Confirm(ctx, session.ID) })
	recordtest.OK(t, s.History.Confirm(t.Context(), session.ID))
	if counts := readAll(t, s, 0); counts.Person[samples()[0]].Sum != 1 || counts.Everyone[samples()[0]].Sum != 1 {
		t.Errorf("after a confirmation that was rolled back the counts are %+v", counts)
	}
}

func historyOfUnknownPerson(t *testing.T, s Stores) {
	list := []history.Addition{addition(samples()[0], 1, 0)}
	if err := s.History.Add(t.Context(), Account(9).ID, list, recordtest.Epoch()); err == nil {
		t.Error("Add for an unknown person succeeded")
	}
	if err := s.History.Defer(t.Context(), Living(1, 9), list); err == nil {
		t.Error("Defer for an unknown session succeeded")
	}
	if counts := readAll(t, s, 0); len(counts.Everyone) != 0 {
		t.Errorf("everybody has %+v", counts.Everyone)
	}
}

func historyMerges(t *testing.T, s Stores) {
	at, v := recordtest.Epoch(), samples()[2]
	recordtest.OK(t, s.History.Add(t.Context(), Account(0).ID, []history.Addition{addition(v, 1, 2)}, at))
	older := history.Table{v: {Sum: 5, Last: at.Add(-time.Hour), Version: 7}, samples()[0]: {Sum: 3, Last: at}}
	recordtest.OK(t, s.History.Merge(t.Context(), Account(0).ID, history.Counts{Person: older, Everyone: older}))
	recordtest.OK(t,
		s.History.Merge(t.Context(), "", history.Counts{
			Everyone: history.Table{v: {Sum: 1, Last: at.Add(time.Hour), Version: 1}},
		}))
	recordtest.Equal(t, readAll(t, s, 0), history.Counts{
		Person:   history.Table{v: {Sum: 6, Last: at, Version: 2}, samples()[0]: {Sum: 3, Last: at}},
		Everyone: history.Table{v: {Sum: 7, Last: at.Add(time.Hour), Version: 1}, samples()[0]: {Sum: 3, Last: at}},
	})
	if err := s.History.Merge(t.Context(), Account(9).ID, history.Counts{Person: older}); err == nil {
		t.Error("Merge for an unknown person succeeded")
	}
}

func historyConfirmsOnce(t *testing.T, s Stores) {
	session := Living(0, 1)
	recordtest.OK(t, s.History.Defer(t.Context(), session, []history.Addition{addition(samples()[2], 1, 0)}))
	for _, err := range recordtest.Parallel(8, func(int) error { return s.History.Confirm(t.Context(), session.ID) }) {
		recordtest.OK(t, err)
	}
	counts := readAll(t, s, 0)
	if own, all := counts.Person[samples()[2]].Sum, counts.Everyone[samples()[2]].Sum; own != 1 || all != 1 {
		t.Errorf("after parallel confirmations the counts are %v and %v, want 1", own, all)
	}
}

func historyConfirmsInThePast(t *testing.T, s Stores) {
	session, v := Living(0, 1), samples()[1]
	later := session.CreatedAt.Add(time.Hour)
	recordtest.OK(t, s.History.Defer(t.Context(), session, []history.Addition{addition(v, .5, 9)}))
	recordtest.OK(t, s.History.Add(t.Context(), Account(0).ID, []history.Addition{addition(v, 1, 3)}, later))
	recordtest.OK(t, s.History.Confirm(t.Context(), Living(0, 1).ID))
	want := history.Count{Sum: 1.5, Last: later, Version: 3}
	recordtest.Equal(t, readAll(t, s, 0), history.Counts{
		Person: history.Table{v: want}, Everyone: history.Table{v: want},
	})
}

func historyDefers(t *testing.T, s Stores) {
	list := []history.Addition{addition(samples()[0], 1, 0)}
	for _, session := range []auth.Session{Living(0, 1), Living(0, 2), Living(1, 3)} {
		recordtest.OK(t, s.History.Defer(t.Context(), session, list))
	}
	recordtest.OK(t, s.History.Confirm(t.Context(), Living(0, 2).ID))
	first, second := readAll(t, s, 0), readAll(t, s, 1)
	if own, all := first.Person[samples()[0]].Sum,
		first.Everyone[samples()[0]].Sum; own != 1 || all != 1 || len(second.Person) != 0 {
		t.Errorf("after one confirmation the counts are %v and %v, and %+v of another person", own, all, second.Person)
	}
}

// historyDeferralsEnd checks that what is deferred for a session ends with its refresh tokens and
// with the session.
func historyDeferralsEnd(t *testing.T, s Stores) {
	session, list := Living(0, 1), []history.Addition{addition(samples()[0], 1, 0)}
	recordtest.OK(t, s.History.Defer(t.Context(), session, list))
	recordtest.Must(s.RefreshTokens.DeleteExpired(t.Context(), session.ExpiresAt.Add(-time.Second)))(t)
	recordtest.OK(t, s.History.Confirm(t.Context(), session.ID))
	if counts := readAll(t, s, 0); counts.Person[samples()[0]].Sum != 1 {
		t.Error("the additions of a living session were deleted")
	}
	other := Living(0, 2)
	recordtest.OK(t, s.History.Defer(t.Context(), other, list))
	recordtest.Must(s.RefreshTokens.DeleteExpired(t.Context(), other.ExpiresAt.Add(time.Second)))(t)
	recordtest.OK(t, s.History.Confirm(t.Context(), other.ID))
	third := Living(1, 3)
	recordtest.OK(t, s.History.Defer(t.Context(), third, list))
	recordtest.Must(s.Sessions.DeleteExpired(t.Context(), third.MaxExpiresAt.Add(24*time.Hour)))(t)
	recordtest.OK(t, s.History.Confirm(t.Context(), third.ID))
	if own, other := readAll(t, s, 0), readAll(t, s, 1); own.Person[samples()[0]].Sum != 1 || len(other.Person) != 0 {
		t.Errorf("ended sessions were learnt from: %+v and %+v", own.Person, other.Person)
	}
}

func historyExpires(t *testing.T, s Stores) {
	at := recordtest.Epoch()
	for i, v := range samples() { // 24 days apart
		recordtest.OK(t,
			s.History.Add(t.Context(), Account(0).ID, []history.Addition{addition(v, 1, 0)}, at.AddDate(0, 0, 24*i)))
	}
	readAll(t, s, 0)
	for _, c := range []struct {
		before time.Time
		want   int
	}{{at, 0}, {at.Add(time.Microsecond), 2}, {at.AddDate(0, 0, 48), 2}, {at.AddDate(0, 0, 48).Add(time.Second), 2}} {
		if n, err := s.History.DeleteExpired(t.Context(), c.before); err != nil || n != c.want {
			t.Errorf("DeleteExpired before %v = %d, %v, want %d", c.before, n, err, c.want)
		}
	}
	if left := readAll(t, s, 0); len(left.Person) != 1 || len(left.Everyone) != 1 ||
		math.Abs(left.Person[samples()[3]].Sum-1) > 1e-9 {
		t.Errorf("%+v is left", left)
	}
}

func historyHeedsCancel(t *testing.T, s Stores) {
	id, list, at := Living(0, 1).ID, []history.Addition{addition(samples()[0], 1, 0)}, recordtest.Epoch()
	recordtest.OK(t, s.History.Add(t.Context(), Account(0).ID, list, at))
	recordtest.OK(t, s.History.Defer(t.Context(), Living(0, 1), list))
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Read": func(ctx context.Context) error {
			_, err := s.History.Read(ctx, Account(0).ID, samples(), samples())
			return err
		},
		"Add":     func(ctx context.Context) error { return s.History.Add(ctx, Account(0).ID, list, at) },
		"Defer":   func(ctx context.Context) error { return s.History.Defer(ctx, Living(0, 2), list) },
		"Confirm": func(ctx context.Context) error { return s.History.Confirm(ctx, id) },
		"Gather":  func(ctx context.Context) error { _, err := s.History.Gather(ctx); return err },
		"Merge": func(ctx context.Context) error {
			return s.History.Merge(ctx, Account(0).ID, history.Counts{Person: history.Table{samples()[0]: {Sum: 1}}})
		},
		"DeleteExpired": func(ctx context.Context) error {
			_, err := s.History.DeleteExpired(ctx, at.Add(time.Hour))
			return err
		},
	})
	if counts := readAll(t, s, 0); counts.Person[samples()[0]].Sum != 1 || counts.Everyone[samples()[0]].Sum != 1 {
		t.Errorf("cancelled calls left %+v", counts)
	}
}
