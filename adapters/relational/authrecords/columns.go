package authrecords

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// address is an IP address in a text column. No address is an empty text.
type address struct{ netip.Addr }

// Value implements driver.Valuer.
func (a address) Value() (driver.Value, error) {
	if !a.IsValid() {
		return "", nil
	}
	return a.String(), nil
}

// Scan implements sql.Scanner.
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

// level is the name of a trust level in a text column. No level is an empty text.
type level struct{ auth.TrustLevel }

// Value implements driver.Valuer.
func (l level) Value() (driver.Value, error) { return l.String(), nil }

// Scan implements sql.Scanner.
func (l *level) Scan(src any) error {
	text, err := textOf(src)
	if err != nil || text == "" {
		l.TrustLevel = 0
		return err
	}
	if l.TrustLevel, err = auth.ParseTrustLevel(text); err != nil {
		return errors.New("a trust level in the database has no meaning") // not the fault, which would blame the caller
	}
	return nil
}

// textOf returns the value that a driver returns for a text column.
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

// hash is the hash of a token in a column of bytes.
type hash auth.TokenHash

// Value implements driver.Valuer.
func (h hash) Value() (driver.Value, error) { return h[:], nil }

// Scan implements sql.Scanner.
func (h *hash) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b) != len(h) {
		return fmt.Errorf("a hash in the database is a %T of %d bytes", src, len(b))
	}
	copy(h[:], b)
	return nil
}

// nilToEmpty returns a byte string for a column that does not allow NULL.
func nilToEmpty[B ~[]byte](b B) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// emptyToNil returns the byte string of a column. An empty one is nil.
func emptyToNil[B ~[]byte](b []byte) B {
	if len(b) == 0 {
		return nil
	}
	return b
}
