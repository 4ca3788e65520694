package registryrecords

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// syntax is what differs between the databases in the queries of the registry's tables. Its texts
// call the table versions v.
type syntax struct {
	// plansByText is true if the database plans a query by its text alone, whatever its arguments
	// are.
	plansByText bool
	// fetchesFirst is true if the database fetches a row before it compares the columns that the
	// index has, unless the query reads nothing else.
	fetchesFirst bool
	// lockServer are the statements that create the row of the server ?0, if it does not exist, and
	// lock it.
	lockServer string
	// activeLatest is the condition that a version is the latest and is not deleted. It has the
	// words of the index of these versions, and other words than the index of all latest versions,
	// so that the database chooses the first.
	activeLatest string
	updatedAfter string // condition that a row, found by another index, was updated after the argument
	nameMatches  string // condition that a name matches the argument, a pattern of LIKE, in upper or lower case
	documentSize string // expression of the number of bytes of a document
	rowID        string // column by which a row is found without an index
	withRowID    string // condition that the row id is one of those that the query between its two parts, at %, selects

	// selectVersions returns the query that reads the versions of q, whose text begins after WHERE.
	// If there is a limit of rows, q selects one row more.
	selectVersions func(q database.Query, limit pageLimit) database.Query
	// collectVersions returns the records of the rows of that query up to the limit, and whether
	// there are more.
	collectVersions versionCollector
	// updateStates returns the statements that store everything but the documents of versions.
	updateStates func(releases []registry.Release) []statement
	unique       uniqueErrors

	// position is the query of the position of now, of accessstore.Servers.Changed: where it is good, and
	// a place there. changedAfter selects the rows of server_changes, called c, after a place.
	position, changedAfter string
	// newNames is the query of the next names of servers in the order of their ids: the greatest
	// id, the number of names, and the names, each but the first after a newline. Its arguments are
	// the id after which they begin and the maximum number of names. It is empty if a server may be
	// stored after one with a greater id.
	newNames string
	// namesOf is the subquery that selects the names of the argument, a JSON array. It is empty if
	// newNames is.
	namesOf string
	// namesWith returns the FROM and WHERE clauses of a selection of the index of the parts of
	// names: the rows, called servers, of the names that contain a text and are not before another
	// name. The pattern is the text as a pattern of LIKE. It is nil if newNames is not empty.
	namesWith func(text, pattern, notBefore string) condition

	passLocked string                     // clause after which rows that another transaction has locked are left out
	contains   func(column string) string // condition that a column contains the argument
	// withParts returns the FROM and WHERE clauses of the rows of the catalogue, called c, that have
	// all parts.
	withParts func(all []part) condition
	// indexParts puts the parts of servers into the index. It is nil if the database does it.
	indexParts func(ctx context.Context, db *database.DB, tx bun.IDB, servers []catalogueRow) error
}

func syntaxOf(db *database.DB) *syntax {
	if db.Kind() == dialect.PG {
		return &postgresSyntax
	}
	return &sqliteSyntax
}

// uniqueErrors are the texts by which a driver's error names the broken constraint of the table
// versions.
type uniqueErrors struct {
	version     string // name and version
	publication string // name and publication time
	latest      string // one latest version for each name
}

// statement is a statement that must change a known number of rows.
type statement struct {
	text string
	args []any
	rows int64
}

// condition is a condition, or another part of a query, with its arguments.
type condition struct {
	text string
	args []any
}

// and returns the conjunction of the condition and another one.
func (c condition) and(text string, args ...any) condition { return c.also(condition{text, args}) }

// also returns the conjunction of both conditions. An empty condition is true.
func (c condition) also(other condition) condition {
	switch {
	case other.text == "":
		return c
	case c.text == "":
		return other
	}
	return condition{c.text + " AND " + other.text, append(slices.Clip(c.args), other.args...)}
}

// where returns the WHERE clause of a query, which is empty for an empty condition.
func (c condition) where() string {
	if c.text == "" {
		return ""
	}
	return " WHERE " + c.text
}

// ofRows returns the condition that the row id is one of those that a query selects. It leaves no
// plan but to run the query first, and once.
func (x *syntax) ofRows(query condition) condition {
	before, after, _ := strings.Cut(x.withRowID, "%")
	return condition{before + query.text + after, query.args}
}

// nextRows returns the condition for the first rows of a list that meet a filter, at most limit of
// them. An index has the rows of the list in this order, and the columns that the filter compares.
func (x *syntax) nextRows(list, filter condition, order string, limit int) condition {
	all := list.also(filter)
	if !x.fetchesFirst {
		return all
	}
	return x.ofRows(condition{
		"SELECT (SELECT f." + x.rowID + " FROM versions AS f WHERE f.name = k.name AND f.version = k.version) FROM (" +
			"SELECT v.name, v.version FROM versions AS v WHERE " + all.text + order + " LIMIT CAST(? AS bigint)) AS k",
		append(slices.Clip(all.args), limit),
	})
}

