package fakedb

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// table has rows with a key. It stores and returns copies, and undoes its changes when a
// transaction fails. Its methods run in the transaction of their context, or in one of their own.
type table[K comparable, R any] struct {
	db     *Database
	name   string // of a row, in messages
	key    func(R) K
	unique []func(R) any // each returns what only one row may have, or nil
	rows   map[K]R
}

func newTable[K comparable, R any](db *Database, name string, key func(R) K, unique ...func(R) any) *table[K, R] {
	return &table[K, R]{db: db, name: name, key: key, unique: unique, rows: map[K]R{}}
}

// has reports whether there is a row with the key. The caller is in a transaction.
func (t *table[K, R]) has(k K) bool {
	_, ok := t.rows[k]
	return ok
}

// refer returns an error if there is no row with the key, as a foreign key does.
func (t *table[K, R]) refer(k K) error {
	if t.has(k) {
		return nil
	}
	return fault.Newf(fault.Internal, "the %s that it refers to does not exist", t.name)
}

func (t *table[K, R]) errNotFound() error {
	return fault.Newf(fault.NotFound, "the %s does not exist", t.name).WithCode(auth.CodeNotFound)
}

func (t *table[K, R]) errConflict() error {
	return fault.Newf(fault.Conflict, "the %s already exists", t.name)
}

// find returns the row with a key.
func (t *table[K, R]) find(ctx context.Context, k K) (R, error) {
	return result(ctx, t.db, func(context.Context) (r R, err error) {
		if !t.has(k) {
			return r, t.errNotFound()
		}
		return detached(t.rows[k]), nil
	})
}

// insert adds rows.
func (t *table[K, R]) insert(ctx context.Context, rows ...R) error {
	return t.db.run(ctx, func(ctx context.Context) error {
		for _, r := range rows {
			if t.has(t.key(r)) {
				return t.errConflict()
			}
			if err := t.put(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// put adds a row, or replaces the one with its key.
func (t *table[K, R]) put(ctx context.Context, r R) error {
	return t.db.run(ctx, func(context.Context) error {
		if !t.isUnique(r) {
			return t.errConflict()
		}
		k := t.key(r)
		t.log(k)
		t.rows[k] = detached(r)
		return nil
	})
}

func (t *table[K, R]) isUnique(r R) bool {
	for _, of := range t.unique {
		value := of(r)
		for k, other := range t.rows {
			if value != nil && k != t.key(r) && of(other) == value {
				return false
			}
		}
	}
	return true
}

// update changes the row with a key. The change must not change the key.
func (t *table[K, R]) update(ctx context.Context, k K, change func(*R) error) error {
	return t.db.run(ctx, func(ctx context.Context) error {
		r, err := t.find(ctx, k)
		if err != nil {
			return err
		}
		if err := change(&r); err != nil {
			return err
		}
		return t.put(ctx, r)
	})
}

// remove deletes the row with a key.
func (t *table[K, R]) remove(ctx context.Context, k K) error {
	return t.db.run(ctx, func(context.Context) error {
		if !t.has(k) {
			return t.errNotFound()
		}
		t.log(k)
		delete(t.rows, k)
		return nil
	})
}

// removeAll deletes the rows that match, and returns their number.
func (t *table[K, R]) removeAll(ctx context.Context, matches func(R) bool) (n int, err error) {
	return result(ctx, t.db, func(ctx context.Context) (int, error) {
		for k, r := range t.rows {
			if matches(r) {
				t.log(k)
				delete(t.rows, k)
				n++
			}
		}
		return n, nil
	})
}

// list returns the rows that match, in order.
func (t *table[K, R]) list(ctx context.Context, matches func(R) bool, order func(a, b R) int) ([]R, error) {
	return result(ctx, t.db, func(context.Context) (found []R, _ error) {
		for _, r := range t.rows {
			if matches(r) {
				found = append(found, r)
			}
		}
		slices.SortFunc(found, order)
		for i := range found {
			found[i] = detached(found[i])
		}
		return found, nil
	})
}

// log remembers the row with a key before it changes.
func (t *table[K, R]) log(k K) {
	old, had := t.rows[k]
	t.db.undo = append(t.db.undo, func() {
		if had {
			t.rows[k] = old
		} else {
			delete(t.rows, k)
		}
	})
}

// all matches every row.
func all[R any](R) bool { return true }

// first returns at most the first limit rows.
func first[R any](rows []R, limit int) []R { return rows[:min(len(rows), max(limit, 0))] }

// cutPage returns one page of a list, and the length of the list.
func cutPage[R any](rows []R, page auth.PageRequest) ([]R, int) {
	return first(rows[min(max(page.Offset, 0), len(rows)):], page.Limit), len(rows)
}
