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
	text := "SELECT " + factsOfVersion + ", " + s.sql.documentSize + " FROM versions AS v WHERE " +
		visibleOnly("v.name = ?", deleted) + newestFirst
	find := database.Query{Text: text, Args: []any{name.String()}, Fixed: true}
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (e registry.Edition, err error) {
		var facts string
		if err := row.Scan(&facts, &e.Size); err != nil {
			return e, err
		}
		e.Release, err = parseFacts(facts)
		return e, err
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
	text := "SELECT " + factsOfVersion + " FROM versions AS v WHERE " + notDeprecated + ` AND v.name IN (
		SELECT l.name FROM versions AS l WHERE l.is_latest AND l.status = 'deprecated' AND l.name IN (?` +
		strings.Repeat(", ?", len(names)-1) + "))"
	return database.CollectAll(ctx, s.db, database.Query{Text: text, Args: args, Fixed: len(names) == 1}, scanRelease)
}

// scanRelease scans a row that has factsOfVersion.
func scanRelease(row *sql.Rows) (r registry.Release, err error) {
	var facts string
	if err := row.Scan(&facts); err != nil {
		return r, err
	}
	return parseFacts(facts)
}
