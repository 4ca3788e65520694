package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
)

// commitTime is what a commit gets where its call has less time left: the outcome of one that is cut
// short is not known.
const commitTime = time.Second

var errAway = errors.New("no connection is opened while the database is away")

// connector opens connections whose use ends with its context, whatever they wait for then. The driver
// alone looks at a deadline when it sends a statement, but not while it reads rows, commits or rolls
// back, and it goes on using a connection on which a prepared statement got no answer.
type connector struct {
	config  *pgdriver.Config
	breaker *database.Breaker // nil for none
}

// Connect opens a connection within DATABASE_DIAL_TIMEOUT, signing in included. database/sql opens
// those that callers wait for one after the other, so none may take long in vain.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
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
			stop = context.AfterFunc(ctx, func() { _ = socket.Close() }) // what waits for it hears of that
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
			_ = made.socket.Close() // the driver leaves it open
		}
		return nil, err
	}
	made.made = time.Now()
	made.answered = made.made
	return made, nil
}

// Driver implements driver.Connector.
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

// probeServer asks the server something over a connection of its own (database.Probe).
func (c *connector) probeServer(ctx context.Context) error {
	made, err := (&connector{config: c.config}).Connect(ctx)
	if err == nil {
		own := made.(*conn) //nolint:errcheck,forcetypeassert // it is what Connect returns
		_, err = own.ExecContext(ctx, "SELECT 1", nil)
		own.closeNow()
	}
	if err != nil && classifyError(err) == database.Lost {
		return err
	}
	return nil
}

// conn is one connection. As database/sql uses it, one goroutine calls its methods at a time.
type conn struct {
	*pgdriver.Conn

	socket   net.Conn
	breaker  *database.Breaker
	made     time.Time
	answered time.Time // when it was last given back in good order
	watched  bool      // by the context of its transaction
}

// closeNow closes the connection, also while another goroutine waits for it.
func (c *conn) closeNow() {
	_ = c.socket.Close() // first, so that TLS says no goodbye to somebody who does not listen
	_ = c.Conn.Close()   // likewise
}

// watch ends the use of a connection with a context.
type watch struct {
	conn *conn
	stop func() bool // nil for no watch
}

func (c *conn) watchContext(ctx context.Context) watch {
	if c.watched || ctx.Done() == nil {
		return watch{}
	}
	return watch{c, context.AfterFunc(ctx, c.closeNow)}
}

func (w watch) stopWatching() {
	if w.stop != nil && !w.stop() {
		w.conn.closeNow() // before anybody else is given it
	}
}

// checkError drops the connection after an error that is not the server's reply: the reply may still come.
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

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.breaker != nil && !c.breaker.Trusts(c.made, c.answered) {
		c.closeNow()
		return driver.ErrBadConn
	}
	return c.Conn.ResetSession(ctx)
}

// IsValid implements driver.Validator. It is called when the connection is given back.
func (c *conn) IsValid() bool {
	if !c.Conn.IsValid() {
		return false
	}
	c.answered = time.Now()
	return true
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	w := c.watchContext(ctx)
	defer w.stopWatching()
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.checkError(err)
}

// QueryContext implements driver.QueryerContext.
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

// PrepareContext implements driver.ConnPrepareContext.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	w := c.watchContext(ctx)
	defer w.stopWatching()
	made, err := c.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.checkError(err)
	}
	return &stmt{made.(preparedStatement), c}, nil //nolint:errcheck // the driver's statements are
}

// BeginTx implements driver.ConnBeginTx.
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

// rows are the rows of a query.
type rows struct {
	driver.Rows

	conn  *conn
	watch watch
}

// Next implements driver.Rows.
func (r *rows) Next(into []driver.Value) error { return r.conn.checkError(r.Rows.Next(into)) }

// Close implements driver.Rows.
func (r *rows) Close() error {
	defer r.watch.stopWatching()
	return r.conn.checkError(r.Rows.Close())
}

// preparedStatement is what the driver's statements implement.
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

// Close leaves the statement to the server, which forgets it with the connection: database/sql closes
// statements when it closes their connection, and would wait for one that is dead.
func (*stmt) Close() error { return nil }

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if !s.conn.Conn.IsValid() {
		return nil, driver.ErrBadConn
	}
	w := s.conn.watchContext(ctx)
	defer w.stopWatching()
	result, err := s.preparedStatement.ExecContext(ctx, args)
	return result, s.conn.checkError(err)
}

// QueryContext implements driver.StmtQueryContext.
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

// Commit implements driver.Tx.
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

// Rollback implements driver.Tx.
func (t *tx) Rollback() error {
	t.conn.watched = false
	defer t.watch.stopWatching()
	return t.conn.checkError(t.Tx.Rollback())
}
