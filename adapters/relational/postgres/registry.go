package postgres

import (
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// registrySyntax is the SQL of the registry's tables.
var registrySyntax = database.RegistrySyntax{
	LockServer: `INSERT INTO servers (name) VALUES (?0) ON CONFLICT (name) DO NOTHING;
		SELECT name FROM servers WHERE name = ?0 FOR UPDATE`,
	ActiveLatest: "CASE WHEN v.is_latest THEN v.status <> 'deleted' END",
	UpdatedAfter: "v.updated_at > ?",
	NameMatches:  matchPattern("v.name"),
	DocumentSize: "octet_length(v.document)",
	Unique:       database.UniqueErrors{Version: "versions_exist_once", Publication: "versions_publication", Latest: "versions_one_latest"},
	Find:         finder{},
	NamesWith:    namesWith,
	Versions:     packedVersions{},
	UpdateStates: updateStates,
}

// matchPattern returns the condition that a column matches a pattern, the argument, in upper or
// lower case.
func matchPattern(column string) string {
	return "lower(" + column + `) LIKE lower(? COLLATE "C") ESCAPE '\'`
}

type finder struct{}

// NextRows returns a condition whose subquery compares the names in the index. Without it,
// PostgreSQL would fetch each row before.
func (finder) NextRows(list, filter database.Condition, order string, limit int) database.Condition {
	all := list.And(filter.Text, filter.Args...)
	return database.Condition{
		Text: "(v.name, v.version) IN (SELECT v.name, v.version FROM versions AS v WHERE " + all.Text + order + " LIMIT CAST(? AS bigint))",
		Args: append(all.Args, limit),
	}
}

// FirstRows returns a condition that leaves no plan but to read the rows of each condition in the
// order of an index.
func (finder) FirstRows(lists []database.Condition, order string, limit int) database.Condition {
	each := database.FirstOfEach("ctid", lists, order, limit)
	return database.Condition{Text: "v.ctid = ANY (ARRAY(" + each.Text + "))", Args: each.Args}
}

// UpdatedRows returns a condition whose order and limit leave no plan but the index of updates.
func (finder) UpdatedRows(after any, limit int) database.Condition {
	return database.Condition{
		Text: "v.ctid = ANY (ARRAY(SELECT ctid FROM versions WHERE updated_at > ? ORDER BY updated_at LIMIT CAST(? AS bigint)))",
		Args: []any{after, limit},
	}
}

// namesWith returns the selection of the index of the parts of names, which it reads first and
// alone: PostgreSQL would otherwise call its function, which is slow, for the rows of another
// index.
func namesWith(text, pattern, notBefore string) database.Condition {
	return database.Condition{
		Text: `FROM (WITH found AS MATERIALIZED (SELECT name FROM servers WHERE server_parts(name) @@ CAST(? AS tsquery)) SELECT name FROM found) AS servers
			WHERE ` + matchPattern("servers.name") + " AND servers.name >= ?",
		Args: []any{partsQuery(text), pattern, notBefore},
	}
}

// minTrigram is the length of the parts of names in the index. A shorter text is the beginning of
// parts.
const minTrigram = 3

// partsQuery returns the text search query for the names that have all parts of a text.
func partsQuery(text string) string {
	all := []rune(strings.ToLower(text))
	quote := func(part []rune) string { return "'" + partEscaper.Replace(string(part)) + "'" }
	if len(all) < minTrigram {
		return quote(all) + ":*"
	}
	parts := make([]string, 0, len(all))
	for i := range len(all) - minTrigram + 1 {
		parts = append(parts, quote(all[i:i+minTrigram]))
	}
	return strings.Join(parts, " & ")
}

var partEscaper = strings.NewReplacer(`'`, `''`, `\`, `\\`)

// maxUpdated is how many rows one statement of updateStates updates at most.
const maxUpdated = 500

// updateStates returns statements that update many rows each.
func updateStates(releases []registry.Release) []database.Statement {
	const columns = 8
	var all []database.Statement
	for len(releases) > 0 {
		part := releases[:min(maxUpdated, len(releases))]
		releases = releases[len(part):]
		args := make([]any, 0, columns*len(part))
		for _, r := range part {
			args = append(args, r.Name.String(), r.Version.String(), string(r.Status), r.StatusMessage,
				database.NewInstant(r.StatusChangedAt), database.NewInstant(r.PublishedAt), database.NewInstant(r.UpdatedAt), r.Latest)
		}
		rows := strings.TrimPrefix(strings.Repeat(",(?,?,?,?,?,?,?,?)", len(part)), ",")
		all = append(all, database.Statement{Args: args, Rows: int64(len(part)), Text: `
			WITH d (name, version, status, message, changed, published, updated, latest) AS (VALUES ` + rows + `)
			UPDATE versions SET status = d.status, status_message = d.message,
				status_changed_at = CAST(d.changed AS timestamptz), updated_at = CAST(d.updated AS timestamptz), is_latest = d.latest
			FROM d WHERE versions.name = d.name AND versions.version = d.version AND versions.published_at = CAST(d.published AS timestamptz)`})
	}
	return all
}
