package relational

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// endOfPart parts the values of a column that SQLite has joined. By the rules
// of the model neither facts nor documents, which are compact JSON, have a NUL.
const endOfPart = "\x00"

// queryJoined returns the records of a query on SQLite, which come as one row of two
// texts, and how many the query found. It returns none where a document has
// more bytes than most, and does not read that. The query has a limit, without
// which SQLite would take its order for one that nobody needs.
func (s *Servers) queryJoined(ctx context.Context, q query, most int) (all []registry.Record, found int, err error) {
	q.text = `SELECT group_concat(p.facts, x'00'), group_concat(p.document, x'00')
		FROM (SELECT v.facts, CASE WHEN length(v.document) <= ? THEN v.document END AS document FROM versions AS v WHERE ` + q.text + ") AS p"
	q.args = append([]any{most}, q.args...)
	texts, err := collected(ctx, s.db, q, func(rows *sql.Rows) (texts [2]sql.NullString, err error) {
		for rows.Next() {
			if err := rows.Scan(&texts[0], &texts[1]); err != nil {
				return texts, err
			}
		}
		return texts, nil
	})
	if err != nil {
		return nil, 0, err
	}
	return splitJoined(texts[0].String, texts[1].String)
}

// splitJoined takes joined facts and documents apart. It returns no records where the
// ones are not as many as the others.
func splitJoined(facts, documents string) (all []registry.Record, found int, err error) {
	found = countJoined(facts)
	if found == 0 || found != countJoined(documents) {
		return nil, found, nil
	}
	all = make([]registry.Record, 0, found)
	rest := []byte(documents)
	for f := range strings.SplitSeq(facts, endOfPart) {
		var document []byte
		document, rest, _ = bytes.Cut(rest, []byte(endOfPart))
		r, err := parseFacts(f)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, registry.Record{Release: r, Document: slices.Clip(document)})
	}
	return all, found, nil
}

// countJoined returns how many values a text joins, none of which is empty.
func countJoined(joined string) int {
	if joined == "" {
		return 0
	}
	return strings.Count(joined, endOfPart) + 1
}
