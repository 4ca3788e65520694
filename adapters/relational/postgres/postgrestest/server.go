package postgrestest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"
)

const (
	// namePattern matches the names of our databases and no others. The hexadecimal number is the
	// key of an advisory lock: the processes that use the database hold it until they end.
	namePattern = "^tollgate_test_[0-9a-f]{16}_[a-z0-9]+$"
	nameFormat  = "tollgate_test_%016x_%s"

	// lockAndChoose locks a key and returns how a server copies databases with the least work. The
	// copy of the files has the caches of the original too, but each file of it is synchronized.
	lockAndChoose = `SELECT CASE WHEN current_setting('server_version_num')::int >= 150000 AND current_setting('fsync') = 'off'
		THEN ' STRATEGY file_copy' ELSE '' END, pg_advisory_lock($1)`

	patience       = time.Minute // the longest time for any statement
	maxConnections = 8           // of a process, besides the one that holds the locks
	maxDrops       = 4           // at the same time: the server writes one checkpoint for all of them
)

// server is what a process has on a server. Its methods are safe for concurrent use.
type server struct {
	address *url.URL
	pool    *sql.DB
	session *sql.Conn // holds the locks of this process
	key     int64     // in the names of this process's databases

	strategy string // how the server makes copies

	mu       sync.Mutex
	template string          // empty until it is needed
	made     int             // number of databases
	existing map[string]bool // by name
	failures []error         // of the work in the background

	background sync.WaitGroup
	slots      chan struct{} // one for each database that is being dropped
}

// connect connects to a server, and begins to drop what ended processes left on it.
func connect(ctx context.Context, address string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New(Variable + " is not a URL") // the error has the password
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	s := &server{
		address: u, key: int64(binary.BigEndian.Uint64(random[:]) >> 1), //nolint:gosec // has 63 bits
		existing: map[string]bool{}, slots: make(chan struct{}, maxDrops),
		pool: sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address), pgdriver.WithTimeout(patience))),
	}
	s.pool.SetMaxOpenConns(1 + maxConnections)
	s.pool.SetMaxIdleConns(1 + maxConnections)
	if s.session, err = s.pool.Conn(ctx); err == nil {
		err = s.session.QueryRowContext(ctx, lockAndChoose, s.key).Scan(&s.strategy, new(any))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the server of %s: %w", Variable, err), s.pool.Close())
	}
	s.background.Go(func() { s.keep(s.dropAbandoned(context.WithoutCancel(ctx))) })
	return s, nil
}

// url returns the URL of a database.
func (s *server) url(name string) string {
	u := *s.address
	u.Path = "/" + name
	return u.String()
}

// createEmpty creates an empty database and returns its name.
func (s *server) createEmpty(ctx context.Context) (name string, err error) { return s.create(ctx, "") }

// createMigrated creates a database with the current schema and returns its name.
func (s *server) createMigrated(ctx context.Context) (name string, err error) {
	template, err := s.migratedTemplate(ctx)
	if err != nil {
		return "", err
	}
	return s.createCopy(ctx, template)
}

// createCopy creates a copy of a database to which no one is connected, and returns its name.
func (s *server) createCopy(ctx context.Context, original string) (name string, err error) {
	return s.create(ctx, " TEMPLATE "+original+s.strategy)
}

func (s *server) create(ctx context.Context, options string) (name string, err error) {
	s.mu.Lock()
	s.made++
	name = nameOf(s.key, strconv.Itoa(s.made))
	s.existing[name] = true // also if the statement is interrupted
	s.mu.Unlock()
	return name, s.execute(ctx, "CREATE DATABASE "+name+options)
}

// drop drops a database in the background, even while it is in use.
func (s *server) drop(name string) {
	s.background.Go(func() {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		s.keep(s.execute(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"))
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.existing, name)
	})
}

// close drops the databases that still exist, and disconnects.
func (s *server) close() error {
	s.background.Wait()
	for _, name := range slices.Collect(maps.Keys(s.existing)) {
		s.drop(name)
	}
	s.background.Wait()
	return errors.Join(append(s.failures, s.session.Close(), s.pool.Close())...)
}

// keep keeps a failure of the background for close.
func (s *server) keep(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failures = append(s.failures, err)
	}
}

func (s *server) execute(ctx context.Context, statement string) error {
	if _, err := s.pool.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// nameOf returns the name of a database of the processes that hold the lock of a key.
func nameOf(key int64, suffix string) string { return fmt.Sprintf(nameFormat, key, suffix) }

// keyOf returns the key in the name of a database that namePattern matches.
func keyOf(name string) (key int64, err error) {
	var suffix string
	if _, err := fmt.Sscanf(name, nameFormat, &key, &suffix); err != nil {
		return 0, fmt.Errorf("name of the database %s: %w", name, err)
	}
	return key, nil
}
