// Package postgres opens the PostgreSQL database that keeps the records in
// production. It knows the driver, its settings and its errors, and no
// records: rows and queries are those of package relational.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// idleStatements is for how many statements' time a transaction may be left
// alone by its process before the server takes its locks away.
const idleStatements = 3

// lockWait is how long a migration may keep others waiting for a table that it
// waits for itself; they must not reach their statement timeout over it.
const lockWait = time.Second

// maxIdle is how long a connection that nobody uses is kept.
const maxIdle = 5 * time.Minute

// Config says which database and how it is used.
type Config struct {
	URL              string        `env:"DATABASE_URL" secret:"true" desc:"postgres://user:password@host:port/database?sslmode=disable|require|verify-ca|verify-full; empty = a SQLite file"`
	MaxConns         int           `env:"DATABASE_MAX_CONNS" envDefault:"20" desc:"most connections of this process, 2 to 1000"`
	MaxIdleConns     int           `env:"DATABASE_MAX_IDLE_CONNS" envDefault:"20" desc:"connections kept open while idle for less than five minutes, 0 to DATABASE_MAX_CONNS; fewer than are in use at once makes new ones all the time, each with its sign-in"`
	ConnLifetime     time.Duration `env:"DATABASE_CONN_LIFETIME" envDefault:"30m" desc:"age at which a connection is replaced, 1m and more"`
	DialTimeout      time.Duration `env:"DATABASE_DIAL_TIMEOUT" envDefault:"5s" desc:"how long a new connection may take, 100ms to 1m"`
	StatementTimeout time.Duration `env:"DATABASE_STATEMENT_TIMEOUT" envDefault:"10s" desc:"how long a statement may take, waiting for locks included, 100ms to 5m"`
	MigrationTimeout time.Duration `env:"DATABASE_MIGRATION_TIMEOUT" envDefault:"15m" desc:"how long a statement of a migration may take, waiting for other processes that migrate included, and for how long a migration is tried that others keep from its tables, 1s and more"`
}

// Validate checks the ranges and the form of the URL. No error of it tells the
// password.
func (c Config) Validate() error {
	switch {
	case c.MaxConns < 2 || c.MaxConns > 1000:
		return errors.New("DATABASE_MAX_CONNS must be 2 to 1000")
	case c.MaxIdleConns < 0 || c.MaxIdleConns > c.MaxConns:
		return errors.New("DATABASE_MAX_IDLE_CONNS must be 0 to DATABASE_MAX_CONNS")
	case c.ConnLifetime < time.Minute:
		return errors.New("DATABASE_CONN_LIFETIME must be 1m or more")
	case c.DialTimeout < 100*time.Millisecond || c.DialTimeout > time.Minute:
		return errors.New("DATABASE_DIAL_TIMEOUT must be 100ms to 1m")
	case c.StatementTimeout < 100*time.Millisecond || c.StatementTimeout > 5*time.Minute:
		return errors.New("DATABASE_STATEMENT_TIMEOUT must be 100ms to 5m")
	case c.MigrationTimeout < time.Second:
		return errors.New("DATABASE_MIGRATION_TIMEOUT must be 1s or more")
	}
	return checkAddress(c.URL)
}

// Open connects to the database and returns it with what closes the
// connections. It does not migrate. A server that cannot be reached, or that
// refuses the user, is fault.Unavailable and named by host and port.
func Open(ctx context.Context, c Config) (*relational.DB, func(), error) {
	if err := checkAddress(c.URL); err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, "", "", err)
	}
	config, err := driverConfig(c, c.StatementTimeout)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, "", "", err)
	}
	slow, err := driverConfig(c, c.MigrationTimeout)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, "", "", err)
	}
	db := pool(c, config)
	cleanup := func() { _ = db.Close() } // every answered transaction is stored already
	if err := db.PingContext(ctx); err != nil {
		cleanup()
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, fault.Wrap(fault.Unavailable, "", "cannot reach the database at "+config.Addr+" (DATABASE_URL)", err)
	}
	return relational.New(db, db, relational.Dialect{
		Name:     relational.PostgreSQL,
		Classify: classify,
		Maintenance: func() (*bun.DB, func()) {
			own := pool(c, slow)
			return own, func() { _ = own.Close() } // likewise
		},
		LockWait:      min(lockWait, c.StatementTimeout/2),
		MigrationTime: c.MigrationTimeout,
	}), cleanup, nil
}

// checkAddress checks the form of the URL. What url.Parse says of a bad one holds
// the URL itself, and so the password.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("DATABASE_URL is not a URL; in a password the characters @ : / ? # % must be percent-encoded")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return errors.New("DATABASE_URL must begin with postgres://")
	case u.Host == "" && u.Query().Get("host") == "":
		return errors.New("DATABASE_URL must name a host")
	case strings.Trim(u.Path, "/") == "":
		return errors.New("DATABASE_URL must name a database, as in postgres://host:5432/tollgate")
	}
	return nil
}

// driverConfig returns the driver's settings for statements of at most the
// timeout. The server ends a statement first; the connection's own timeouts
// are for a server that is gone.
func driverConfig(c Config, timeout time.Duration) (*pgdriver.Config, error) {
	connector, err := pgdriver.NewDriver().OpenConnector(c.URL)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	own, ok := connector.(*pgdriver.Connector)
	if !ok {
		return nil, fmt.Errorf("the driver has a connector of type %T", connector)
	}
	config := own.Config()
	config.DialTimeout = c.DialTimeout
	config.ReadTimeout = timeout + 2*time.Second
	config.WriteTimeout = timeout
	config.BufferSize = 32 << 10
	config.EnableTracing = false
	config.ResetSessionFunc = func(_ context.Context, c *pgdriver.Conn) error { return alive(c.Conn()) }
	if config.AppName == "" {
		config.AppName = "tollgate"
	}
	if config.ConnParams == nil {
		config.ConnParams = map[string]any{}
	}
	config.ConnParams["statement_timeout"] = timeout.Milliseconds()
	config.ConnParams["idle_in_transaction_session_timeout"] = (idleStatements * timeout).Milliseconds()
	return config, nil
}

func pool(c Config, config *pgdriver.Config) *bun.DB {
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithConfig(config)))
	db.SetMaxOpenConns(c.MaxConns)
	db.SetMaxIdleConns(c.MaxIdleConns)
	db.SetConnMaxLifetime(c.ConnLifetime)
	db.SetConnMaxIdleTime(maxIdle)
	return bun.NewDB(db, pgdialect.New())
}
