// Package postgres opens a PostgreSQL database for the stores of records. It has the driver, its
// settings and errors, the migrations, and the SQL that differs from SQLite. The other queries are
// in the packages of the stores.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/adapters/internal/socket"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// idleStatements limits how long a transaction may be idle: this many statement timeouts. Then the
// server ends it and releases its locks.
const idleStatements = 3

// maxIdle is how long an idle connection is kept, and connLifetime the age at which any is
// replaced.
const (
	maxIdle      = 5 * time.Minute
	connLifetime = 30 * time.Minute
)

// usualMigrationTimeout is how long a statement of a migration may take, including the wait for other
// processes that migrate, and how long a migration is tried again while others use its tables.
const usualMigrationTimeout = 15 * time.Minute

// Config has the settings of the database.
type Config struct {
	URL              string        `env:"DATABASE_URL" secret:"true" desc:"postgres://user:password@host:port/database?sslmode=disable|require|verify-ca|verify-full; default: a SQLite file"`
	MaxConns         int           `env:"DATABASE_MAX_CONNS" envDefault:"20" desc:"maximum number of connections of this process, 2 to 1000"`
	Timeout          time.Duration `env:"DATABASE_TIMEOUT" envDefault:"3s" desc:"how long a request waits each time it needs the database: for a connection, the statements and their commit together, 100ms to 1m; after that it returns 503"`
	DialTimeout      time.Duration `env:"-"` // of a connection, authentication included; 0 means half of StatementTimeout
	StatementTimeout time.Duration `env:"DATABASE_STATEMENT_TIMEOUT" envDefault:"10s" desc:"how long a statement may take, waiting for locks included, in work that DATABASE_TIMEOUT does not limit: operator commands, the removal of old records, a change of all versions of a server; 100ms to 5m. Opening a connection may take half of it, and on SQLite a change waits half of it for earlier changes and for other processes that write; after that it returns 503"`
	MigrationTimeout time.Duration `env:"-"` // of a statement of a migration; 0 means usualMigrationTimeout
	Version          string        `env:"-"` // of the service, for database.Instance; empty for another program
}

// Validate checks the ranges and the form of the URL. Its errors do not contain the password.
func (c Config) Validate() error {
	switch {
	case c.MaxConns < 2 || c.MaxConns > 1000:
		return errors.New("DATABASE_MAX_CONNS must be 2 to 1000")
	case c.Timeout < 100*time.Millisecond || c.Timeout > time.Minute:
		return errors.New("DATABASE_TIMEOUT must be 100ms to 1m")
	case c.StatementTimeout < 100*time.Millisecond || c.StatementTimeout > 5*time.Minute:
		return errors.New("DATABASE_STATEMENT_TIMEOUT must be 100ms to 5m")
	}
	if c.URL == "" { // SQLite is used
		return nil
	}
	return checkAddress(c.URL)
}

// Patient returns the settings for operator commands, which take as long as there is work: a call
// as a whole has no bound, its statements have.
func (c Config) Patient() Config {
	c.Timeout = 0
	return c
}

// statementTimeout returns the time limit of a statement in the server. If calls have a limit, the
// limit of a statement is a little shorter, so that the server answers a slow statement before the
// call looks like one to a server that hangs.
func (c Config) statementTimeout() time.Duration {
	if c.Timeout == 0 {
		return c.StatementTimeout
	}
	return min(c.StatementTimeout, c.Timeout-c.Timeout/10)
}

// Open connects to the database, and returns it and a function that closes the connections. It does
// not migrate. It returns fault.Unavailable with the host and port if the server cannot be reached
// or refuses the user.
func Open(ctx context.Context, c Config) (*database.DB, func(), error) {
	if err := checkAddress(c.URL); err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, "", err)
	}
	c.DialTimeout = cmp.Or(c.DialTimeout, c.StatementTimeout/2)
	c.MigrationTimeout = cmp.Or(c.MigrationTimeout, usualMigrationTimeout)
	config, err := driverConfig(c, c.statementTimeout(), c.StatementTimeout)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, "", err)
	}
	slow, err := driverConfig(c, c.MigrationTimeout, c.MigrationTimeout)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, "", err)
	}
	use := &connector{config: config}
	closeBreaker := func() {}
	if c.Timeout > 0 {
		use.breaker, closeBreaker = database.NewBreaker(use.probeServer, c.Timeout)
	}
	db := newPool(c, use)
	cleanup := func() {
		_ = db.Close() // every answered transaction is stored already
		closeBreaker()
	}
	if err := db.PingContext(ctx); err != nil {
		cleanup()
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, fault.Wrap(fault.Unavailable,
			"cannot reach the database at "+config.Addr+" (DATABASE_URL)", err)
	}
	return database.New(db, db, database.Dialect{
		Syntax: syntax, Migrations: migrationsOf(c, slow),
		Classify: classifyError, Breaker: use.breaker, CallTimeout: c.Timeout, WriteProbe: writeProbe,
		Listen:         listen(nameInstance(c, config)),
		Instances:      instances,
		ExclusiveBegin: "SELECT pg_advisory_xact_lock(" + strconv.FormatInt(operatorLock, 10) + ")",
		LongBegin:      "SET LOCAL statement_timeout = " + strconv.FormatInt(c.StatementTimeout.Milliseconds(), 10),
	}), cleanup, nil
}

