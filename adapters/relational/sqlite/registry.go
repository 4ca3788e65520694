package sqlite

import (
	"slices"
	"strings"
	"unicode/utf8"

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
	Document:     "v.document",
	DocumentSize: "length(v.document)",
	Unique: database.UniqueErrors{
		Version:     uniqueFailed + "versions.name, versions.version",
		Publication: uniqueFailed + "versions.name, versions.published_at",
		Latest:      uniqueFailed + "versions.name",
	},
	Find:         finder{},
	Lists:        joinedEncoding{},
	UpdateStates: updateStates,
}

const uniqueFailed = "UNIQUE constraint failed: "

type finder struct{}

// NextRows returns the filter: SQLite compares the columns of an index before it reads the row.
func (finder) NextRows(_, filter database.Condition, _ string, _ int) database.Condition {
	return filter
}

// UpdatedRows implements database.Finder.
func (finder) UpdatedRows(after any, _ int) database.Condition {
	return database.Condition{Text: "v.rowid IN (SELECT rowid FROM versions WHERE updated_at > ?)", Args: []any{after}}
}

// minTrigram is the length of the parts of names in the index server_parts. A shorter text is the
// beginning of terms of server_trigrams.
const minTrigram = 3

// NamesWith implements database.Finder. The index server_parts finds exactly the names that contain
// a phrase, so the names are not compared again. CROSS JOIN makes SQLite keep the order of the
// tables.
func (finder) NamesWith(text, _, notBefore string) (counted, names database.Condition) {
	if utf8.RuneCountInString(text) < minTrigram {
		from := strings.ToLower(text)
		counted = database.Condition{Text: "FROM server_trigrams WHERE term >= ? AND term < ?", Args: []any{from, from + "\x7f"}}
		return counted, database.Condition{
			Text: "FROM servers WHERE id IN (SELECT doc " + counted.Text + ") AND servers.name >= ?",
			Args: append(slices.Clip(counted.Args), notBefore),
		}
	}
	phrase := `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	counted = database.Condition{Text: "FROM server_parts WHERE server_parts MATCH ?", Args: []any{phrase}}
	return counted, database.Condition{
		Text: "FROM server_parts CROSS JOIN servers ON servers.id = server_parts.rowid WHERE server_parts MATCH ? AND servers.name >= ?",
		Args: []any{phrase, notBefore},
	}
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
