// Package fakedb keeps all records in the memory of the process: accounts, sessions, devices,
// challenges, audit events, lockouts, keys, servers, quarantine, grants, policies of publishers and
// methods. It replaces the database in tests of use cases and passes the same contract suites. It
// is not suitable for a service, because everything is lost when the process ends, and every change
// copies the tables.
package fakedb

import (
	"context"
	"sync"
	"time"
)

// Database contains the tables that the stores of this package share. It is safe for concurrent
// use: it runs one transaction at a time.
type Database struct {
	mu     sync.Mutex
	tables tables
}

// tables contains all records. A stored value is only replaced, never changed in place, so a
// shallow copy of the maps is a snapshot.
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

// carrier is the context key of the transaction of a database.
type carrier struct{ db *Database }

// running is the state of the transaction in a context.
type running struct {
	failure error // of a nested Atomically: the transaction must not be stored
}

// Atomically implements transaction.Runner. If do fails or panics, a nested call failed, or ctx has
// ended, it restores the tables.
func (d *Database) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t := d.currentTransaction(ctx); t != nil {
		err := do(ctx)
		if err != nil && t.failure == nil {
			t.failure = err
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
	if t.failure != nil {
		return t.failure
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done = true
	return nil
}

// readTables calls do with the tables, in the transaction of ctx if there is one. Do must not
// change the tables or keep references to their maps and slices.
func (d *Database) readTables(ctx context.Context, do func(t *tables) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.currentTransaction(ctx) == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
	}
	return do(&d.tables)
}

// writeTables calls do with the tables, in the transaction of ctx or a new one. Do must make all
// checks before it changes anything, because a transaction may continue after an error.
func (d *Database) writeTables(ctx context.Context, do func(t *tables) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.currentTransaction(ctx) != nil {
		return do(&d.tables)
	}
	return d.Atomically(ctx, func(context.Context) error { return do(&d.tables) })
}

func (d *Database) currentTransaction(ctx context.Context) *running {
	t, _ := ctx.Value(carrier{d}).(*running)
	return t
}

// truncateToMicroseconds returns a time as databases store it: in UTC, with microseconds, without a
// monotonic clock. The zero time does not change.
func truncateToMicroseconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
