package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// textEncoding packs the records of a list into one text: for each record the number of bytes of
// its facts, a space, the facts, the escape form of its document, and endOfDocument.
type textEncoding struct{}

var _ database.ListEncoding = textEncoding{}

// endOfDocument ends a document in a packed text. It is not a sequence of the escape form.
const endOfDocument = `\e`

// packRecords is the expression of the packed text.
const packRecords = `string_agg(CAST(octet_length(p.facts) AS text) || ' ' || p.facts || encode(p.document, 'escape') || '` + endOfDocument + `', '')`

// PackSmall implements database.ListEncoding. It does not add up the sizes of the documents, which
// would take a quarter longer.
func (textEncoding) PackSmall(q database.Query, maxDocument int) database.Query {
	q.Text = "SELECT " + packRecords + ` FILTER (WHERE octet_length(p.document) <= ?), count(*)
		FROM (SELECT v.facts, v.document FROM versions AS v WHERE ` + q.Text + ") AS p"
	q.Args = append([]any{maxDocument}, q.Args...)
	return q
}

// PackUpTo implements database.ListEncoding. PostgreSQL sends all rows that a query selects, so the
// query itself ends the page.
func (textEncoding) PackUpTo(q database.Query, maxBytes int) (database.Query, bool) {
	q.Text = "SELECT " + packRecords + ` FILTER (WHERE p.upto - p.size < ?), count(*)
		FROM (SELECT w.facts, w.document, w.size, sum(w.size) OVER (ROWS UNBOUNDED PRECEDING) AS upto
			FROM (SELECT v.facts, v.document, octet_length(v.document) AS size FROM versions AS v WHERE ` + q.Text + `) AS w) AS p`
	q.Args = append([]any{maxBytes}, q.Args...)
	return q, true
}

var (
	errPacked = errors.New("the packed text of a list has another form")
	errEscape = errors.New("a document of the database is not in its escape form")
	errNoEnd  = errors.New("the text ends before its document")
)

// Unpack implements database.ListEncoding.
func (textEncoding) Unpack(columns [2]string, parse database.FactsParser) (all []registry.Record, counted int, err error) {
	packed := columns[0]
	if counted, err = strconv.Atoi(columns[1]); err != nil {
		return nil, 0, database.BrokenRow(errPacked)
	}
	all = make([]registry.Record, 0, counted)
	documents := make([]byte, 0, len(packed)) // unescaped documents are not longer, so they are never copied
	for packed != "" {
		facts, rest, err := cutFacts(packed)
		if err != nil {
			return nil, 0, database.BrokenRow(err)
		}
		begin := len(documents)
		if documents, packed, err = appendUnescaped(documents, rest); err != nil {
			return nil, 0, database.BrokenRow(err)
		}
		release, err := parse(facts)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, registry.Record{Release: release, Document: documents[begin:len(documents):len(documents)]})
	}
	return all, counted, nil
}

// cutFacts returns the facts at the beginning of a packed text and the rest of the text.
func cutFacts(packed string) (facts, rest string, err error) {
	size, after, _ := strings.Cut(packed, " ")
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || n > len(after) {
		return "", "", errPacked
	}
	return after[:n], after[n:], nil
}

// AppendDocument implements database.ListEncoding. It reads the escape form.
func (textEncoding) AppendDocument(dst []byte, src any) ([]byte, error) {
	text, ok := src.(string)
	if !ok {
		return dst, fmt.Errorf("a document in the database has type %T", src)
	}
	dst, _, err := appendUnescaped(dst, text)
	switch {
	case errors.Is(err, errNoEnd): // the column has only the document
		return dst, nil
	case err == nil:
		err = errEscape
	}
	return dst, err
}

// appendUnescaped appends the bytes of an escape form to dst. A backslash is two backslashes in
// this form, a byte that is NUL or not ASCII is a backslash and three octal digits, and any other
// byte is itself. It stops after endOfDocument and returns the text after it, or errNoEnd if the
// text has no endOfDocument.
func appendUnescaped(dst []byte, text string) (appended []byte, rest string, err error) {
	const digits = 3
	for {
		plain, rest, escaped := strings.Cut(text, `\`)
		dst = append(dst, plain...)
		switch {
		case !escaped:
			return dst, "", errNoEnd
		case strings.HasPrefix(rest, endOfDocument[1:]):
			return dst, rest[1:], nil
		case strings.HasPrefix(rest, `\`):
			dst = append(dst, '\\')
			text = rest[1:]
		case len(rest) >= digits:
			value, err := strconv.ParseUint(rest[:digits], 8, 8)
			if err != nil {
				return dst, "", errEscape
			}
			dst = append(dst, byte(value))
			text = rest[digits:]
		default:
			return dst, "", errEscape
		}
	}
}
