package fakedb

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// table has rows with a key. It stores and returns copies, and undoes its changes when a
// transaction fails. Its methods run in the transaction of their context, or in one of their own.
// Those that are exported implement methods that many ports have: a store embeds its table.
type table[K comparable, R any] struct {
	db      *Database
	name    string // of a row, in messages
	key     func(R) K
	unique  []func(R) any           // each returns what only one row may have, or nil
	refers  func(R) error           // to rows of other tables, as a foreign key does
	keeps   func(old R, changed *R) // restores what Update cannot change
	expires func(R) time.Time       // for DeleteExpired
	rows    map[K]R
}

func newTable[K comparable, R any](db *Database, name string, key func(R) K, unique ...func(R) any) *table[K, R] {
	return &table[K, R]{
		db: db, name: name, key: key, unique: unique, rows: map[K]R{},
		refers: func(R) error { return nil }, keeps: func(R, *R) {},
	}
}

// Get returns the row with a key.
func (t *table[K, R]) Get(ctx context.Context, k K) (R, error) { return t.find(ctx, k) }

// Find is Get.
func (t *table[K, R]) Find(ctx context.Context, k K) (R, error) { return t.find(ctx, k) }

// Create adds a row.
func (t *table[K, R]) Create(ctx context.Context, r R) error { return t.insert(ctx, r) }

// Add is Create.
func (t *table[K, R]) Add(ctx context.Context, r R) error { return t.insert(ctx, r) }

// Put adds a row, or replaces the one with its key.
func (t *table[K, R]) Put(ctx context.Context, r R) error { return t.put(ctx, r) }

// Save is Put.
func (t *table[K, R]) Save(ctx context.Context, r R) error { return t.put(ctx, r) }

// Update changes the row with a key.
func (t *table[K, R]) Update(ctx context.Context, k K, change func(*R) error) error {
	return t.update(ctx, k, func(r *R) error {
		old := *r
		err := change(r)
		t.keeps(old, r)
		return err
	})
}

// Remove deletes the row with a key.
func (t *table[K, R]) Remove(ctx context.Context, k K) error { return t.remove(ctx, k) }

// Take is Remove.
func (t *table[K, R]) Take(ctx context.Context, k K) error { return t.remove(ctx, k) }

// DeleteExpired deletes the rows that have expired before a time.
func (t *table[K, R]) DeleteExpired(ctx context.Context, before time.Time) (int, error) {
	before = storedTime(before)
	return t.removeAll(ctx, func(r R) bool { return t.expires(r).Before(before) })
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
			if err := t.refers(r); err != nil {
				return err
			}
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

// listFirst is list for at most the first limit rows.
func (t *table[K, R]) listFirst(
	ctx context.Context, limit int, matches func(R) bool, order func(a, b R) int,
) ([]R, error) {
	found, err := t.list(ctx, matches, order)
	return first(found, limit), err
}

// one returns the first row that matches.
func (t *table[K, R]) one(ctx context.Context, matches func(R) bool, order func(a, b R) int) (r R, err error) {
	found, err := t.list(ctx, matches, order)
	if err != nil || len(found) == 0 {
		return r, cmp.Or(err, t.errNotFound())
	}
	return found[0], nil
}

// changeAll changes the rows that match, in order, and returns them.
func (t *table[K, R]) changeAll(
	ctx context.Context, matches func(R) bool, order func(a, b R) int, change func(*R),
) ([]R, error) {
	return result(ctx, t.db, func(ctx context.Context) ([]R, error) {
		found, err := t.list(ctx, matches, order)
		for i := range found {
			change(&found[i])
			err = cmp.Or(err, t.put(ctx, found[i]))
		}
		return found, err
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

// detached returns a copy of a row that shares no memory with it, as a database returns it: times
// in UTC with microseconds, nil for an empty list. It copies the exported fields of structs; values
// with unexported ones, for example names, cannot be changed.
func detached[R any](r R) R {
	detach(reflect.ValueOf(&r).Elem())
	return r
}

// detach replaces what an addressable value refers to by copies.
func detach(v reflect.Value) {
	if at, ok := v.Addr().Interface().(*time.Time); ok {
		*at = storedTime(*at)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				detach(v.Field(i))
			}
		}
	case reflect.Slice:
		detachSlice(v)
	case reflect.Map:
		detachMap(v)
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			detach(own.Elem())
			v.Set(own)
		}
	}
}

func detachSlice(v reflect.Value) {
	if v.Len() == 0 {
		v.SetZero()
		return
	}
	own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(own, v)
	if v.Type().Elem().Kind() == reflect.Struct {
		for i := range own.Len() {
			detach(own.Index(i))
		}
	}
	v.Set(own)
}

func detachMap(v reflect.Value) {
	if v.Len() == 0 {
		v.SetZero()
		return
	}
	own := reflect.MakeMapWithSize(v.Type(), v.Len())
	for entry := v.MapRange(); entry.Next(); {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(entry.Value())
		detach(value)
		own.SetMapIndex(entry.Key(), value)
	}
	v.Set(own)
}

// storedTime returns a time as databases store it: in UTC, with microseconds, without a monotonic
// clock. The zero time does not change.
func storedTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
