package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
)

// commitTime is the time for a commit if its call has less time left. The outcome of a commit that
// is interrupted is unknown.
const commitTime = time.Second

var errAway = errors.New("no connection is opened while the database is away")

// connector opens connections that stop at the end of the context of a call, whatever they wait
// for. The driver checks a deadline only when it sends a statement, and not while it reads rows,
// commits or rolls back. It also continues to use a connection on which a prepared statement got no
// answer.
type connector struct {
	config  *pgdriver.Config
	breaker *database.Breaker // optional
	refused atomic.Pointer[refusal]
}

// refusal is an answer of the server that it has no connection left.
type refusal struct {
	at  time.Time
	err error
}

// refusalTime is how long no connection is requested after a refusal. Callers try more often, to
// get a connection that another one gives back, and each request costs the server a process.
const refusalTime = 100 * time.Millisecond

// Connect opens a connection, with its authentication, within DialTimeout. database/sql
// opens the connections that callers wait for one after the other, so it must fail early if the
// server is away.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if r := c.refused.Load(); r != nil && time.Since(r.at) < refusalTime {
		return nil, r.err
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.DialTimeout)
	defer cancel()
	if c.breaker != nil {
		life := c.breaker.Dialling()
		if life.Err() != nil {
			return nil, errAway
		}
		defer context.AfterFunc(life, cancel)()
	}
	made := &conn{breaker: c.breaker}
	config := *c.config
	stop := func() bool { return true }
	config.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		socket, err := c.config.Dialer(ctx, network, address)
		if err == nil {
			made.socket = socket
			stop = context.AfterFunc(ctx, func() { _ = socket.Close() }) // ends the wait for an answer
		}
		return socket, err
	}
	var err error
	made.Conn, err = openConn(ctx, &config)
	if stopped := stop(); err == nil && !stopped {
		err = ctx.Err()
	}
	if err != nil {
		if made.socket != nil {
			_ = made.socket.Close() // the driver does not close it
		}
		if classifyError(err) == database.Crowded {
			c.refused.Store(&refusal{time.Now(), err})
		}
		return nil, err
	}
	made.made = time.Now()
	made.answered = made.made
	return made, nil
}

func (c *connector) Driver() driver.Driver { return pgdriver.NewDriver() }

func openConn(ctx context.Context, config *pgdriver.Config) (*pgdriver.Conn, error) {
	made, err := pgdriver.NewConnector(pgdriver.WithConfig(config)).Connect(ctx)
	if err != nil {
		return nil, err
	}
	own, ok := made.(*pgdriver.Conn)
	if !ok {
		return nil, fmt.Errorf("the driver has a connection of type %T", made)
	}
	return own, nil
}

// probeServer runs a query on a new connection. It implements database.Probe.
func (c *connector) probeServer(ctx context.Context) error {
	made, err := (&connector{config: c.config}).Connect(ctx)
	if err == nil {
		own := made.(*conn) //nolint:errcheck,forcetypeassert // Connect returns this type
		_, err = own.ExecContext(ctx, "SELECT 1", nil)
		own.closeNow()
	}
	if err != nil && classifyError(err) == database.Lost {
		return err
	}
	return nil
}

// conn is one connection. database/sql calls its methods from one goroutine at a time.
type conn struct {
	*pgdriver.Conn

	socket   net.Conn
	breaker  *database.Breaker
	made     time.Time
	answered time.Time // when it was last returned to the pool without an error
	watched  bool      // by the context of its transaction
}

// closeNow closes the connection, even if another goroutine waits for an answer on it.
func (c *conn) closeNow() {
	_ = c.socket.Close() // first, so that TLS does not send a farewell to a server that is gone
	_ = c.Conn.Close()   // likewise
}

// watch ends the use of a connection with a context.
type watch struct {
	conn *conn
	stop func() bool // nil if nothing is watched
}

func (c *conn) watchContext(ctx context.Context) watch {
	if c.watched || ctx.Done() == nil {
		return watch{}
	}
	return watch{c, context.AfterFunc(ctx, c.closeNow)}
}

