// Package sqlite opens an SQLite file for the stores of records. It has the driver, its settings
// and errors, the migrations, the backup, and the SQL that differs from PostgreSQL. The other
// queries are in the packages of the stores.
package sqlite

import (
	"context"
	"database/sql"
	dbdriver "database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// busyStep is how long one try of a write waits for another process. More tries follow, up to
// BusyTimeout. The tries are short because SQLite does not stop to wait when a context
// ends.
const busyStep = 100 * time.Millisecond

// File is the name of the database in its folder.
const File = "tollgate.db"

// readConns is the number of connections for reads, in addition to the one that writes.
const readConns = 8

// Config has the settings of the file.
type Config struct {
	Dir         string        `env:"DATA_DIR" envDefault:"./data" desc:"folder of the SQLite file; created if it does not exist"`
	BusyTimeout time.Duration `env:"-"` // how long a change waits for earlier changes and other processes
}

// Validate checks the ranges.
func (c Config) Validate() error {
	if c.Dir == "" {
		return errors.New("DATA_DIR must not be empty")
	}
	return nil
}

// patience is the factor by which operator commands and migrations wait longer than
// BusyTimeout for their turn.
const patience = 6

// AccessWarning returns a sentence for a warning if other users may use the file, otherwise an
// empty text. Open refuses a file that every user may write to.
func (c Config) AccessWarning() string {
	warning, _ := files.CheckSecret(filepath.Join(c.Dir, File)) // Open returns the error
	return warning
}

// Patient returns the settings for operator commands, which must not fail half-way because they did
// not wait.
func (c Config) Patient() Config {
	c.BusyTimeout *= patience
	return c
}

// Open opens the file, or creates it, and returns the database and a function that closes it. It
// does not migrate. It returns fault.Unavailable with the name of the folder or file if that cannot
// be created, read or written.
func Open(ctx context.Context, c Config) (*database.DB, func(), error) {
	path, err := prepareFile(c.Dir)
	if err != nil {
		return nil, nil, err
	}
	step := c
	step.BusyTimeout = min(busyStep, c.BusyTimeout)
	write, err := newPool(path, step, "immediate", 1, ofTables...)
	if err != nil {
		return nil, nil, brokenFile(path, err)
	}
	read, err := newPool(path, c, "deferred", readConns, append(slices.Clip(ofTables), "query_only(1)")...)
	if err != nil {
		_ = write.Close() // nothing was written
		return nil, nil, brokenFile(path, err)
	}
	watch, err := newPool(path, c, "deferred", 1, "query_only(1)")
	if err != nil {
		_, _ = read.Close(), write.Close() // nothing was written
		return nil, nil, brokenFile(path, err)
	}
	var watching *sql.Conn
	cleanup := func() {
		if watching != nil {
			_ = watching.Close()
		}
		_ = watch.Close()
		_ = read.Close()  // every answered transaction is on disk already
		_ = write.Close() // likewise
	}
	// The first connection turns the write-ahead log on, which readers cannot.
	for _, db := range []*bun.DB{write, read, watch} {
		if err := db.PingContext(ctx); err != nil {
			cleanup()
			return nil, nil, brokenFile(path, err)
		}
	}
	if watching, err = watch.DB.Conn(ctx); err != nil {
		cleanup()
		return nil, nil, brokenFile(path, err)
	}
	return database.New(read, write, database.Dialect{
		Syntax: syntax, Migrations: migrationsOf(c),
		Classify: classifyError, WriteWait: c.BusyTimeout, WriteProbe: writeProbe,
		HasRoom:     func() bool { return hasRoom(filepath.Dir(path)) },
		DataVersion: readDataVersion(watching),
	}), cleanup, nil
}

// readDataVersion implements database.Dialect.DataVersion on a connection of its own, because the
// number has a meaning only on the connection that reads it. That connection does not write, and it
// makes one read after the other: reads that overlap would all see what the first one saw.
func readDataVersion(conn *sql.Conn) func(ctx context.Context) (int64, error) {
	var turn sync.Mutex
	return func(ctx context.Context) (version int64, err error) {
		turn.Lock()
		defer turn.Unlock()
		err = conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
		return version, err
	}
}

// prepareFile creates the folder and an empty file that no other user can read. SQLite would create
// the file with the default mode of the process, and it creates its log with the mode of the file.
func prepareFile(dir string) (path string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", unusableFile(dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", unusableFile(dir, err)
	}
	path = filepath.Join(dir, File)
	if _, err := files.CheckSecret(path); err != nil {
		return "", fault.Wrap(fault.Invalid, "the database of DATA_DIR: "+err.Error(), err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", unusableFile(path, err)
	}
	if err := f.Close(); err != nil {
		return "", unusableFile(path, err)
	}
	return path, nil
}

func unusableFile(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fault.Wrap(fault.Unavailable, "cannot write "+path+" (DATA_DIR)", err)
}

// brokenFile returns the fault for a file that cannot be opened. It returns the error of a context
// unchanged.
func brokenFile(path string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.Unavailable, "cannot open the database "+path+" (DATA_DIR)", err)
}

