package authrecords

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// readPage returns one page of the rows that a query selects, and how many rows it selects in all. It counts them only
// if the page does not show their number.
func readPage[R any](
	ctx context.Context, d *database.DB, page auth.PageRequest, which func(*bun.SelectQuery) *bun.SelectQuery,
) (rows []R, total int, err error) {
	rows, err = database.Read(ctx, d, func(ctx context.Context, tx bun.IDB) (rows []R, err error) {
		rows, total, err = selectPage[R](ctx, which(tx.NewSelect()), page)
		return rows, d.ClassifyError(err)
	})
	return rows, total, err
}

func selectPage[R any](ctx context.Context, q *bun.SelectQuery, page auth.PageRequest) (rows []R, total int, err error) {
	q.Model(&rows)
	if page.Limit > 0 {
		if err := q.Limit(page.Limit).Offset(page.Offset).Scan(ctx); err != nil {
			return nil, 0, err
		}
		if len(rows) < page.Limit && (len(rows) > 0 || page.Offset == 0) {
			return rows, page.Offset + len(rows), nil
		}
	}
	total, err = q.Count(ctx)
	return rows, total, err
}