func (w watch) stopWatching() {
	if w.stop != nil && !w.stop() {
		w.conn.closeNow() // before another caller gets it
	}
}

// checkError closes the connection after an error that is not the reply of the server, because the
// reply may still arrive.
func (c *conn) checkError(err error) error {
	var reply pgdriver.Error
	if err == nil || err == io.EOF { //nolint:errorlint // the end of the rows is io.EOF itself
		return err
	}
	if !errors.As(err, &reply) || reply.Field('V') == "FATAL" || reply.Field('V') == "PANIC" {
		c.closeNow()
	}
	return err
}

func (c *conn) ResetSession(ctx context.Context) error {
	if c.breaker != nil && !c.breaker.Trusts(c.made, c.answered) {
		c.closeNow()
		return driver.ErrBadConn
	}
	return c.Conn.ResetSession(ctx)
}

// IsValid implements driver.Validator. database/sql calls it when the connection returns to the
// pool.
func (c *conn) IsValid() bool {
	if !c.Conn.IsValid() {
		return false
	}
	c.answered = time.Now()
	return true
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	w := c.watchContext(ctx)
	defer w.stopWatching()
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.checkError(err)
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	w := c.watchContext(ctx)
	found, err := c.Conn.QueryContext(ctx, query, args)
	return c.watchRows(w, found, err)
}

func (c *conn) watchRows(w watch, found driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		w.stopWatching()
		return nil, c.checkError(err)
	}
	return &rows{found, c, w}, nil
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	w := c.watchContext(ctx)
	defer w.stopWatching()
	made, err := c.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.checkError(err)
	}
	return &stmt{made.(preparedStatement), c}, nil //nolint:errcheck // the driver's statements implement it
}

func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	w := c.watchContext(ctx)
	begun, err := c.Conn.BeginTx(ctx, options)
	if err != nil {
		w.stopWatching()
		return nil, c.checkError(err)
	}
	c.watched = true
	return &tx{begun, c, w, ctx}, nil
}

type rows struct {
	driver.Rows

	conn  *conn
	watch watch
}

func (r *rows) Next(into []driver.Value) error { return r.conn.checkError(r.Rows.Next(into)) }

func (r *rows) Close() error {
	defer r.watch.stopWatching()
	return r.conn.checkError(r.Rows.Close())
}

// preparedStatement has the methods of the driver's statements.
type preparedStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// stmt is a prepared statement.
type stmt struct {
	preparedStatement

	conn *conn
}

// Close does nothing, because the server drops the statement with the connection. database/sql
// closes the statements of a connection when it closes the connection, and would wait for a server
// that is gone.
func (*stmt) Close() error { return nil }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if !s.conn.Conn.IsValid() {
		return nil, driver.ErrBadConn
	}
	w := s.conn.watchContext(ctx)
	defer w.stopWatching()
	result, err := s.preparedStatement.ExecContext(ctx, args)
	return result, s.conn.checkError(err)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if !s.conn.Conn.IsValid() {
		return nil, driver.ErrBadConn
	}
	w := s.conn.watchContext(ctx)
	found, err := s.preparedStatement.QueryContext(ctx, args)
	return s.conn.watchRows(w, found, err)
}

// tx is a transaction.
type tx struct {
	driver.Tx

	conn  *conn
	watch watch
	ctx   context.Context //nolint:containedctx // driver.Tx has methods without one
}

func (t *tx) Commit() error {
	t.conn.watched = false
	t.watch.stopWatching()
	ctx, cancel := context.WithoutCancel(t.ctx), context.CancelFunc(func() {})
	if end, ok := t.ctx.Deadline(); ok {
		least := time.Now().Add(commitTime)
		if end.Before(least) {
			end = least
		}
		ctx, cancel = context.WithDeadline(ctx, end)
	}
	defer cancel()
	_, err := t.conn.ExecContext(ctx, "COMMIT", nil)
	return err
}

func (t *tx) Rollback() error {
	t.conn.watched = false
	defer t.watch.stopWatching()
	return t.conn.checkError(t.Tx.Rollback())
}
