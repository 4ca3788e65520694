package registryrecords

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// indexTools stores the names of the tools of servers, and returns what else their lists add to the rows.
func (s catalogueStore) indexTools(ctx context.Context, tx bun.IDB, names []string) (map[string]tools.Digest, error) {
	digests := map[string]tools.Digest{}
	lists := database.Query{
		Text: `SELECT l.name, l.state, CASE WHEN l.approved THEN l.content ELSE '' END FROM tool_lists AS l
			JOIN versions AS v ON v.name = l.name AND v.version = l.version WHERE v.is_latest` + s.ofNames("", names),
		Args: anyOf(names),
	}
	_, err := database.CollectAll(ctx, s.db, lists, func(row *sql.Rows) (none struct{}, err error) {
		var name string
		var state tools.State
		var content []byte
		if err := row.Scan(&name, &state, &content); err != nil {
			return none, err
		}
		d := digests[name]
		err = d.Add(state, content)
		digests[name] = d
		return none, checkRow(err)
	})
	if err != nil {
		return nil, err
	}
	of := "(?" + strings.Repeat(", ?", len(names)-1) + ")"
	if _, err := s.db.ExecStatement(ctx, tx, "DELETE FROM tool_names WHERE server IN "+of, anyOf(names)...); err != nil {
		return nil, err
	}
	for name, d := range digests {
		for part := range slices.Chunk(d.Names, wordsAtOnce) {
			args := make([]any, 0, 2*len(part))
			for _, tool := range part {
				args = append(args, tool, name)
			}
			if _, err := s.db.ExecStatement(ctx, tx, "INSERT INTO tool_names (tool, server) "+rowsOf(len(part), 2), args...); err != nil {
				return nil, err
			}
		}
	}
	return digests, nil
}

// wordsAtOnce is how many words one statement has.
const wordsAtOnce = 500

func (s *toolListStore) Named(ctx context.Context, other registry.Name, words []string) (tools.Listed, error) {
	found := tools.Listed{Servers: map[string]bool{}, Tools: map[string]string{}}
	for part := range slices.Chunk(words[:min(len(words), registrystore.MaxWords)], wordsAtOnce) {
		in := " IN (?" + strings.Repeat(", ?", len(part)-1) + ")"
		q := database.Query{
			Text: "SELECT name, '' FROM catalogue WHERE living AND name <> ? AND name" + in +
				" UNION ALL SELECT min(server), tool FROM tool_names WHERE server <> ? AND tool" + in + " GROUP BY tool",
			Args: slices.Concat([]any{other.String()}, anyOf(part), []any{other.String()}, anyOf(part)),
		}
		_, err := database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (none struct{}, err error) {
			var server, tool string
			if err = row.Scan(&server, &tool); err != nil {
				return none, err
			}
			if tool == "" {
				found.Servers[server] = true
			} else {
				found.Tools[tool] = server
			}
			return none, nil
		})
		if err != nil {
			return tools.Listed{}, err
		}
	}
	return found, nil
}
