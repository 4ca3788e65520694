package relational

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// packing is the expression that makes one text of records, which unpack reads.
const packing = `string_agg(CAST(octet_length(p.facts) AS text) || ' ' || p.facts || encode(p.document, 'escape') || '` + endOfDocument + `', '')`

// queryPacked returns the records of a query on PostgreSQL, which come as one text,
// but those whose documents have more bytes than most, and how many the query
// found.
func (s *Servers) queryPacked(ctx context.Context, q query, most int) (all []registry.Record, found int, err error) {
	q.text = "SELECT " + packing + " FILTER (WHERE " + s.sizeExpression("p.document") + ` <= ?), count(*)
		FROM (SELECT v.facts, v.document FROM versions AS v WHERE ` + q.text + ") AS p"
	q.args = append([]any{most}, q.args...)
	return s.queryUnpacked(ctx, q)
}

// packedPage returns the page whatever its documents are. PostgreSQL sends all
// that it was asked for, so that it has to find itself where the page ends.
func (s *Servers) packedPage(ctx context.Context, q query, e extent) (registrystore.Page, error) {
	q = e.withLimit(q)
	q.text = "SELECT " + packing + ` FILTER (WHERE p.upto - p.size < ?), count(*)
		FROM (SELECT w.facts, w.document, w.size, sum(w.size) OVER (ROWS UNBOUNDED PRECEDING) AS upto
			FROM (SELECT v.facts, v.document, ` + s.sizeExpression("v.document") + ` AS size FROM versions AS v WHERE ` + q.text + `) AS w) AS p`
	q.args = append([]any{e.maxBytes()}, q.args...)
	all, found, err := s.queryUnpacked(ctx, q)
	return pageOf(all, found, e), err
}

// queryUnpacked returns the records of a query of one text and of how many rows it
// found.
func (s *Servers) queryUnpacked(ctx context.Context, q query) (all []registry.Record, found int, err error) {
	text, err := collected(ctx, s.db, q, func(rows *sql.Rows) (text sql.NullString, err error) {
		for rows.Next() {
			if err := rows.Scan(&text, &found); err != nil {
				return text, err
			}
		}
		return text, nil
	})
	if err != nil {
		return nil, 0, err
	}
	all, err = unpackRecords(text.String, found)
	return all, found, err
}

// endOfDocument ends a document among others; no escape form has it inside.
const endOfDocument = `\e`

// unpackRecords reads n records, or fewer, out of one text: of each the bytes of its
// facts as a decimal number with a space behind, the facts, and the escape form
// of its document with an end behind.
func unpackRecords(packed string, n int) ([]registry.Record, error) {
	all := make([]registry.Record, 0, n)
	documents := arena{free: make([]byte, 0, len(packed))}
	for f := (factReader{rest: packed}); f.rest != ""; {
		facts := f.readBytes(f.readNumber())
		rest, ended, err := documents.unescapeDocument(f.rest)
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
