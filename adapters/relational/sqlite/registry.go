package sqlite

import (
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// registrySyntax is the SQL of the registry's tables. The plus sign in UpdatedAfter keeps SQLite
// from using the index of updates.
var registrySyntax = database.RegistrySyntax{
	PlansByText:  true,
	LockServer:   "INSERT INTO servers (name) VALUES (?0) ON CONFLICT (name) DO NOTHING",
	ActiveLatest: "v.is_latest = 1 AND v.status IS NOT 'deleted'",
	UpdatedAfter: "+v.updated_at > ?",
	NameMatches:  `v.name LIKE ? ESCAPE '\'`,
	DocumentSize: "length(v.document)",
	Unique: database.UniqueErrors{
		Version:     uniqueFailed + "versions.name, versions.version",
		Publication: uniqueFailed + "versions.name, versions.published_at",
		Latest:      uniqueFailed + "versions.name",
	},
	Find:         finder{},
	NewNames:     "SELECT max(id), count(*), group_concat(name, x'0a') FROM (SELECT id, name FROM servers WHERE id > ? ORDER BY id LIMIT CAST(? AS bigint))",
	NamesOf:      "SELECT value FROM json_each(?)",
	Versions:     versionRows{},
	UpdateStates: updateStates,
}

const uniqueFailed = "UNIQUE constraint failed: "

type finder struct{}

// NextRows returns the filter: SQLite compares the columns of an index before it reads the row.
func (finder) NextRows(_, filter database.Condition, _ string, _ int) database.Condition {
	return filter
}

// FirstRows implements database.Finder.
func (finder) FirstRows(lists []database.Condition, order string, limit int) database.Condition {
	each := database.FirstOfEach("rowid", lists, order, limit)
	return database.Condition{Text: "v.rowid IN (" + each.Text + ")", Args: each.Args}
}

// UpdatedRows implements database.Finder.
func (finder) UpdatedRows(after any, _ int) database.Condition {
	return database.Condition{Text: "v.rowid IN (SELECT rowid FROM versions WHERE updated_at > ?)", Args: []any{after}}
}

// updateStates returns a statement for each version. To change a row, SQLite writes it again with
// its document; a statement that changes many rows would keep all of them in memory until it ends.
func updateStates(releases []registry.Release) []database.Statement {
	all := make([]database.Statement, len(releases))
	for i, r := range releases {
		all[i] = database.Statement{
			Text: `UPDATE versions SET status = ?, status_message = ?, status_changed_at = ?, updated_at = ?, is_latest = ?
				WHERE name = ? AND version = ? AND published_at = ?`,
			Args: []any{
				string(r.Status), r.StatusMessage, database.NewInstant(r.StatusChangedAt), database.NewInstant(r.UpdatedAt), r.Latest,
				r.Name.String(), r.Version.String(), database.NewInstant(r.PublishedAt),
			},
			Rows: 1,
		}
	}
	return all
}
