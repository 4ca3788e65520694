package registryrecords

import (
	"context"
	"database/sql"
	"math"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// readPage returns the page of a query, whose text begins after WHERE. It has at most limit.Rows
// records, and ends with the record whose document reaches limit.Bytes in total. 0 means no limit.
func (s *Servers) readPage(ctx context.Context, q database.Query, limit database.Limit) (registrystore.Page, error) {
	if limit.Bytes == 0 {
		limit.Bytes = math.MaxInt
	}
	if limit.Rows > 0 {
		// One more row shows whether there are more. If a limit is only a placeholder, SQLite prepares
		// the statement again for each value.
		q.Text += " LIMIT CAST(? AS bigint)"
		q.Args = append(q.Args, limit.Rows+1)
	}
	return database.Collect(ctx, s.db, s.sql.Versions.Select(q, limit), func(rows *sql.Rows) (p registrystore.Page, err error) {
		p.Records, p.More, err = s.sql.Versions.Collect(rows, limit, parseFacts)
		return p, err
	})
}
