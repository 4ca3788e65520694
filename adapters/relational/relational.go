// Package relational opens the database of the service: PostgreSQL if DATABASE_URL is set, else a
// SQLite file. The folders below it have the databases, and the stores on them.
package relational

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
)

// Config holds the settings of the database.
type Config struct {
	Postgres       postgres.Config
	SQLite         sqlite.Config
	MigrateOnStart bool `env:"MIGRATE_ON_START" envDefault:"true" desc:"apply missing migrations at start, under a lock"`
}

// Validate returns an error that begins with the name of the first setting that is wrong.
func (c Config) Validate() error {
	if err := c.Postgres.Validate(); err != nil {
		return err
	}
	return c.SQLite.Validate()
}

// InFile reports whether the database is a SQLite file.
func (c Config) InFile() bool { return c.Postgres.URL == "" }

// Patient returns the settings of operator commands, whose queries may take any time.
func (c Config) Patient() Config {
	c.Postgres, c.SQLite = c.Postgres.Patient(), c.SQLite.Patient()
	return c
}

// file returns the settings of the SQLite file.
func (c Config) file() sqlite.Config {
	c.SQLite.BusyTimeout = cmp.Or(c.SQLite.BusyTimeout, c.Postgres.StatementTimeout/2)
	return c.SQLite
}

// Present returns fault.NotFound if the database is a SQLite file that does not exist.
func (c Config) Present() error {
	if !c.InFile() {
		return nil
	}
	return sqlite.Present(c.SQLite)
}

// open opens the database without a look at its schema.
func (c Config) open(ctx context.Context) (*database.DB, func(), error) {
	if c.InFile() {
		return sqlite.Open(ctx, c.file())
	}
	return postgres.Open(ctx, c.Postgres)
}

// Open opens the database, which calls the hook for each statement; nil means no hook. It applies
// missing migrations, or returns an error if one is missing and MIGRATE_ON_START is false.
func Open(ctx context.Context, c Config, hook bun.QueryHook, log *logrus.Entry) (*database.DB, func(), error) {
	db, cleanup, err := c.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if hook != nil {
		db.Observe(hook)
	}
	db.Log(log)
	if warning := c.SQLite.AccessWarning(); c.InFile() && warning != "" {
		log.Warn("the database is not secret: " + warning)
	}
	if err := db.UpdateSchema(ctx, c.MigrateOnStart, log); err != nil {
		cleanup()
		return nil, nil, fmt.Errorf("database schema: %w", err)
	}
	return db, cleanup, nil
}

// Migrate applies the missing migrations, also if MIGRATE_ON_START is false, and returns their
// names.
func (c Config) Migrate(ctx context.Context) ([]string, error) {
	return with(ctx, c, (*database.DB).Migrate)
}

// Migrations returns the state of each migration. It does not change the schema. It returns the
// error of Present.
func (c Config) Migrations(ctx context.Context) ([]database.Step, error) {
	if err := c.Present(); err != nil {
		return nil, err
	}
	return with(ctx, c, (*database.DB).Steps)
}

// with returns what a function does with the database of an operator command.
func with[T any](ctx context.Context, c Config, do func(*database.DB, context.Context) (T, error)) (T, error) {
	db, cleanup, err := c.Patient().open(ctx)
	if err != nil {
		return *new(T), err
	}
	defer cleanup()
	return do(db, ctx)
}

// WriteBackup is sqlite.WriteBackup. It returns an error if the database is PostgreSQL, which has
// its own tools for backups.
func (c Config) WriteBackup(ctx context.Context, file string, replace bool) (int64, error) {
	if !c.InFile() {
		return 0, errors.New("DATABASE_URL is set: pg_dump makes backups of PostgreSQL, see docs/backup.md")
	}
	size, err := sqlite.WriteBackup(ctx, c.file(), file, replace)
	if err == nil {
		_ = os.WriteFile(c.backupMark(), nil, 0o600) // without it the service misses the backup
	}
	return size, err
}

// backupMark is the file that has the time of the last backup.
func (c Config) backupMark() string { return filepath.Join(c.SQLite.Dir, "last-backup") }

// LastBackup returns when WriteBackup has last written a backup, or the zero time if it has not, or
// if the database is PostgreSQL.
func (c Config) LastBackup() time.Time {
	if !c.InFile() {
		return time.Time{}
	}
	info, err := os.Stat(c.backupMark())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