// checkAddress checks the form of the URL. It does not return the error of url.Parse, which
// contains the URL and so the password.
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

// writeProbe returns a statement that changes nothing, and that a standby and a read-only database
// refuse.
func writeProbe() string { return "UPDATE migrations SET sum = sum WHERE false" }

// driverConfig returns the settings of the driver. Statements have the time limit statement, and
// long transactions raise it to timeout. The server ends a statement before the timeouts of the
// connection, which detect a server that is gone.
func driverConfig(c Config, statement, timeout time.Duration) (*pgdriver.Config, error) {
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
	config.ResetSessionFunc = func(_ context.Context, c *pgdriver.Conn) error { return checkIdle(c.Conn()) }
	if config.AppName == "" {
		config.AppName = appName
	}
	if config.ConnParams == nil {
		config.ConnParams = map[string]any{}
	}
	config.ConnParams["statement_timeout"] = statement.Milliseconds()
	config.ConnParams["idle_in_transaction_session_timeout"] = (idleStatements * timeout).Milliseconds()
	// The server compiles what it takes for expensive, also short statements of which it has no statistics yet.
	config.ConnParams["jit"] = "off"
	return config, nil
}

func newPool(c Config, use *connector) *bun.DB {
	db := sql.OpenDB(use)
	db.SetMaxOpenConns(c.MaxConns)
	db.SetMaxIdleConns(c.MaxConns)
	db.SetConnMaxLifetime(connLifetime)
	db.SetConnMaxIdleTime(maxIdle)
	return bun.NewDB(db, pgdialect.New())
}

// checkIdle returns driver.ErrBadConn if the server has closed an idle connection, for example
// because it was restarted. The first statement on it would fail. It does not wait and reads
// nothing from the stream. Data that the server sent without a request also means that it ended the
// connection.
func checkIdle(conn net.Conn) error {
	switch socket.Peek(conn) {
	case socket.Data, socket.Closed:
		return driver.ErrBadConn
	}
	return nil
}

// instances is database.Dialect.Instances. The server knows who is connected, so that nothing is
// stored, and an instance that ends is gone.
const instances = `SELECT substr(application_name, 10), min(backend_start) FROM pg_stat_activity
	WHERE datname = current_database() AND application_name LIKE 'tollgate %'
	GROUP BY application_name ORDER BY 2, 1 LIMIT 100`

// appName is the name of connections, unless DATABASE_URL has another one.
const appName = "tollgate"

// nameInstance returns the settings of the connection that listens, by whose name others know an
// instance. The server cuts a name after 63 bytes.
func nameInstance(c Config, config *pgdriver.Config) *pgdriver.Config {
	if c.Version == "" || config.AppName != appName {
		return config
	}
	named := *config
	host, _ := os.Hostname() // may be empty
	named.AppName = fmt.Sprintf(appName+" %s %d %s", c.Version, os.Getpid(), host)
	return &named
}

// listenGap is the time between two tries to listen.
const listenGap = time.Second

// silentDriver keeps the driver from writing lines of its own to standard error.
type silentDriver struct{}

// Printf implements the logger of the driver.
func (silentDriver) Printf(context.Context, string, ...any) {}

var silenceDriver sync.Once //nolint:gochecknoglobals // the driver has one logger

// listen implements database.Dialect.Listen on a connection of its own.
func listen(c *pgdriver.Config) func(ctx context.Context, channel string, notify func(text string)) {
	silenceDriver.Do(func() { pgdriver.Logger = silentDriver{} })
	return func(ctx context.Context, channel string, notify func(text string)) {
		for {
			listenOnce(ctx, c, channel, notify)
			if !pause.For(ctx, listenGap) {
				return
			}
		}
	}
}

// listenOnce listens until the connection breaks or ctx ends.
func listenOnce(ctx context.Context, c *pgdriver.Config, channel string, notify func(text string)) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	config := *c
	config.Dialer = func(dialling context.Context, network, address string) (net.Conn, error) {
		socket, err := c.Dialer(dialling, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = socket.Close() }) // ends the wait for a notification
		}
		return socket, err
	}
	pool := bun.NewDB(sql.OpenDB(pgdriver.NewConnector(pgdriver.WithConfig(&config))), pgdialect.New())
	defer func() { _ = pool.Close() }() // it opened no connection
	l := pgdriver.NewListener(pool)
	defer func() { _ = l.Close() }() // its connection is closed in any case
	if l.Listen(ctx, channel) != nil {
		return
	}
	for notify(""); ; { // what was sent before is lost
		_, text, err := l.Receive(ctx)
		if err != nil {
			return
		}
		notify(text)
	}
}
