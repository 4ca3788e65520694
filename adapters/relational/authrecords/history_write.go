package authrecords

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
)

// storedAddition is an addition in the column additions of history_additions and history_deferred.
// It has the value as it is stored, so that no value of a person is in the column in clear.
type storedAddition struct {
	Feature  history.Feature `json:"f"`
	Person   *string         `json:"p,omitempty"` // the value in the counts of the person; nil if it is not added there
	Everyone *string         `json:"e,omitempty"` // the value in the counts of everybody; likewise
	Weight   float64         `json:"w"`
	Version  uint32          `json:"n,omitempty"`
}

// toStored returns additions as they are stored. Those of a person are left out if user is empty.
func (h *historyStore) toStored(user auth.UserID, additions []history.Addition) []storedAddition {
	list := make([]storedAddition, 0, len(additions))
	for _, a := range additions {
		s := storedAddition{Feature: a.Value.Feature, Weight: a.Weight, Version: a.Version}
		if a.Person && user != "" {
			text := a.Value.Stored(h.key, user)
			s.Person = &text
		}
		if a.Everyone {
			text := a.Value.Stored(h.key, "")
			s.Everyone = &text
		}
		if s.Person != nil || s.Everyone != nil {
			list = append(list, s)
		}
	}
	return list
}

// parseStored returns the additions of a column.
func parseStored(text string) (list []storedAddition, err error) {
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, database.BrokenRow(fmt.Errorf("read additions: %w", err))
	}
	return list, nil
}

// countSums adds up additions to counts by their stored values.
type countSums map[storedValue]history.Count

type storedValue struct {
	feature history.Feature
	text    string
}

// add adds an addition to the counts of a person, or of everybody if user is empty. Another instance
// of an earlier version may have stored its text in clear.
func (h *historyStore) add(c countSums, user auth.UserID, a storedAddition, text *string, at time.Time) {
	if text == nil {
		return
	}
	v := storedValue{a.Feature, history.Value{Feature: a.Feature, Text: *text}.Restored(h.key, user)}
	c[v] = c[v].Plus(history.Addition{Weight: a.Weight, Version: a.Version}, at)
}

func (c countSums) toRows() []countRow {
	rows := make([]countRow, 0, len(c))
	for v, count := range c {
		rows = append(rows, newCountRow(v.feature, v.text, count))
	}
	return rows
}

func newCountRow(f history.Feature, text string, c history.Count) countRow {
	return countRow{f, text, c.Sum, database.NewInstant(c.Last), c.Version}
}

func (h *historyStore) Add(ctx context.Context, user auth.UserID, additions []history.Addition, at time.Time) error {
	return h.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		return h.apply(ctx, tx, user, h.toStored(user, additions), at)
	})
}

// apply adds to the counts of a person, and stores what is to be gathered for everybody.
func (h *historyStore) apply(
	ctx context.Context, tx bun.IDB, user auth.UserID, additions []storedAddition, at time.Time,
) error {
	at = at.Truncate(time.Microsecond)
	own := countSums{}
	shared := make([]storedAddition, 0, len(additions))
	clear, err := h.takeClear(ctx, tx, user)
	if err != nil {
		return err
	}
	for _, r := range clear {
		h.add(own, user, storedAddition{Feature: r.Feature, Weight: r.Sum, Version: r.Version}, &r.Value, r.LastAt.Time)
	}
	for _, a := range additions {
		h.add(own, user, a, a.Person, at)
		if a.Everyone != nil {
			a.Person = nil
			shared = append(shared, a)
		}
	}
	if err := h.addRows(ctx, tx, user, own.toRows()); err != nil || len(shared) == 0 {
		return err
	}
	text, err := json.Marshal(shared)
	if err != nil {
		return fmt.Errorf("write additions: %w", err)
	}
	_, err = h.db.ExecStatement(ctx, tx, "INSERT INTO history_additions (at, additions) VALUES (?, ?)",
		database.NewInstant(at), string(text))
	return err
}

func (h *historyStore) Defer(ctx context.Context, session auth.Session, additions []history.Addition) error {
	text, err := json.Marshal(h.toStored(session.UserID, additions))
	if err != nil {
		return fmt.Errorf("write additions: %w", err)
	}
	return h.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := h.db.ExecStatement(ctx, tx,
			"INSERT INTO history_deferred (session_id, at, additions) VALUES (?, ?, ?)",
			session.ID, database.NewInstant(session.CreatedAt), string(text))
		return err
	})
}

// userOf returns the person of a session, or fault.NotFound.
func (h *historyStore) userOf(ctx context.Context, tx bun.IDB, session auth.SessionID) (user auth.UserID, err error) {
	return user, h.db.ScanInto(ctx, tx, &user, "SELECT user_id FROM sessions WHERE id = ?", session)
}

type deferredRow struct {
	At        database.Instant `bun:"at"`
	Additions string           `bun:"additions"`
}

