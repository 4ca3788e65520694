package relational

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/netip"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// This file holds what the stores of authentication share.

// batch is how many rows one transaction of a clean-up deletes at most, so
// that a long backlog neither runs into the statement's time limit nor keeps
// other writers waiting.
const batch = 5000

// address is an IP address as a column holds it: its text, empty for none.
type address struct{ netip.Addr }

// Value writes the address.
func (a address) Value() (driver.Value, error) {
	if !a.IsValid() {
		return "", nil
	}
	return a.String(), nil
}

// Scan reads the address.
func (a *address) Scan(src any) error {
	text, err := textOf(src)
	if err != nil || text == "" {
		a.Addr = netip.Addr{}
		return err
	}
	if a.Addr, err = netip.ParseAddr(text); err != nil {
		return fmt.Errorf("an address in the database: %w", err)
	}
	return nil
}

// level is a trust level as a column holds it: its name, empty for none.
type level struct{ auth.TrustLevel }

// Value writes the level.
func (l level) Value() (driver.Value, error) { return l.String(), nil }

// Scan reads the level.
func (l *level) Scan(src any) error {
	text, err := textOf(src)
	if err != nil || text == "" {
		l.TrustLevel = 0
		return err
	}
	if l.TrustLevel, err = auth.ParseTrustLevel(text); err != nil {
		return errors.New("a trust level in the database has no meaning") // a fault would look like the caller's
	}
	return nil
}

// textOf is what a driver returns for a text column.
func textOf(src any) (string, error) {
	switch v := src.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	default:
		return "", fmt.Errorf("a text in the database has type %T", src)
	}
}

// hash is a token's hash as a column holds it.
type hash auth.TokenHash

// Value writes the hash.
func (h hash) Value() (driver.Value, error) { return h[:], nil }

// Scan reads the hash.
func (h *hash) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b) != len(h) {
		return fmt.Errorf("a hash in the database is a %T of %d bytes", src, len(b))
	}
	copy(h[:], b)
	return nil
}

// filled is a byte string for a column that has no NULL.
func filled[B ~[]byte](b B) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// emptied is a byte string of a column; an empty one is nil.
func emptied[B ~[]byte](b []byte) B {
	if len(b) == 0 {
		return nil
	}
	return b
}

// forChange makes a query lock the rows that it selects against other changes
// until the transaction ends. Unlike FOR UPDATE it lets others add rows that
// refer to them: a transaction that has added a session and goes on to change
// the account would otherwise wait for the next one that does the same, and
// that one for it.
func (d *DB) forChange(q *bun.SelectQuery) *bun.SelectQuery {
	if d.dialect.Name == PostgreSQL {
		return q.For("NO KEY UPDATE")
	}
	return q
}

// classifyLookup gives the fault of a query for one row the name of what is looked for.
func (d *DB) classifyLookup(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return noSuch(what)
	}
	return d.classifyError(err)
}

func noSuch(what string) error {
	return fault.Newf(fault.NotFound, auth.CodeNotFound, "the %s does not exist", what)
}

// affectedRows returns how many rows a statement changed.
func (d *DB) affectedRows(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, d.classifyError(err)
	}
	n, err := res.RowsAffected()
	return int(n), d.classifyError(err)
}

// inBatches calls remove, each time in a transaction of its own unless ctx
// carries one, until it removes less than a batch; it returns how many were
// removed, also beside an error.
func (d *DB) inBatches(ctx context.Context, remove func(ctx context.Context, tx bun.IDB) (int, error)) (total int, err error) {
	for {
		var n int
		err := d.inTransaction(ctx, func(ctx context.Context, tx bun.IDB) (err error) {
			n, err = remove(ctx, tx)
			return err
		})
		if err != nil {
			return total, err
		}
		total += n
		if n < batch {
			return total, nil
		}
	}
}
