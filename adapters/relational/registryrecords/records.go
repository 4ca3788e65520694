package registryrecords

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// extent limits a page. 0 means no limit.
type extent struct {
	rows  int // most records
	bytes int // the page ends with the record whose document reaches this number of bytes in total
	room  int // for how many records memory is allocated first, at least 1
}

// withLimit adds the limit of rows to a query. The query selects one row more than the page has,
// which shows whether there are more.
func (e extent) withLimit(q database.Query) database.Query {
	if e.rows > 0 {
		// If a limit is only a placeholder, SQLite prepares the statement again for each value.
		q.Text += " LIMIT CAST(? AS bigint)"
		q.Args = append(q.Args, e.rows+1)
	}
	return q
}

// maxBytes returns the limit of bytes.
func (e extent) maxBytes() int {
	if e.bytes == 0 {
		return math.MaxInt
	}
	return e.bytes
}

// isFull reports whether a page with this number of records and bytes has no room for another
// record.
func (e extent) isFull(records, size int) bool {
	return e.rows > 0 && records == e.rows || size >= e.maxBytes()
}

// readRows returns the page of a query, whose text begins after WHERE. It reads row by row.
func (s *Servers) readRows(ctx context.Context, q database.Query, e extent) (registrystore.Page, error) {
	q = e.withLimit(q)
	q.Text = "SELECT v.facts, " + s.sql.Document + " FROM versions AS v WHERE " + q.Text
	return database.Collect(ctx, s.db, q, func(rows *sql.Rows) (registrystore.Page, error) {
		return e.collectPage(rows, s.sql.Lists)
	})
}

// collectPage returns the page of rows of facts and documents.
func (e extent) collectPage(rows *sql.Rows, encoding database.ListEncoding) (registrystore.Page, error) {
	all := make([]registry.Record, 0, e.room)
	size := 0
	var facts string
	documents := arena{rows: e.room, encoding: encoding}
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

// arena keeps copies of documents in a few blocks, which costs less than one allocation for each
// document.
type arena struct {
	rows     int // how many documents are expected
	encoding database.ListEncoding
	block    []byte // the block that is being filled, up to its length
	last     []byte // the document that was read last
}

// maxBlock limits the memory that is allocated for documents that may not follow.
const maxBlock = 64 << 10

// Scan copies the value that a driver returns for a document. The value is valid only until the
// next row.
func (a *arena) Scan(src any) (err error) {
	switch v := src.(type) {
	case []byte:
		a.reserve(len(v))
	case string:
		a.reserve(len(v))
	default:
		return fmt.Errorf("a document in the database has type %T", src)
	}
	begin := len(a.block)
	a.block, err = a.encoding.AppendDocument(a.block, src)
	a.last = a.block[begin:len(a.block):len(a.block)]
	return err
}

// reserve makes room for a document of n bytes, and for others of this size.
func (a *arena) reserve(n int) {
	if n > cap(a.block)-len(a.block) {
		a.block = make([]byte, 0, max(n, min(n*a.rows, maxBlock)))
	}
}
