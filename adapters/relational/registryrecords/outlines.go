package registryrecords

import (
	"context"
	"database/sql"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Outline implements registrystore.ServerReader. The databases return the size of a document
// without reading it.
func (s *Servers) Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error) {
	text := "SELECT " + database.FactsOfVersion + ", " + s.sql.DocumentSize + " FROM versions AS v WHERE " + visibleOnly("v.name = ?", deleted) + newestFirst
	return database.Collect(ctx, s.db, database.Query{Text: text, Args: []any{name.String()}, Fixed: true}, func(rows *sql.Rows) (all []registry.Edition, err error) {
		var facts string
		var size int
		for rows.Next() {
			if err := rows.Scan(&facts, &size); err != nil {
				return nil, err
			}
			r, err := parseFacts(facts)
			if err != nil {
				return nil, err
			}
			all = append(all, registry.Edition{Release: r, Size: size})
		}
		return all, nil
	})
}

// Undeprecated implements registrystore.ServerReader.
func (s *Servers) Undeprecated(ctx context.Context, names []registry.Name) ([]registry.Release, error) {
	if len(names) == 0 {
		return nil, ctx.Err()
	}
	args := make([]any, len(names))
	for i, n := range names {
		args[i] = n.String()
	}
	text := "SELECT " + database.FactsOfVersion + " FROM versions AS v WHERE " + notDeprecated + ` AND v.name IN (
		SELECT l.name FROM versions AS l WHERE l.is_latest AND l.status = 'deprecated' AND l.name IN (?` + strings.Repeat(", ?", len(names)-1) + "))"
	return database.Collect(ctx, s.db, database.Query{Text: text, Args: args, Fixed: len(names) == 1}, func(rows *sql.Rows) (all []registry.Release, err error) {
		var facts string
		for rows.Next() {
			if err := rows.Scan(&facts); err != nil {
				return nil, err
			}
			r, err := parseFacts(facts)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
		return all, nil
	})
}
