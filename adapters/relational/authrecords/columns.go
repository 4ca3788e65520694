package authrecords

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

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

// classifyLookup gives the fault of a query for one row the name of what is looked for.
func classifyLookup(d *database.DB, err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return noSuch(what)
	}
	return d.ClassifyError(err)
}

func noSuch(what string) error {
	return fault.Newf(fault.NotFound, auth.CodeNotFound, "the %s does not exist", what)
}
