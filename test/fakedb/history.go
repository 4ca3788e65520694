package fakedb

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// History implements [authstore.HistoryCounts], [authstore.HistoryDeferrals] and
// [authstore.HistoryTotals].
type History struct{ db *Database }

// NewHistory returns the counts of a database.
func NewHistory(db *Database) *History { return &History{db} }

// Read implements [authstore.HistoryCounts].
func (h *History) Read(
	ctx context.Context, user auth.UserID, person, everyone []history.Value,
) (history.Counts, error) {
	return result(ctx, h.db, func(context.Context) (history.Counts, error) {
		counts := history.Counts{Person: history.Table{}, Everyone: history.Table{}}
		for _, v := range person {
			if c, ok := h.db.counts.rows[countKey{user, v}]; ok {
				counts.Person[v] = c.Count
			}
		}
		for _, v := range everyone {
			if c, ok := h.db.totals.rows[v]; ok {
				counts.Everyone[v] = c.Count
			}
		}
		return counts, nil
	})
}

// Add implements [authstore.HistoryCounts].
func (h *History) Add(ctx context.Context, user auth.UserID, additions []history.Addition, at time.Time) error {
	return h.db.run(ctx, func(ctx context.Context) error {
		err := h.db.accounts.refer(user)
		for _, a := range additions {
			if a.Person {
				err = cmp.Or(err, h.addToPerson(ctx, user, a, at))
			}
		}
		return cmp.Or(err,
			h.db.additions.insert(ctx, additionRow{Number: h.db.nextNumber(), Additions: additions, At: at}))
	})
}

func (h *History) addToPerson(ctx context.Context, user auth.UserID, a history.Addition, at time.Time) error {
	count := h.db.counts.rows[countKey{user, a.Value}].Count
	return h.db.counts.put(ctx, countRow{user, a.Value, count.Plus(a, storedTime(at))})
}

func (h *History) addToEveryone(ctx context.Context, a history.Addition, at time.Time) error {
	return h.db.totals.put(ctx, countRow{
		Value: a.Value, Count: h.db.totals.rows[a.Value].Count.Plus(a, storedTime(at)),
	})
}

// Defer implements [authstore.HistoryDeferrals].
func (h *History) Defer(ctx context.Context, session auth.Session, additions []history.Addition) error {
	return h.db.run(ctx, func(ctx context.Context) error {
		row := additionRow{Session: session.ID, Additions: additions, At: session.CreatedAt}
		return cmp.Or(h.db.sessions.refer(session.ID), h.db.deferred.put(ctx, row))
	})
}

// Confirm implements [authstore.HistoryDeferrals].
func (h *History) Confirm(ctx context.Context, session auth.SessionID) error {
	return h.db.run(ctx, func(ctx context.Context) error {
		d, ok := h.db.deferred.rows[session]
		if !ok {
			return nil
		}
		return cmp.Or(h.db.deferred.remove(ctx, session),
			h.Add(ctx, h.db.sessions.rows[session].UserID, d.Additions, d.At))
	})
}

// Gather implements [authstore.HistoryTotals].
func (h *History) Gather(ctx context.Context) (int, error) {
	return result(ctx, h.db, func(ctx context.Context) (int, error) {
		rows, err := h.db.additions.list(ctx, all, func(a, b additionRow) int {
			return cmp.Compare(a.Number, b.Number)
		})
		for _, row := range rows {
			err = cmp.Or(err, h.db.additions.remove(ctx, row.Number))
			for _, a := range row.Additions {
				if a.Everyone {
					err = cmp.Or(err, h.addToEveryone(ctx, a, row.At))
				}
			}
		}
		return len(rows), err
	})
}

// Merge implements [authstore.HistoryTotals].
func (h *History) Merge(ctx context.Context, user auth.UserID, counts history.Counts) error {
	return h.db.run(ctx, func(ctx context.Context) (err error) {
		if user != "" {
			err = h.db.accounts.refer(user)
			for v, c := range counts.Person {
				err = cmp.Or(err,
					h.addToPerson(ctx, user, history.Addition{Value: v, Weight: c.Sum, Version: c.Version}, c.Last))
			}
		}
		for v, c := range counts.Everyone {
			err = cmp.Or(err,
				h.addToEveryone(ctx, history.Addition{Value: v, Weight: c.Sum, Version: c.Version}, c.Last))
		}
		return err
	})
}

// DeleteExpired implements [authstore.HistoryCounts].
func (h *History) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return result(ctx, h.db, func(ctx context.Context) (int, error) {
		old := func(c countRow) bool { return c.Count.Last.Before(before) }
		persons, err := h.db.counts.removeAll(ctx, old)
		everyone, err2 := h.db.totals.removeAll(ctx, old)
		return persons + everyone, cmp.Or(err, err2)
	})
}

// Keyring implements [authstore.KeyRing].
type Keyring struct{ db *Database }

// NewKeyring returns the shared keys of a database.
func NewKeyring(db *Database) *Keyring { return &Keyring{db} }

// Announce implements [authstore.KeyRing].
func (r *Keyring) Announce(ctx context.Context, k authstore.PublicKey) error {
	return r.db.run(ctx, func(ctx context.Context) error {
		known, ok := r.db.signingKeys.rows[k.ID]
		switch {
		case authstore.Algorithm(k.Key) == "":
			return fault.New(fault.Invalid, "the key is of no algorithm")
		case ok && !known.Is(k.Key):
			return fault.New(fault.Conflict, "the key id belongs to another key")
		case ok && !known.SeenAt.Before(k.SeenAt):
			return nil
		}
		return r.db.signingKeys.put(ctx, ownKey(k))
	})
}

// PublicKeys implements [authstore.KeyRing].
func (r *Keyring) PublicKeys(ctx context.Context, since time.Time) ([]authstore.PublicKey, error) {
	since = storedTime(since)
	list, err := r.db.signingKeys.list(ctx, func(k authstore.PublicKey) bool { return !k.SeenAt.Before(since) },
		func(a, b authstore.PublicKey) int { return cmp.Compare(a.ID, b.ID) })
	for i := range list {
		list[i] = ownKey(list[i])
	}
	return list, err
}

// ownKey returns a key with memory of its own.
func ownKey(k authstore.PublicKey) authstore.PublicKey {
	if raw, ok := k.Key.(ed25519.PublicKey); ok {
		k.Key = slices.Clone(raw)
	}
	return k
}

// Withdraw implements [authstore.KeyRing].
func (r *Keyring) Withdraw(ctx context.Context, ids ...authstore.KeyID) error {
	withdrawn := map[authstore.KeyID]bool{}
	for _, id := range ids {
		withdrawn[id] = true
	}
	_, err := r.db.signingKeys.removeAll(ctx, func(k authstore.PublicKey) bool { return withdrawn[k.ID] })
	return err
}

// RootSecret implements [authstore.KeyRing].
func (r *Keyring) RootSecret(ctx context.Context, candidate []byte) ([]byte, error) {
	return result(ctx, r.db, func(ctx context.Context) ([]byte, error) {
		if len(r.db.rootSecrets.rows[0]) == 0 {
			if err := r.db.rootSecrets.put(ctx, candidate); err != nil {
				return nil, err
			}
		}
		return r.db.rootSecrets.find(ctx, 0)
	})
}
