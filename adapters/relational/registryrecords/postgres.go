package registryrecords

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

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
