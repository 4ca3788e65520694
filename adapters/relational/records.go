package relational

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// extent bounds a page; what is 0 bounds nothing.
type extent struct {
	rows  int // most records
	bytes int // of documents, with which the page ends
	room  int // for how many records room is made at first, at least 1
}

// withLimit adds the bound of rows to a query. The page is one row longer, which
// reports whether there are more.
func (e extent) withLimit(q query) query {
	if e.rows > 0 {
		// SQLite prepares a statement anew for each value of a limit that is nothing
		// but a placeholder.
		q.text += " LIMIT CAST(? AS bigint)"
		q.args = append(q.args, e.rows+1)
	}
	return q
}

// maxBytes returns the bound of bytes.
func (e extent) maxBytes() int {
	if e.bytes == 0 {
		return math.MaxInt
	}
	return e.bytes
}

// isFull reports whether a page with that many records and bytes takes no more.
func (e extent) isFull(records, size int) bool {
	return e.rows > 0 && records == e.rows || size >= e.maxBytes()
}

// wholeRecords returns the page of whole records in the order of the query.
func (s *Servers) wholeRecords(ctx context.Context, q query, e extent) (registrystore.Page, error) {
	q = e.withLimit(q)
	q.text = "SELECT v.facts, " + s.documentExpression() + " FROM versions AS v WHERE " + q.text
	return collected(ctx, s.db, q, e.collectPage)
}

// collectPage returns the page of the rows of facts and documents.
func (e extent) collectPage(rows *sql.Rows) (registrystore.Page, error) {
	all := make([]registry.Record, 0, e.room)
	size := 0
	var facts string
	documents := arena{rows: e.room}
	into := []any{&facts, &documents}
	for rows.Next() {
		if e.isFull(len(all), size) {
			return registrystore.Page{Records: all, More: true}, nil
		}
		if err := rows.Scan(into...); err != nil {
			return registrystore.Page{}, err
		}
		r, err := parseFacts(facts)
		if err != nil {
			return registrystore.Page{}, err
		}
		all = append(all, registry.Record{Release: r, Document: documents.last})
		size += len(documents.last)
	}
	return registrystore.Page{Records: all}, nil
}

// documentExpression returns the expression of a document. PostgreSQL sends bytes as
// hexadecimal digits, twice as many and each to be read; nearly all bytes of a
// document stand for themselves in its escape form.
func (s *Servers) documentExpression() string {
	if s.db.dialect.Name == PostgreSQL {
		return "encode(v.document, 'escape')"
	}
	return "v.document"
}

// sizeExpression returns the expression of how many bytes a document has.
func (s *Servers) sizeExpression(document string) string {
	if s.db.dialect.Name == PostgreSQL {
		return "octet_length(" + document + ")"
	}
	return "length(" + document + ")"
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
		a.keepLast(begin)
		return nil
	case string:
		a.reserve(len(v))
		_, ended, err := a.unescapeDocument(v)
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

func (a *arena) keepLast(begin int) { a.last = a.free[begin:len(a.free):len(a.free)] }

// unescapeDocument keeps the bytes that an escape form stands for: a backslash is two
// of them, a byte that is no ASCII or is NUL a backslash and three octal
// digits, and any other itself. It reads up to an end of document, if there is
// one, and returns what is behind that.
func (a *arena) unescapeDocument(text string) (rest string, ended bool, err error) {
	begin := len(a.free)
	for {
		plain, rest, escaped := strings.Cut(text, `\`)
		a.free = append(a.free, plain...)
		const digits = 3
		switch {
		case !escaped:
			a.keepLast(begin)
			return "", false, nil
		case strings.HasPrefix(rest, endOfDocument[1:]):
			a.keepLast(begin)
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