// firstRows returns the condition for the first rows that meet one of the conditions, at least
// limit of them if there are as many. An index has the order for the rows of each condition.
func (x *syntax) firstRows(lists []condition, order string, limit int) condition {
	var args []any
	parts := make([]string, 0, len(lists))
	for i, c := range lists {
		parts = append(parts, "SELECT id FROM (SELECT v."+x.rowID+" AS id FROM versions AS v WHERE "+c.text+order+
			" LIMIT CAST(? AS bigint)) AS part"+strconv.Itoa(i))
		args = append(append(args, c.args...), limit)
	}
	return x.ofRows(condition{strings.Join(parts, " UNION ALL "), args})
}

// updatedRows returns the condition that a row was updated after a time. The caller knows that
// fewer rows than limit were.
func (x *syntax) updatedRows(after any, limit int) condition {
	return x.ofRows(condition{
		"SELECT " + x.rowID + " FROM versions WHERE updated_at > ? ORDER BY updated_at LIMIT CAST(? AS bigint)", []any{
			after, limit,
		},
	})
}

// sqliteSyntax is the syntax of SQLite. The plus sign in updatedAfter keeps SQLite from using the
// index of updates.
var sqliteSyntax = syntax{
	plansByText:     true,
	lockServer:      "INSERT INTO servers (name) VALUES (?0) ON CONFLICT (name) DO NOTHING",
	activeLatest:    "v.is_latest = 1 AND v.status IS NOT 'deleted'",
	updatedAfter:    "+v.updated_at > ?",
	nameMatches:     `v.name LIKE ? ESCAPE '\'`,
	documentSize:    "length(v.document)",
	rowID:           "rowid",
	withRowID:       "v.rowid IN (%)",
	selectVersions:  selectVersionRows,
	collectVersions: collectVersionRows,
	updateStates:    updateEachState,
	unique: uniqueErrors{
		version:     uniqueFailed + "versions.name, versions.version",
		publication: uniqueFailed + "versions.name, versions.published_at",
		latest:      uniqueFailed + "versions.name",
	},
	position:     "SELECT '', CAST(coalesce(max(changed_in), 0) AS text) FROM server_changes",
	changedAfter: "server_changes AS c WHERE c.changed_in > CAST(? AS integer)",
	newNames:     "SELECT max(id), count(*), group_concat(name, x'0a') FROM (SELECT id, name FROM servers WHERE id > ? ORDER BY id LIMIT CAST(? AS bigint))",
	namesOf:      "SELECT value FROM json_each(?)",

	contains:   func(column string) string { return "instr(" + column + ", ?) > 0" },
	withParts:  withHexParts,
	indexParts: indexHexParts,
}

const uniqueFailed = "UNIQUE constraint failed: "

// selectVersionRows is syntax.selectVersions with a row for each version.
func selectVersionRows(q database.Query, _ pageLimit) database.Query {
	q.Text = "SELECT " + factsOfVersion + ", v.document FROM versions AS v WHERE " + q.Text
	return q
}

// collectVersionRows implements versionCollector. It does not read the rows after the limit.
func collectVersionRows(rows *sql.Rows, limit pageLimit) (all []registry.Record, more bool, err error) {
	size := 0
	for rows.Next() {
		if size >= limit.bytes || limit.rows > 0 && len(all) == limit.rows {
			return all, true, nil
		}
		var facts string
		var r registry.Record
		if err := rows.Scan(&facts, &r.Document); err != nil {
			return nil, false, err
		}
		if r.Release, err = parseFacts(facts); err != nil {
			return nil, false, err
		}
		all = append(all, r)
		size += len(r.Document)
	}
	return all, false, nil
}

// updateEachState is syntax.updateStates with a statement for each version. To change a row, SQLite
// writes it again with its document; a statement that changes many rows would keep all of them in
// memory until it ends.
func updateEachState(releases []registry.Release) []statement {
	all := make([]statement, len(releases))
	for i, r := range releases {
		all[i] = statement{
			text: `UPDATE versions SET status = ?, status_message = ?, status_changed_at = ?, updated_at = ?, is_latest = ?
				WHERE name = ? AND version = ? AND published_at = ?`,
			args: []any{
				string(r.Status), r.StatusMessage, database.NewInstant(r.StatusChangedAt),
				database.NewInstant(r.UpdatedAt), r.Latest,
				r.Name.String(), r.Version.String(), database.NewInstant(r.PublishedAt),
			},
			rows: 1,
		}
	}
	return all
}

