package database

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"
)

// Instant is a time in a column: timestamptz in PostgreSQL, microseconds since the epoch in SQLite,
// and NULL for the zero time. Like all times of the core, it is read in UTC and has microseconds.
type Instant struct{ time.Time }

var (
	_ schema.QueryAppender = Instant{}
	_ sql.Scanner          = (*Instant)(nil)
)

// NewInstant returns a time for a row or an argument of a query.
func NewInstant(t time.Time) Instant { return Instant{t} }

// IsZero reports whether the time is NULL in a nullzero column of Bun.
func (i Instant) IsZero() bool { return i.Time.IsZero() }

// AppendQuery implements schema.QueryAppender. It appends a literal of the dialect.
func (i Instant) AppendQuery(gen schema.QueryGen, b []byte) ([]byte, error) {
	switch {
	case i.IsZero():
		return dialect.AppendNull(b), nil
	case gen.Dialect().Name() == dialect.PG:
		b = append(b, '\'')
		b = i.UTC().AppendFormat(b, "2006-01-02 15:04:05.000000-07:00")
		return append(b, '\''), nil
	default:
		return strconv.AppendInt(b, i.UnixMicro(), 10), nil
	}
}

// Scan implements sql.Scanner.
func (i *Instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		i.Time = time.Time{}
	case time.Time:
		i.Time = v.UTC()
	case int64:
		i.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time in the database has type %T", src)
	}
	return nil
}

// TimeInto scans the time of a column into a time of the core.
func TimeInto(t *time.Time) sql.Scanner { return timeColumn{t} }

type timeColumn struct{ into *time.Time }

func (c timeColumn) Scan(src any) error {
	var at Instant
	err := at.Scan(src)
	*c.into = at.Time
	return err
}

// Instants are times in one column, in order: a JSON array of microseconds since the epoch.
type Instants []time.Time

var (
	_ schema.QueryAppender = Instants{}
	_ sql.Scanner          = (*Instants)(nil)
)

// AppendQuery implements schema.QueryAppender. The literal is valid in both dialects.
func (is Instants) AppendQuery(_ schema.QueryGen, b []byte) ([]byte, error) {
	b = append(b, "'["...)
	for i, t := range is {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, t.UnixMicro(), 10)
	}
	return append(b, "]'"...), nil
}

// Scan implements sql.Scanner. An empty array is nil.
func (is *Instants) Scan(src any) error {
	var text []byte
	switch v := src.(type) {
	case []byte:
		text = v
	case string:
		text = []byte(v)
	default:
		return fmt.Errorf("times in the database have type %T", src)
	}
	var micros []int64
	if err := json.Unmarshal(text, &micros); err != nil {
		return fmt.Errorf("read times in the database: %w", err)
	}
	*is = nil
	for _, us := range micros {
		*is = append(*is, time.UnixMicro(us).UTC())
	}
	return nil
}