// ofTables are pragmas for connections that use tables: some make SQLite read the whole schema. With
// synchronous(FULL), a transaction is on disk before its commit returns.
var ofTables = []string{
	"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "cache_size(-16384)", "temp_store(MEMORY)", "trusted_schema(0)",
}

// newPool returns a pool of connections to the file. lock is the kind of BEGIN of their transactions.
func newPool(path string, c Config, lock string, conns int, pragmas ...string) (*bun.DB, error) {
	wait := "busy_timeout(" + strconv.FormatInt(c.BusyTimeout.Milliseconds(), 10) + ")"
	q := url.Values{"_txlock": {lock}, "_pragma": append([]string{wait}, pragmas...)}
	address := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}
	connector, err := driver.NewConnector(address.String())
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return bun.NewDB(db, sqlitedialect.New()), nil
}

// writeProbe returns a statement that writes a number into the header of the file. SQLite reserves
// this number for applications, and this one does not read it.
func writeProbe() string {
	return "PRAGMA user_version = " + strconv.FormatInt(time.Now().Unix()%math.MaxInt32, 10)
}

// neededRoom is the size, in bytes, of a file for which the disk has room if hasRoom returns true: that
// of the largest document.
const neededRoom = 1 << 20

// hasRoom reports whether a file can be written in a folder. A folder in which no file can be made is
// not full.
func hasRoom(dir string) bool {
	f, err := os.CreateTemp(dir, File+"-room-*")
	if err != nil {
		return true
	}
	_, err = f.Write(make([]byte, neededRoom))
	err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	return err == nil
}

//go:embed migrations
var migrations embed.FS

// syntax is the SQL that all stores use. SQLite has one writer at a time, so it needs no locks of
// rows, and migrations no lock of their own.
var syntax = database.Syntax{
	TimeType:     "integer",
	CurrentTime:  "CAST(unixepoch('subsec') * 1000000 AS integer)",
	TimeArgument: func(t time.Time) any { return t.UnixMicro() },
	Placeholders: func(query string) string { return query },
}

func migrationsOf(c Config) database.Migrations {
	return database.Migrations{
		Files:     migrations,
		Table:     "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'migrations'",
		RetryTime: patience * c.BusyTimeout,
	}
}

// gateMessage is in the messages of the triggers that refuse what the database already has an entry
// against (migration 0030).
const gateMessage = "tollgate: "

// classifyError returns the class of an error, by the result codes of
// https://sqlite.org/rescode.html.
func classifyError(err error) database.Class {
	var e *driver.Error
	if !errors.As(err, &e) {
		if errors.Is(err, sql.ErrConnDone) || errors.Is(err, dbdriver.ErrBadConn) {
			return database.Away
		}
		return database.Unknown
	}
	switch e.Code() {
	case codes.SQLITE_CONSTRAINT_UNIQUE, codes.SQLITE_CONSTRAINT_PRIMARYKEY:
		return database.Taken
	case codes.SQLITE_CONSTRAINT_TRIGGER:
		if strings.Contains(e.Error(), gateMessage) {
			return database.Taken
		}
	}
	switch e.Code() {
	case codes.SQLITE_IOERR_WRITE, codes.SQLITE_IOERR_FSYNC, codes.SQLITE_IOERR_TRUNCATE, codes.SQLITE_IOERR_SHMSIZE:
		return database.Unwritable // for example, because a quota is exceeded
	}
	switch e.Code() & 0xff { // the primary code
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return database.Retrying
	case codes.SQLITE_FULL, codes.SQLITE_READONLY:
		return database.Unwritable
	case codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN, codes.SQLITE_NOMEM, codes.SQLITE_PERM:
		return database.Away
	default:
		return database.Unknown
	}
}