// postgresSyntax is the syntax of PostgreSQL.
var postgresSyntax = syntax{
	fetchesFirst: true,
	lockServer: `INSERT INTO servers (name) VALUES (?0) ON CONFLICT (name) DO NOTHING;
		SELECT name FROM servers WHERE name = ?0 FOR UPDATE`,
	activeLatest:    "CASE WHEN v.is_latest THEN v.status <> 'deleted' END",
	updatedAfter:    "v.updated_at > ?",
	nameMatches:     matchPattern("v.name"),
	documentSize:    "octet_length(v.document)",
	rowID:           "ctid",
	withRowID:       "v.ctid = ANY (ARRAY(%))",
	selectVersions:  selectPacked,
	collectVersions: collectPacked,
	updateStates:    updateManyStates,
	unique: uniqueErrors{
		version: "versions_exist_once", publication: "versions_publication", latest: "versions_one_latest",
	},
	position: "SELECT CAST(extract(epoch FROM pg_postmaster_start_time()) AS text), CAST(txid_current_snapshot() AS text)",
	changedAfter: `server_changes AS c, (SELECT CAST(? AS txid_snapshot) AS seen) AS before
		WHERE c.changed_in >= txid_snapshot_xmin(before.seen) AND NOT txid_visible_in_snapshot(c.changed_in, before.seen)`,
	namesWith: namesWith,

	passLocked: " FOR UPDATE SKIP LOCKED",
	contains:   func(column string) string { return "strpos(" + column + ", ?) > 0" },
	withParts:  withLexemes,
}

// matchPattern returns the condition that a column matches a pattern, the argument, in upper or
// lower case.
func matchPattern(column string) string {
	return "lower(" + column + `) LIKE lower(? COLLATE "C") ESCAPE '\'`
}

// namesWith returns the selection of the index of the parts of names, which it reads first and
// alone: PostgreSQL would otherwise call its function, which is slow, for the rows of another
// index.
func namesWith(text, pattern, notBefore string) condition {
	return condition{
		text: `FROM (WITH found AS MATERIALIZED (SELECT name FROM servers WHERE server_parts(name) @@ CAST(? AS tsquery)) SELECT name FROM found) AS servers
			WHERE ` + matchPattern("servers.name") + " AND servers.name >= ?",
		args: []any{partsQuery(text), pattern, notBefore},
	}
}

// partsQuery returns the text search query for the names that have all parts of a text.
func partsQuery(text string) string {
	return lexemeQuery(partsOfWord("", strings.ToLower(text), 1))
}

// lexemeQuery returns the text search query for what has all parts.
func lexemeQuery(parts []part) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = "'" + partEscaper.Replace(p.text) + "'"
		if p.begins {
			all[i] += ":*"
		}
	}
	return strings.Join(all, " & ")
}

// withLexemes is syntax.withParts with the index of the function catalogue_parts, which it reads
// first and alone (namesWith).
func withLexemes(all []part) condition {
	return condition{
		text: `(WITH found AS MATERIALIZED (SELECT * FROM catalogue WHERE catalogue_parts(title, words, facets) @@ CAST(? AS tsquery))
			SELECT * FROM found) AS c WHERE TRUE`,
		args: []any{lexemeQuery(all)},
	}
}

var partEscaper = strings.NewReplacer(`'`, `''`, `\`, `\\`)

// maxUpdated is how many rows one statement of updateManyStates updates at most.
const maxUpdated = 500

// updateManyStates is syntax.updateStates with statements that update many rows each.
func updateManyStates(releases []registry.Release) []statement {
	const columns = 8
	var all []statement
	for part := range slices.Chunk(releases, maxUpdated) {
		args := make([]any, 0, columns*len(part))
		for _, r := range part {
			args = append(args, r.Name.String(), r.Version.String(), string(r.Status), r.StatusMessage,
				database.NewInstant(r.StatusChangedAt), database.NewInstant(r.PublishedAt),
				database.NewInstant(r.UpdatedAt), r.Latest)
		}
		all = append(all, statement{args: args, rows: int64(len(part)), text: `
			WITH d (name, version, status, message, changed, published, updated, latest) AS (` + rowsOf(len(part),
			columns) + `)
			UPDATE versions SET status = d.status, status_message = d.message,
				status_changed_at = CAST(d.changed AS timestamptz), updated_at = CAST(d.updated AS timestamptz), is_latest = d.latest
			FROM d WHERE versions.name = d.name AND versions.version = d.version AND versions.published_at = CAST(d.published AS timestamptz)`})
	}
	return all
}

func anyOf[T any](list []T) []any { return each.Map(list, func(one T) any { return one }) }
