package registryrecords

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// endOfDocument ends a document in a packed text. It is not a sequence of the escape form.
const endOfDocument = `\e`

// selectPacked is syntax.selectVersions with all versions in one text: for each version the number
// of bytes of its facts, a space, the facts, the escape form of its document, and endOfDocument. As
// bytes, documents would be sent as hexadecimal digits, two for each byte. PostgreSQL sends all
// rows that a query selects, so the query itself ends with the row that reaches the limit of bytes,
// and counts all rows.
func selectPacked(q database.Query, limit pageLimit) database.Query {
	q.Text = "SELECT string_agg(CAST(octet_length(p.facts) AS text) || ' ' || p.facts || encode(p.document, 'escape') || '" + endOfDocument + `', '')
			FILTER (WHERE p.upto - p.size < ?), count(*)
		FROM (SELECT w.facts, w.document, w.size, sum(w.size) OVER (ROWS UNBOUNDED PRECEDING) AS upto
			FROM (SELECT ` + factsOfVersion +
		` AS facts, v.document, octet_length(v.document) AS size FROM versions AS v WHERE ` + q.Text + `) AS w) AS p`
	q.Args = append([]any{limit.bytes}, q.Args...)
	return q
}

// collectPacked implements versionCollector.
func collectPacked(rows *sql.Rows, limit pageLimit) (all []registry.Record, more bool, err error) {
	var packed sql.NullString
	counted := 0
	for rows.Next() {
		if err := rows.Scan(&packed, &counted); err != nil {
			return nil, false, err
		}
	}
	if all, err = unpack(packed.String, counted); err != nil {
		return nil, false, err
	}
	if limit.rows > 0 && len(all) > limit.rows {
		all = all[:limit.rows]
	}
	return all, len(all) < counted, nil
}

var (
	errPacked = errors.New("the packed text of a list has another form")
	errEscape = errors.New("a document of the database is not in its escape form")
)

// unpack returns the records of a packed text. Memory is allocated for counted records.
func unpack(packed string, counted int) ([]registry.Record, error) {
	all := make([]registry.Record, 0, counted)
	documents := make([]byte, 0, len(packed)) // unescaped documents are not longer, so they are never copied
	for packed != "" {
		facts, rest, err := cutFacts(packed)
		if err != nil {
			return nil, database.BrokenRow(err)
		}
		begin := len(documents)
		if documents, packed, err = appendUnescaped(documents, rest); err != nil {
			return nil, database.BrokenRow(err)
		}
		release, err := parseFacts(facts)
		if err != nil {
			return nil, err
		}
		all = append(all, registry.Record{Release: release, Document: documents[begin:len(documents):len(documents)]})
	}
	return all, nil
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

// appendUnescaped appends the bytes of an escape form to dst. A backslash is two backslashes in
// this form, a byte that is NUL or not ASCII is a backslash and three octal digits, and any other
// byte is itself. It stops after endOfDocument and returns the text after it.
func appendUnescaped(dst []byte, text string) (appended []byte, rest string, err error) {
	const digits = 3
	for {
		plain, rest, escaped := strings.Cut(text, `\`)
		dst = append(dst, plain...)
		switch {
		case !escaped:
			return dst, "", errEscape
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
