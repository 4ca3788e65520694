package registryrecords

import (
	"database/sql"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

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
