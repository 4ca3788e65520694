package relational

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// records returns whole records, in the order of the query, of which there are
// about n.
func (s *Servers) records(ctx context.Context, q query, n int) ([]registry.Record, error) {
	q.text = "SELECT v.facts, " + s.document() + " FROM versions AS v WHERE " + q.text
	rows, err := s.db.rows(ctx, q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	all := make([]registry.Record, 0, n)
	var facts string
	documents := arena{rows: n}
	into := []any{&facts, &documents}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, s.db.fault(err)
		}
		r, err := parseFacts(facts)
		if err != nil {
			return nil, err
		}
		all = append(all, registry.Record{Release: r, Document: documents.last})
	}
	return all, s.db.fault(rows.Err())
}

// document returns the expression of a document. PostgreSQL sends bytes as
// hexadecimal digits, twice as many and each to be read; nearly all bytes of a
// document stand for themselves in its escape form.
func (s *Servers) document() string {
	if s.db.dialect.Name == PostgreSQL {
		return "encode(v.document, 'escape')"
	}
	return "v.document"
}

// page returns the records of a page, of which there are about n. From
// PostgreSQL they come as one value: what the driver does for a row costs more
// than the row.
func (s *Servers) page(ctx context.Context, q query, n int) ([]registry.Record, error) {
	if s.db.dialect.Name != PostgreSQL {
		return s.records(ctx, q, n)
	}
	q.text = `SELECT string_agg(CAST(octet_length(p.facts) AS text) || ' ' || p.facts || encode(p.document, 'escape') || '` + endOfDocument + `', '')
		FROM (SELECT v.facts, v.document FROM versions AS v WHERE ` + q.text + ") AS p"
	rows, err := s.db.rows(ctx, q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	var packed sql.NullString
	for rows.Next() {
		if err := rows.Scan(&packed); err != nil {
			return nil, s.db.fault(err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, s.db.fault(err)
	}
	return unpack(packed.String, n)
}

// endOfDocument ends a document among others; no escape form has it inside.
const endOfDocument = `\e`

// unpack reads records, about n, out of one text: of each the bytes of its
// facts as a decimal number with a space behind, the facts, and the escape form
// of its document with an end behind.
func unpack(packed string, n int) ([]registry.Record, error) {
	all := make([]registry.Record, 0, n)
	documents := arena{free: make([]byte, 0, len(packed))}
	for f := (factReader{rest: packed}); f.rest != ""; {
		facts := f.take(f.number())
		rest, ended, err := documents.unescape(f.rest)
		if f.failed || !ended || err != nil {
			return nil, spoiltRow(errors.Join(errFacts, err))
		}
		f.rest = rest
		r, err := parseFacts(facts)
		if err != nil {
			return nil, err
		}
		all = append(all, registry.Record{Release: r, Document: documents.last})
	}
	return all, nil
}

// arena keeps copies of documents side by side in a few blocks, which costs
// less than one allocation for each.
type arena struct {
	rows int    // how many documents are expected
	free []byte // the block that is being filled, up to its length
	last []byte // what was kept last
}

// Scan keeps what a driver returns for a column, which is the driver's only
// until the next row: SQLite's bytes, or PostgreSQL's escape form of them.
func (a *arena) Scan(src any) error {
	switch v := src.(type) {
	case []byte:
		a.reserve(len(v))
		begin := len(a.free)
		a.free = append(a.free, v...)
		a.keep(begin)
		return nil
	case string:
		a.reserve(len(v))
		_, ended, err := a.unescape(v)
		if ended {
			return errEscape
		}
		return err
	default:
		return fmt.Errorf("a document in the database has type %T", src)
	}
}

// maxBlock bounds what is allocated for documents that may not come.
const maxBlock = 64 << 10

// reserve makes room for a document of n bytes, and for others like it.
func (a *arena) reserve(n int) {
	if n > cap(a.free)-len(a.free) {
		a.free = make([]byte, 0, max(n, min(n*a.rows, maxBlock)))
	}
}

func (a *arena) keep(begin int) { a.last = a.free[begin:len(a.free):len(a.free)] }

// unescape keeps the bytes that an escape form stands for: a backslash is two
// of them, a byte that is no ASCII or is NUL a backslash and three octal
// digits, and any other itself. It reads up to an end of document, if there is
// one, and returns what is behind that.
func (a *arena) unescape(text string) (rest string, ended bool, err error) {
	begin := len(a.free)
	for {
		plain, rest, escaped := strings.Cut(text, `\`)
		a.free = append(a.free, plain...)
		const digits = 3
		switch {
		case !escaped:
			a.keep(begin)
			return "", false, nil
		case strings.HasPrefix(rest, endOfDocument[1:]):
			a.keep(begin)
			return rest[1:], true, nil
		case strings.HasPrefix(rest, `\`):
			a.free = append(a.free, '\\')
			text = rest[1:]
		case len(rest) >= digits:
			value, err := strconv.ParseUint(rest[:digits], 8, 8)
			if err != nil {
				return "", false, errEscape
			}
			a.free = append(a.free, byte(value))
			text = rest[digits:]
		default:
			return "", false, errEscape
		}
	}
}

var errEscape = errors.New("a document of the database is not in its escape form")
