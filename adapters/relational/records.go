package relational

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
)

// extent bounds a page; what is 0 bounds nothing.
type extent struct {
	rows  int // most records
	bytes int // of documents, with which the page ends
	room  int // for how many records room is made at first, at least 1
}

// limit adds the bound of rows to a query. The page is one row longer, which
// tells whether there are more.
func (e extent) limit(q query) query {
	if e.rows > 0 {
		// SQLite prepares a statement anew for each value of a limit that is nothing
		// but a placeholder.
		q.text += " LIMIT CAST(? AS bigint)"
		q.args = append(q.args, e.rows+1)
	}
	return q
}

// most returns the bound of bytes.
func (e extent) most() int {
	if e.bytes == 0 {
		return math.MaxInt
	}
	return e.bytes
}

// full tells whether a page with that many records and bytes takes no more.
func (e extent) full(records, size int) bool {
	return e.rows > 0 && records == e.rows || size >= e.most()
}

// records returns the page of whole records in the order of the query.
func (s *Servers) records(ctx context.Context, q query, e extent) (serverstore.Page, error) {
	q = e.limit(q)
	q.text = "SELECT v.facts, " + s.document() + " FROM versions AS v WHERE " + q.text
	rows, err := s.db.rows(ctx, q)
	if err != nil {
		return serverstore.Page{}, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	all := make([]registry.Record, 0, e.room)
	size := 0
	var facts string
	documents := arena{rows: e.room}
	into := []any{&facts, &documents}
	for rows.Next() {
		if e.full(len(all), size) {
			return serverstore.Page{Records: all, More: true}, nil
		}
		if err := rows.Scan(into...); err != nil {
			return serverstore.Page{}, s.db.fault(err)
		}
		r, err := parseFacts(facts)
		if err != nil {
			return serverstore.Page{}, err
		}
		all = append(all, registry.Record{Release: r, Document: documents.last})
		size += len(documents.last)
	}
	return serverstore.Page{Records: all}, s.db.fault(rows.Err())
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

// size returns the expression of how many bytes a document has.
func (s *Servers) size(document string) string {
	if s.db.dialect.Name == PostgreSQL {
		return "octet_length(" + document + ")"
	}
	return "length(" + document + ")"
}

// page returns a page of records. From PostgreSQL they come as one value: what
// the driver does for a row costs more than the row. And it sends all that it
// was asked for, so that it has to find itself where the page ends.
func (s *Servers) page(ctx context.Context, q query, e extent) (serverstore.Page, error) {
	if s.db.dialect.Name != PostgreSQL {
		return s.records(ctx, q, e)
	}
	p, whole, err := s.smallPage(ctx, q, e)
	if err != nil || whole {
		return p, err
	}
	return s.largePage(ctx, q, e)
}

// smallRows bounds the rows of a small page where nothing else does.
const smallRows = 128

// smallPage returns the page and true where each of its documents is so small
// that the bound cannot be reached. To add up their sizes would cost a quarter
// more.
func (s *Servers) smallPage(ctx context.Context, q query, e extent) (p serverstore.Page, whole bool, err error) {
	rows := cmp.Or(e.rows, smallRows)
	q = extent{rows: rows}.limit(q)
	q.text = "SELECT " + packing + " FILTER (WHERE " + s.size("p.document") + ` <= ?), count(*)
		FROM (SELECT v.facts, v.document FROM versions AS v WHERE ` + q.text + ") AS p"
	q.args = append([]any{min(e.most()/rows, math.MaxInt32)}, q.args...) // no document is larger
	all, found, err := s.packed(ctx, q, e)
	if err != nil || len(all) < found || e.rows == 0 && found > rows {
		return serverstore.Page{}, false, err
	}
	return pageOf(all, found, e), true, nil
}

// largePage returns the page whatever its documents are.
func (s *Servers) largePage(ctx context.Context, q query, e extent) (serverstore.Page, error) {
	q = e.limit(q)
	q.text = "SELECT " + packing + ` FILTER (WHERE p.upto - p.size < ?), count(*)
		FROM (SELECT w.facts, w.document, w.size, sum(w.size) OVER (ROWS UNBOUNDED PRECEDING) AS upto
			FROM (SELECT v.facts, v.document, ` + s.size("v.document") + ` AS size FROM versions AS v WHERE ` + q.text + `) AS w) AS p`
	q.args = append([]any{e.most()}, q.args...)
	all, found, err := s.packed(ctx, q, e)
	return pageOf(all, found, e), err
}

// pageOf returns the page of the records that a query returned, of those that
// it found.
func pageOf(all []registry.Record, found int, e extent) serverstore.Page {
	if e.rows > 0 && len(all) > e.rows {
		all = all[:e.rows]
	}
	return serverstore.Page{Records: all, More: len(all) < found}
}

// packing is the expression that makes one text of records, which unpack reads.
const packing = `string_agg(CAST(octet_length(p.facts) AS text) || ' ' || p.facts || encode(p.document, 'escape') || '` + endOfDocument + `', '')`

// packed returns the records of a query of one text and of how many rows it
// found.
func (s *Servers) packed(ctx context.Context, q query, e extent) (all []registry.Record, found int, err error) {
	rows, err := s.db.rows(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	var text sql.NullString
	for rows.Next() {
		if err := rows.Scan(&text, &found); err != nil {
			return nil, 0, s.db.fault(err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, 0, s.db.fault(err)
	}
	all, err = unpack(text.String, e)
	return all, found, err
}

// endOfDocument ends a document among others; no escape form has it inside.
const endOfDocument = `\e`

// unpack reads the records of a page out of one text: of each the bytes of its
// facts as a decimal number with a space behind, the facts, and the escape form
// of its document with an end behind.
func unpack(packed string, e extent) ([]registry.Record, error) {
	all := make([]registry.Record, 0, e.room)
	documents := arena{free: make([]byte, 0, min(len(packed), e.most()))}
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