// Confirm implements authstore.HistoryDeferrals. Of parallel calls, one deletes the row.
func (h *historyStore) Confirm(ctx context.Context, session auth.SessionID) error {
	return h.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		var rows []deferredRow
		err := h.db.ScanInto(ctx, tx, &rows,
			"DELETE FROM history_deferred WHERE session_id = ? RETURNING at, additions", session)
		if err != nil || len(rows) == 0 {
			return err
		}
		user, err := h.userOf(ctx, tx, session)
		if err != nil {
			return err
		}
		additions, err := parseStored(rows[0].Additions)
		if err != nil {
			return err
		}
		return h.apply(ctx, tx, user, additions, rows[0].At.Time)
	})
}

// takeClear removes the counts of a person that an earlier version stored in clear, and returns
// them. Those of everybody, and of people who do not sign in, end after history.Lifetime.
func (h *historyStore) takeClear(ctx context.Context, tx bun.IDB, user auth.UserID) (rows []countRow, err error) {
	return rows, h.db.ScanInto(ctx, tx, &rows,
		"DELETE FROM history_counts WHERE user_id = ? AND feature >= ? AND value <> '' AND length(value) <> ? "+
			"RETURNING feature, value, sum, last_at, version", user, int(history.Network), history.HashLength)
}

// gatherBatch is the number of sign-ins that one transaction gathers.
const gatherBatch = 500

type additionsRow struct {
	ID        int64            `bun:"id"`
	At        database.Instant `bun:"at"`
	Additions string           `bun:"additions"`
}

func (h *historyStore) Gather(ctx context.Context) (total int, err error) {
	for {
		n := 0
		waiting, err := h.hasAdditions(ctx)
		if err != nil || !waiting {
			return total, err
		}
		err = h.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
			n, err = h.gatherOnce(ctx, tx)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += n; n < gatherBatch {
			return total, nil
		}
	}
}

// hasAdditions reports whether anything is to be gathered. It takes no lock, so that an instance
// that has nothing to do does not wait for its turn to write.
func (h *historyStore) hasAdditions(ctx context.Context) (waiting bool, err error) {
	err = h.db.ScanRow(ctx, database.Query{
		Text: "SELECT count(*) > 0 FROM (SELECT 1 FROM history_additions LIMIT 1) AS waiting",
	}, &waiting)
	return waiting, err
}

// gatherOnce gathers the oldest sign-ins. The lock on their rows makes other callers wait, who then
// find them deleted.
func (h *historyStore) gatherOnce(ctx context.Context, tx bun.IDB) (int, error) {
	var rows []additionsRow
	err := h.db.LockForChange(tx.NewSelect().TableExpr("history_additions").Column("id", "at", "additions").Order("id").
		Limit(gatherBatch)).
		Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return 0, h.db.ClassifyError(err)
	}
	sums, ids := countSums{}, make([]int64, 0, len(rows))
	for i := range rows {
		additions, err := parseStored(rows[i].Additions)
		if err != nil {
			return 0, err
		}
		for _, a := range additions {
			h.add(sums, "", a, a.Everyone, rows[i].At.Time)
		}
		ids = append(ids, rows[i].ID)
	}
	if _, err := h.db.ExecStatement(ctx, tx, "DELETE FROM history_additions WHERE id IN (?)",
		bun.List(ids)); err != nil {
		return 0, err
	}
	return len(rows), h.addRows(ctx, tx, "", sums.toRows())
}

func (h *historyStore) Merge(ctx context.Context, user auth.UserID, counts history.Counts) error {
	return h.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		if user != "" {
			if err := h.addRows(ctx, tx, user, h.tableRows(user, counts.Person)); err != nil {
				return err
			}
		}
		return h.addRows(ctx, tx, "", h.tableRows("", counts.Everyone))
	})
}

func (h *historyStore) tableRows(user auth.UserID, t history.Table) []countRow {
	rows := make([]countRow, 0, len(t))
	for v, c := range t {
		c.Last = c.Last.Truncate(time.Microsecond)
		rows = append(rows, newCountRow(v.Feature, v.Stored(h.key, user), c))
	}
	return rows
}

func (h *historyStore) DeleteExpired(ctx context.Context, before time.Time) (total int, err error) {
	for _, table := range []struct{ name, key string }{
		{"history_counts", "user_id, feature, value"}, {"history_totals", "feature, value"},
	} {
		n, err := h.db.InBatches(ctx, func(ctx context.Context, tx bun.IDB) (int, error) {
			n, err := h.db.ExecStatement(ctx, tx,
				"DELETE FROM "+table.name+" WHERE last_at < ? AND ("+table.key+") IN (SELECT "+table.key+
					" FROM "+table.name+" WHERE period <= ? AND last_at < ? ORDER BY period LIMIT ?)",
				database.NewInstant(before), periodOf(before), database.NewInstant(before), database.BatchSize)
			return int(n), err
		})
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
