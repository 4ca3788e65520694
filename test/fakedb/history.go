package fakedb

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
)

// History implements [authstore.HistoryCounts], [authstore.HistoryDeferrals] and
// [authstore.HistoryTotals].
type History struct{ db *Database }

// NewHistory returns the counts of a database.
func NewHistory(db *Database) *History { return &History{db: db} }

// countKey is a value of a person.
type countKey struct {
	user  auth.UserID
	value history.Value
}

// deferral is a list of additions that are applied later.
type deferral struct {
	additions []history.Addition
	at        time.Time
}

// Read returns the counts of values.
func (h *History) Read(ctx context.Context, user auth.UserID, person, everyone []history.Value) (counts history.Counts, err error) {
	counts = history.Counts{Person: history.Table{}, Everyone: history.Table{}}
	err = h.db.readTables(ctx, func(t *tables) error {
		for _, v := range person {
			if c, ok := t.auth.counts[countKey{user, v}]; ok {
				counts.Person[v] = c
			}
		}
		for _, v := range everyone {
			if c, ok := t.auth.totals[v]; ok {
				counts.Everyone[v] = c
			}
		}
		return nil
	})
	return counts, err
}

// Add adds to the counts of a person, and stores the additions until Gather is called.
func (h *History) Add(ctx context.Context, user auth.UserID, additions []history.Addition, at time.Time) error {
	return h.db.writeTables(ctx, func(t *tables) error { return t.auth.addHistory(user, additions, at) })
}

func (t *authTables) addHistory(user auth.UserID, additions []history.Addition, at time.Time) error {
	if _, ok := t.accounts[user]; !ok {
		return errMissing("account")
	}
	at = truncateToMicroseconds(at)
	for _, a := range additions {
		if key := (countKey{user, a.Value}); a.Person {
			t.counts[key] = t.counts[key].Plus(a, at)
		}
	}
	t.additions[len(t.additions)] = deferral{additions, at}
	return nil
}

// Defer stores additions of a session.
func (h *History) Defer(ctx context.Context, session auth.Session, additions []history.Addition) error {
	return h.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.auth.sessions[session.ID]; !ok {
			return errMissing("session")
		}
		t.auth.deferred[session.ID] = deferral{additions, session.CreatedAt}
		return nil
	})
}

// Confirm applies the additions of a session.
func (h *History) Confirm(ctx context.Context, session auth.SessionID) error {
	return h.db.writeTables(ctx, func(t *tables) error {
		d, ok := t.auth.deferred[session]
		if !ok {
			return nil
		}
		delete(t.auth.deferred, session)
		return t.auth.addHistory(t.auth.sessions[session].UserID, d.additions, d.at)
	})
}

// Gather adds the stored additions to the counts of everybody.
func (h *History) Gather(ctx context.Context) (n int, err error) {
	err = h.db.writeTables(ctx, func(t *tables) error {
		n = len(t.auth.additions)
		for _, d := range t.auth.additions {
			history.Counts{Everyone: t.auth.totals}.Apply(onlyEveryone(d.additions), d.at)
		}
		clear(t.auth.additions)
		return nil
	})
	return n, err
}

func onlyEveryone(additions []history.Addition) (list []history.Addition) {
	for _, a := range additions {
		a.Person = false
		list = append(list, a)
	}
	return list
}

// Merge adds whole counts.
func (h *History) Merge(ctx context.Context, user auth.UserID, counts history.Counts) error {
	return h.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.auth.accounts[user]; !ok && user != "" {
			return errMissing("account")
		}
		for v, c := range counts.Person {
			if key := (countKey{user, v}); user != "" {
				t.auth.counts[key] = mergeCounts(t.auth.counts[key], c)
			}
		}
		for v, c := range counts.Everyone {
			t.auth.totals[v] = mergeCounts(t.auth.totals[v], c)
		}
		return nil
	})
}

func mergeCounts(a, b history.Count) history.Count {
	return a.Plus(history.Addition{Weight: b.Sum, Version: b.Version}, truncateToMicroseconds(b.Last))
}

// DeleteExpired deletes old counts.
func (h *History) DeleteExpired(ctx context.Context, before time.Time) (n int, err error) {
	err = h.db.writeTables(ctx, func(t *tables) error {
		old := func(c history.Count) bool { return c.Last.Before(truncateToMicroseconds(before)) }
		n = deleteRows(t.auth.counts, old) + deleteRows(t.auth.totals, old)
		return nil
	})
	return n, err
}
