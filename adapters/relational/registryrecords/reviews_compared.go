package registryrecords

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

// Compared implements registrystore.Reviews. Each kind has its own query, so that each reads rows
// by an index.
func (s *reviewStore) Compared(ctx context.Context, pending []review.Review) ([][]byte, error) {
	documents, place := make([][]byte, len(pending)), make(map[string]int, len(pending))
	var ids []any
	for i, r := range pending {
		if r.Kind != review.NewServer {
			place[string(r.ID)] = i
			ids = append(ids, string(r.ID))
		}
	}
	if len(ids) == 0 {
		return documents, ctx.Err()
	}
	selected := " AND r.id IN (?" + strings.Repeat(", ?", len(ids)-1) + ")"
	find := database.Query{
		Text: `SELECT r.id, v.document FROM reviews AS r JOIN versions AS v ON v.name = r.name AND v.version = r.version
				WHERE r.kind = 'replacement'` + selected + `
			UNION ALL SELECT r.id, v.document FROM reviews AS r JOIN versions AS v ON v.name = r.name AND v.is_latest
				WHERE r.kind <> 'replacement'` + selected,
		Args: append(ids, ids...),
	}
	return database.Collect(ctx, s.db, find, func(rows *sql.Rows) ([][]byte, error) {
		for rows.Next() {
			var id string
			var document []byte
			if err := rows.Scan(&id, &document); err != nil {
				return nil, err
			}
			documents[place[id]] = document
		}
		return documents, nil
	})
}

func (s *reviewStore) CountPending(ctx context.Context) (n int, err error) {
	find := database.Query{Text: "SELECT count(*) FROM reviews WHERE state = 'pending'", Fixed: true}
	err = s.db.ScanRow(ctx, find, &n)
	return n, err
}

func (s *reviewStore) DecidedByOperator(ctx context.Context, after, until time.Time, limit int) ([]review.Review, error) {
	find := database.Query{
		Text: "SELECT " + briefColumns + ` FROM reviews WHERE decided_by = '` + review.Operator +
			`' AND decided_at > ? AND decided_at <= ?
			ORDER BY decided_at, id LIMIT ?`,
		Args: []any{s.db.TimeArgument(after), s.db.TimeArgument(until), limit}, Fixed: true,
	}
	return database.Collect(ctx, s.db, find, func(rows *sql.Rows) ([]review.Review, error) {
		p, err := collectReviews(rows, limit, 0)
		return p.Reviews, err
	})
}
