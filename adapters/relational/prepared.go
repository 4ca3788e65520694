package relational

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"

	"github.com/uptrace/bun"
)

// query is a query of a reader with its arguments.
type query struct {
	text string
	args []any
	// fixed tells that the text is one of a few, and that one plan is good
	// whatever the arguments are: such a query is worth preparing.
	fixed bool
}

// collected returns what collect makes of the rows of a query, on the transaction that ctx carries or
// else on the read pool. collect may be called again, with the rows of another try. Errors of the
// database are classified.
func collected[T any](ctx context.Context, d *DB, q query, collect func(*sql.Rows) (T, error)) (T, error) {
	return reading(ctx, d, func(ctx context.Context, _ bun.IDB) (found T, err error) {
		rows, err := d.queryRows(ctx, q)
		if err != nil {
			return found, d.classifyError(err)
		}
		defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
		if found, err = collect(rows); err != nil {
			return found, d.classifyError(err)
		}
		return found, d.classifyError(rows.Err())
	})
}

// queryRows runs a query on the transaction that ctx carries, else on the read
// pool.
func (d *DB) queryRows(ctx context.Context, q query) (*sql.Rows, error) {
	switch t := d.carriedTransaction(ctx); {
	case t != nil:
		return t.tx.QueryContext(ctx, q.text, q.args...)
	case q.fixed:
		return d.queryObserved(ctx, q)
	default:
		return d.reader.QueryContext(ctx, q.text, q.args...)
	}
}

// queryNumber returns the one number that a query of one row finds. Its errors are
// classified.
func (d *DB) queryNumber(ctx context.Context, q query) (int, error) {
	return collected(ctx, d, q, func(rows *sql.Rows) (n int, err error) {
		for rows.Next() {
			if err := rows.Scan(&n); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// queryObserved runs a prepared query, which Bun does not see, and tells the hook.
func (d *DB) queryObserved(ctx context.Context, q query) (*sql.Rows, error) {
	if d.hook == nil {
		return d.statements.runPrepared(ctx, d, q)
	}
	event := &bun.QueryEvent{DB: d.reader, Query: q.text, QueryTemplate: q.text, QueryArgs: q.args}
	ctx = d.hook.BeforeQuery(ctx, event)
	rows, err := d.statements.runPrepared(ctx, d, q)
	event.Err = err
	d.hook.AfterQuery(ctx, event)
	return rows, err
}

// statements are the prepared statements of the read pool, by their text. They
// are closed with the pool.
type statements struct {
	mu     sync.RWMutex
	byText map[string]*sql.Stmt
}

func (s *statements) runPrepared(ctx context.Context, d *DB, q query) (*sql.Rows, error) {
	statement, err := s.prepareOnce(ctx, d, q.text) //nolint:sqlclosecheck // it is kept for the next query
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, q.args...)
}

func (s *statements) prepareOnce(ctx context.Context, d *DB, text string) (*sql.Stmt, error) {
	s.mu.RLock()
	known := s.byText[text]
	s.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	made, err := d.reader.DB.PrepareContext(ctx, d.dialect.placeholders(text))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byText[text]; known != nil {
		_ = made.Close() //nolint:sqlclosecheck // another caller was first; nothing has used this one
		return known, nil
	}
	if s.byText == nil {
		s.byText = map[string]*sql.Stmt{}
	}
	s.byText[text] = made
	return made, nil
}

// placeholders writes the question marks of a query as the database does. No
// text of this package has one that is anything else.
func (d Dialect) placeholders(text string) string {
	if d.Name != PostgreSQL {
		return text
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		text = after
	}
}
