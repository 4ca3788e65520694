// Package records keeps all records in the memory of the process: accounts,
// sessions, devices, challenges, audit events, lockouts, keys, servers, grants
// and methods. It stands in for the database in the tests of use cases and
// keeps the same promises; it is no store for a service, since it forgets
// everything when the process ends and copies itself for every change.
package records

import (
	"context"
	"sync"
	"time"
)

// Database holds the tables that the stores of this package share. It is safe
// for concurrent use: one transaction runs at a time, the others wait.
type Database struct {
	mu     sync.Mutex
	tables tables
}

// tables are all records. A stored value is never altered in place, only
// replaced, so that a shallow copy of the maps is a snapshot.
type tables struct {
	auth     authTables
	registry registryTables
}

func (t tables) clone() tables {
	return tables{auth: t.auth.clone(), registry: t.registry.clone()}
}

// New returns an empty database.
func New() *Database {
	return &Database{tables: tables{auth: newAuthTables(), registry: newRegistryTables()}}
}

// carrier is the key of the transaction of one database in a context.
type carrier struct{ db *Database }

// running is the transaction that a context carries.
type running struct {
	spoilt error // why nothing of it may be stored: a joined Atomically failed
}

// Atomically answers ports/transaction: when do fails or panics, a joined call
// failed, or the context has ended by then, the tables are as they were.
func (d *Database) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t := d.carried(ctx); t != nil {
		err := do(ctx)
		if err != nil && t.spoilt == nil {
			t.spoilt = err
		}
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before, done := d.tables.clone(), false
	defer func() {
		if !done {
			d.tables = before
		}
	}()
	t := &running{}
	if err := do(context.WithValue(ctx, carrier{d}, t)); err != nil {
		return err
	}
	if t.spoilt != nil {
		return t.spoilt
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done = true
	return nil
}

// read calls do with the tables, inside the context's transaction or alone.
// do must not change them nor give their maps and slices away.
func (d *Database) read(ctx context.Context, do func(t *tables) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.carried(ctx) == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
	}
	return do(&d.tables)
}

// write calls do with the tables, inside the context's transaction or one of
// its own. do checks everything before it changes anything, so that a
// transaction may go on after a failure.
func (d *Database) write(ctx context.Context, do func(t *tables) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.carried(ctx) != nil {
		return do(&d.tables)
	}
	return d.Atomically(ctx, func(context.Context) error { return do(&d.tables) })
}

func (d *Database) carried(ctx context.Context) *running {
	t, _ := ctx.Value(carrier{d}).(*running)
	return t
}

// micros is a time as databases keep it: UTC, whole microseconds, no monotonic
// clock. The zero time stays zero.
func micros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
