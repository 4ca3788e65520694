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

// rightStore stores the requests for rights. It implements registrystore.RightRequests.
type rightStore struct{ db *database.DB }

// Add implements registrystore.RightRequests. The request takes the first free slot; without one it takes the first, where
// it conflicts.
func (s *rightStore) Add(ctx context.Context, r registry.RightRequest) error {
	_, err := s.db.Exec(ctx, `DELETE FROM right_requests WHERE id IN (SELECT id FROM right_requests
		WHERE user_id = ? AND state <> 'open' ORDER BY decided_at DESC, id LIMIT 100 OFFSET ?)`, string(r.Holder), registry.MaxDecidedRights)
	if err != nil {
		return err
	}
	added, err := s.db.Exec(ctx, `INSERT INTO right_requests (id, user_id, action, pattern, reason, asked_at, state, slot)
		VALUES (?, ?, ?, ?, ?, ?, 'open', coalesce((SELECT min(n) FROM
			(SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5) AS slots
			WHERE n NOT IN (SELECT slot FROM right_requests WHERE user_id = ? AND state = 'open')), 1))
		ON CONFLICT DO NOTHING`, string(r.ID), string(r.Holder), string(r.Action), r.Pattern.String(), r.Reason,
		database.NewInstant(r.AskedAt), string(r.Holder))
	return changedOr(added, err, fault.Newf(fault.Conflict,
		"you have asked for this already, or have %d requests that wait: wait for the answer", registry.MaxOpenRights))
}

func (s *rightStore) Decide(ctx context.Context, r registry.RightRequest) error {
	changed, err := s.db.Exec(ctx, `UPDATE right_requests SET state = ?, given = ?, decided_by = ?, comment = ?, decided_at = ?
		WHERE id = ? AND state = 'open' AND user_id <> ?`, string(r.State), r.Given.String(), string(r.DecidedBy), r.Comment,
		database.NewInstant(r.DecidedAt), string(r.ID), string(r.DecidedBy))
	return changedOr(changed, err, fault.New(fault.Conflict, "somebody has decided about this request already"))
}

func (s *rightStore) List(ctx context.Context, q registrystore.RightQuery) ([]registry.RightRequest, error) {
	var c condition
	order := "asked_at DESC, r.id"
	if q.ID != "" {
		c = c.and("r.id = ?", string(q.ID))
	}
	if q.Who != "" {
		c = c.and("user_id = ?", string(q.Who))
	}
	if q.Open {
		c, order = c.and("r.state = 'open'"), "asked_at, r.id"
	}
	find := database.Query{
		Text: `SELECT user_id, action, pattern, r.id, email, reason, asked_at, r.state, given, decided_by, comment, decided_at
			FROM right_requests AS r JOIN accounts ON accounts.id = r.user_id` + c.where() + " ORDER BY " + order + " LIMIT ?",
		Args: append(c.args, q.Limit),
	}
	return database.CollectAll(ctx, s.db, find, scanRight)
}

func scanRight(row *sql.Rows) (r registry.RightRequest, err error) {
	err = scanGrant(row, &r.Grant, &r.ID, &r.Email, &r.Reason, database.TimeInto(&r.AskedAt), &r.State,
		optional(&r.Given, registry.ParsePattern), &r.DecidedBy, &r.Comment, database.TimeInto(&r.DecidedAt))
	return r, err
}
