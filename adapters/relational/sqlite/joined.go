package sqlite

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// joinedEncoding packs the records of a list into two texts: all facts, and all documents.
type joinedEncoding struct{}

var _ database.ListEncoding = joinedEncoding{}

// separator separates the values of a text. By the rules of the model neither facts nor documents,
// which are compact JSON, contain a NUL.
const separator = "\x00"

// PackSmall implements database.ListEncoding. SQLite does not read documents that are too large.
// Without a limit in its query, SQLite would ignore the order of the query.
func (joinedEncoding) PackSmall(q database.Query, maxDocument int) database.Query {
	q.Text = `SELECT group_concat(p.facts, x'00'), group_concat(p.document, x'00')
		FROM (SELECT v.facts, CASE WHEN length(v.document) <= ? THEN v.document END AS document FROM versions AS v WHERE ` + q.Text + ") AS p"
	q.Args = append([]any{maxDocument}, q.Args...)
	return q
}

// PackUpTo implements database.ListEncoding: SQLite reads large documents row by row.
func (joinedEncoding) PackUpTo(q database.Query, _ int) (database.Query, bool) { return q, false }

// Unpack implements database.ListEncoding. It returns no records if a document is missing.
func (joinedEncoding) Unpack(columns [2]string, parse database.FactsParser) (all []registry.Record, counted int, err error) {
	facts, documents := columns[0], columns[1]
	counted = countValues(facts)
	if counted == 0 || counted != countValues(documents) {
		return nil, counted, nil
	}
	all = make([]registry.Record, 0, counted)
	rest := []byte(documents)
	for text := range strings.SplitSeq(facts, separator) {
		var document []byte
		document, rest, _ = bytes.Cut(rest, []byte(separator))
		release, err := parse(text)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, registry.Record{Release: release, Document: slices.Clip(document)})
	}
	return all, counted, nil
}

// countValues returns how many values a text has. No value is empty.
func countValues(text string) int {
	if text == "" {
		return 0
	}
	return strings.Count(text, separator) + 1
}

// AppendDocument implements database.ListEncoding.
func (joinedEncoding) AppendDocument(dst []byte, src any) ([]byte, error) {
	document, ok := src.([]byte)
	if !ok {
		return dst, fmt.Errorf("a document in the database has type %T", src)
	}
	return append(dst, document...), nil
}
