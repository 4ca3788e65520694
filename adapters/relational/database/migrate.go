package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	// tries of a migration on a busy database, even if they take longer than Migrations.RetryTime
	minMigrationRetries = maxRuns
	maxDoubled          = 10 // how often the wait between two tries is doubled, to 4 s
)

// migration is one step of the schema. Their order is that of their names.
type migration struct {
	name string // for example 0001_registry
	sql  string
	sum  string  // SHA-256 of sql, hexadecimal
	at   Instant // when it was applied
}

// Step is the state of a migration in a database.
type Step struct {
	Name      string
	AppliedAt time.Time // zero if it is pending
}

// Steps returns all migrations of this program in order. Its errors are those of Migrate. It
// changes nothing.
func (d *DB) Steps(ctx context.Context) ([]Step, error) {
	all, err := d.allMigrations()
	if err != nil {
		return nil, err
	}
	done, err := d.appliedMigrations(ctx, d.reader)
	if err != nil {
		return nil, err
	}
	if _, err := pendingMigrations(all, done); err != nil {
		return nil, err
	}
	steps := make([]Step, len(all))
	for i, m := range all {
		steps[i].Name = m.name
		if i < len(done) {
			steps[i].AppliedAt = done[i].at.Time
		}
	}
	return steps, nil
}

// Migrate brings the schema up to date and returns the names of the migrations that it applied, in
// order. Every migration is one transaction under a lock. So any number of processes may call
// Migrate at the same time, and the next call continues a call that did not finish. It returns
// fault.Conflict if the database has migrations that this program does not have.
func (d *DB) Migrate(ctx context.Context) (applied []string, err error) {
	if names, err := d.Pending(ctx); err == nil && len(names) == 0 {
		return nil, nil // also if the database cannot be written
	}
	return d.migrateTo(ctx, -1)
}

// Pending returns the names of the migrations that Migrate would apply. Its errors are those of
// Migrate. It changes nothing.
func (d *DB) Pending(ctx context.Context) ([]string, error) {
	steps, err := d.Steps(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range steps {
		if s.AppliedAt.IsZero() {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// migrateTo applies the first n migrations, or all if n is negative.
func (d *DB) migrateTo(ctx context.Context, n int) (applied []string, err error) {
	all, err := d.allMigrations()
	if err != nil {
		return nil, err
	}
	last := len(all)
	if n >= 0 {
		last = min(n, last)
	}
	db := d.writer
	if d.dialect.Migrations.Open != nil {
		own, closeOwn := d.dialect.Migrations.Open()
		defer closeOwn()
		db = own
	}
	began := time.Now()
	stepBegan, isNew := began, false
	for failed := 0; ; {
		name, err := d.migrateNext(ctx, db, all, last)
		switch {
		case d.is(err, Retrying) && (failed < minMigrationRetries || time.Since(began) < d.dialect.Migrations.RetryTime):
			failed++
			if !pause.For(ctx, firstWait<<min(failed, maxDoubled)) {
				return applied, ctx.Err()
			}
		case err != nil:
			return applied, err
		case name == "":
			return applied, nil
		default:
			isNew = isNew || name == all[0].name
			if d.log != nil && !isNew { // on a new database each takes no time
				d.log.WithFields(logrus.Fields{"migration": name, "took": time.Since(stepBegan).Round(time.Millisecond).String()}).
					Info("a migration is applied")
			}
			applied, stepBegan = append(applied, name), time.Now()
		}
	}
}

// migrateNext applies the first migration that the database does not have, and returns its name.
// The name is empty if the database has the first last migrations.
func (d *DB) migrateNext(ctx context.Context, db *bun.DB, all []migration, last int) (name string, err error) {
	err = db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		for _, statement := range d.dialect.Migrations.Lock {
			if _, err := d.ExecStatement(ctx, tx, statement); err != nil {
				return err
			}
		}
		done, err := d.appliedMigrations(ctx, tx)
		if err != nil {
			return err
		}
		rest, err := pendingMigrations(all, done)
		if err != nil || len(done) >= last {
			return err
		}
		name = rest[0].name
		return d.applyMigration(ctx, tx, rest[0])
	})
	return name, d.ClassifyError(err)
}

func (d *DB) applyMigration(ctx context.Context, tx bun.Tx, m migration) error {
	_, err := d.ExecStatement(ctx, tx, `CREATE TABLE IF NOT EXISTS migrations (
		name text NOT NULL PRIMARY KEY,
		sum text NOT NULL,
		applied_at `+d.dialect.Syntax.TimeType+` NOT NULL)`)
	if err != nil {
		return err
	}
	// Not with Bun, which would replace the question marks.
	if _, err := tx.Tx.ExecContext(ctx, m.sql); err != nil {
		return fmt.Errorf("migration %s: %w", m.name, err)
	}
	_, err = d.ExecStatement(ctx, tx,
		"INSERT INTO migrations (name, sum, applied_at) VALUES (?, ?, "+d.dialect.Syntax.CurrentTime+")", m.name, m.sum)
	return err
}

// appliedMigrations returns the migrations that the database has, by name.
func (d *DB) appliedMigrations(ctx context.Context, db bun.IDB) ([]migration, error) {
	var tables int
	if err := d.ScanInto(ctx, db, &tables, d.dialect.Migrations.Table); err != nil || tables == 0 {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT name, sum, applied_at FROM migrations ORDER BY name")
	if err != nil {
		return nil, d.ClassifyError(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns the error
	var done []migration
	for rows.Next() {
		var m migration
		if err := rows.Scan(&m.name, &m.sum, &m.at); err != nil {
			return nil, d.ClassifyError(err)
		}
		done = append(done, m)
	}
	return done, d.ClassifyError(rows.Err())
}

// pendingMigrations returns the migrations of all that are not done. It returns an error if the
// done ones are not the first of all.
func pendingMigrations(all, done []migration) ([]migration, error) {
	for i, m := range done {
		switch {
		case i >= len(all):
			return nil, fault.Newf(fault.Conflict,
				"the database has the migration %s, which this program does not know: it was made by a newer version, use that one", m.name)
		case m.name != all[i].name:
			return nil, fault.Newf(fault.Conflict,
				"the database has the migration %s where this program has %s: it was made by another version",
				m.name, all[i].name)
		case m.sum != all[i].sum:
			return nil, fault.Newf(fault.Conflict,
				"the migration %s of the database differs from the one of this program: it was made by another version", m.name)
		}
	}
	return all[len(done):], nil
}

// allMigrations returns the migrations of this program, by name.
func (d *DB) allMigrations() ([]migration, error) {
	const folder = "migrations"
	entries, err := fs.ReadDir(d.dialect.Migrations.Files, folder) // sorted by name
	if err != nil {
		return nil, err
	}
	all := make([]migration, 0, len(entries))
	for _, e := range entries {
		text, err := fs.ReadFile(d.dialect.Migrations.Files, path.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		name, ok := strings.CutSuffix(e.Name(), ".sql")
		if !ok {
			return nil, errors.New("not a migration: " + e.Name())
		}
		sum := sha256.Sum256(text)
		all = append(all, migration{name: name, sql: string(text), sum: hex.EncodeToString(sum[:])})
	}
	return all, nil
}
