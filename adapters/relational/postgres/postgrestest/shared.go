package postgrestest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
)

// This file has what the processes of a server share: the template, and what ended processes left.

// makingKey is the key of the lock of the process that makes a template: "template" in ASCII.
const makingKey = 0x74656d706c617465

// templateKey returns the key of the template of the current migrations. It comes from their names
// and texts. The processes that use the template share its lock, so that no process drops it.
func templateKey() (int64, error) {
	sum := sha256.New()
	err := fs.WalkDir(postgres.Migrations, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(postgres.Migrations, path)
		_, _ = fmt.Fprintf(sum, "%s %d %s", path, len(text), text) // never fails
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the migrations: %w", err)
	}
	return int64(binary.BigEndian.Uint64(sum.Sum(nil)) >> 1), nil //nolint:gosec // has 63 bits
}

// migratedTemplate returns the name of the template, which it makes if it does not exist.
func (s *server) migratedTemplate(ctx context.Context) (name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.template != "" {
		return s.template, nil
	}
	key, err := templateKey()
	if err != nil {
		return "", err
	}
	uninterrupted := context.WithoutCancel(ctx) // an interrupted connection is closed, and loses its locks
	if _, err := s.session.ExecContext(uninterrupted, "SELECT pg_advisory_lock_shared($1), pg_advisory_lock($2)", key,
		makingKey); err != nil {
		return "", fmt.Errorf("wait for the template: %w", err)
	}
	name = nameOf(key, "template")
	err = s.makeTemplate(ctx, name, nameOf(key, "making"))
	_, unlockErr := s.session.ExecContext(uninterrupted, "SELECT pg_advisory_unlock($1)", makingKey)
	if err := errors.Join(err, unlockErr); err != nil {
		return "", fmt.Errorf("make the template: %w", err)
	}
	s.template = name
	return name, nil
}

// makeTemplate makes a template if it does not exist. The template has its name only after it is
// complete. No one connects to it, because the server does not copy a database that is in use.
func (s *server) makeTemplate(ctx context.Context, name, unfinished string) error {
	var exists bool
	if err := s.pool.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).
		Scan(&exists); err != nil || exists {
		return err
	}
	for _, statement := range []string{
		"DROP DATABASE IF EXISTS " + unfinished + " WITH (FORCE)", "CREATE DATABASE " + unfinished,
	} {
		if err := s.execute(ctx, statement); err != nil {
			return err
		}
	}
	if err := migrate(ctx, s.url(unfinished)); err != nil {
		return err
	}
	if err := s.execute(ctx, "ALTER DATABASE "+unfinished+" ALLOW_CONNECTIONS false"); err != nil {
		return err
	}
	return s.execute(ctx, "ALTER DATABASE "+unfinished+" RENAME TO "+name)
}

func migrate(ctx context.Context, address string) error {
	db, closeDB, err := postgres.Open(ctx, postgres.Config{
		URL: address, MaxConns: 2,
		Timeout: patience, DialTimeout: patience, StatementTimeout: patience, MigrationTimeout: patience,
	})
	if err != nil {
		return err
	}
	defer closeDB()
	if _, err = db.Migrate(ctx); err != nil {
		return err
	}
	text, err := fs.ReadFile(postgres.Migrations, "migrations/0003_methods.sql")
	if err != nil {
		return err
	}
	_, insert, _ := strings.Cut(string(text), "INSERT") // tests find the same methods in both databases
	pool := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address)))
	defer func() { _ = pool.Close() }() // nothing is left to be done
	_, err = pool.ExecContext(ctx, "INSERT"+insert)
	return err
}

// dropAbandoned drops the databases of ended processes, and the templates of other migrations that
// no process uses: no one holds the lock of their key.
func (s *server) dropAbandoned(ctx context.Context) error {
	current, err := templateKey()
	if err != nil {
		return err
	}
	names, err := s.list(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		key, err := keyOf(name)
		if err != nil {
			return err
		}
		if key == s.key || key == current {
			continue
		}
		if err := s.dropUnlocked(ctx, name, key); err != nil {
			return fmt.Errorf("drop the abandoned database %s: %w", name, err)
		}
	}
	return nil
}

// list returns the names of our databases.
func (s *server) list(ctx context.Context) (names []string, err error) {
	rows, err := s.pool.QueryContext(ctx,
		"SELECT datname FROM pg_database WHERE datname ~ $1 AND pg_get_userbyid(datdba) = current_user", namePattern)
	if err != nil {
		return nil, fmt.Errorf("list the databases: %w", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list the databases: %w", err)
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// dropUnlocked drops a database if no one holds the lock of its key and no one uses it.
func (s *server) dropUnlocked(ctx context.Context, name string, key int64) error {
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // its statements have ended
	var locked bool
	if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", key).Scan(&locked); err != nil || !locked {
		return err
	}
	_, err = conn.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name)
	if isUsed(err) {
		err = nil // the next process tries again
	}
	_, unlockErr := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", key)
	return errors.Join(err, unlockErr)
}

// isUsed reports whether an error is that a database is in use (object_in_use).
func isUsed(err error) bool {
	var e pgdriver.Error
	return errors.As(err, &e) && e.Field('C') == "55006"
}
