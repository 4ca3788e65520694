package registryrecords

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// grantStore stores the grants. It implements registrystore.Grants.
type grantStore struct{ db *database.DB }

func (s *grantStore) Add(ctx context.Context, g registry.GrantRecord) error {
	added, err := s.db.Exec(ctx, `INSERT INTO grants (holder, action, pattern, managed_by) VALUES (?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, string(g.Holder), string(g.Action), g.Pattern.String(), g.ManagedBy)
	return changedOr(added, err, fault.New(fault.Conflict, "there is such a grant already"))
}

// sameGrant selects the grant of a provider, or the one without.
const sameGrant = " WHERE holder = ? AND action = ? AND pattern = ? AND provider = ?"

func (s *grantStore) Remove(ctx context.Context, g registry.GrantRecord) error {
	return database.MustChange(s.db.Exec(ctx, "DELETE FROM grants"+sameGrant,
		string(g.Holder), string(g.Action), g.Pattern.String(), g.Provider()))
}

func (s *grantStore) Of(ctx context.Context, holder registry.Holder) ([]registry.Grant, error) {
	return database.CollectAll(ctx, s.db, database.Query{
		Text: "SELECT DISTINCT holder, action, pattern FROM grants WHERE holder = ? ORDER BY action, pattern",
		Args: []any{string(holder)},
	}, func(row *sql.Rows) (g registry.Grant, err error) { return g, scanGrant(row, &g) })
}

func (s *grantStore) Records(ctx context.Context, q registrystore.GrantQuery) ([]registry.GrantRecord, error) {
	var c condition
	if q.ID != "" {
		c = c.and("id = ?", string(q.ID))
	}
	if len(q.Holders) > 0 {
		c = c.and("holder IN (?)", bun.List(q.Holders))
	}
	if q.Action != "" {
		c = c.and("action = ?", string(q.Action))
	}
	if q.ManagedBy != "" {
		c = c.and("managed_by = ?", q.ManagedBy)
	}
	if q.After != (registry.GrantRecord{}) {
		c = c.and("(holder, action, pattern, provider) > (?, ?, ?, ?)", string(q.After.Holder), string(q.After.Action),
			q.After.Pattern.String(), q.After.Provider())
	}
	find := database.Query{
		Text: "SELECT holder, action, pattern, id, managed_by FROM grants" + c.where() +
			" ORDER BY holder, action, pattern, provider",
		Args: c.args,
	}
	if q.Limit > 0 {
		find.Text += " LIMIT ?"
		find.Args = append(find.Args, q.Limit)
	}
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (r registry.GrantRecord, err error) {
		return r, scanGrant(row, &r.Grant, &r.ID, &r.ManagedBy)
	})
}

func (s *grantStore) Manage(ctx context.Context, g registry.Grant, by string) error {
	return database.MustChange(s.db.Exec(ctx, "UPDATE grants SET managed_by = ?"+sameGrant, by,
		string(g.Holder), string(g.Action), g.Pattern.String(), ""))
}

// scanGrant reads a grant, and the columns after it.
func scanGrant(row *sql.Rows, g *registry.Grant, more ...any) error {
	columns := []any{&g.Holder, parsedInto(&g.Action, registry.ParseAction), parsedInto(&g.Pattern, registry.ParsePattern)}
	return row.Scan(append(columns, more...)...)
}
