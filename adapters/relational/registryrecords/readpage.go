package registryrecords

import (
	"context"
	"database/sql"
	"math"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// pageLimit limits the versions that a query reads.
type pageLimit struct {
	rows  int // most records; 0 means no limit
	bytes int // the records end with the one whose document reaches this number of bytes in total
}

// versionCollector returns the records of rows up to the limit, and whether there are more.
type versionCollector func(rows *sql.Rows, limit pageLimit) (records []registry.Record, more bool, err error)

// readPage returns the page of a query, whose text begins after WHERE. It has at most limit.rows
// records, and ends with the record whose document reaches limit.bytes in total. 0 means no limit.
func (s *Servers) readPage(ctx context.Context, q database.Query, limit pageLimit) (registrystore.Page, error) {
	if limit.bytes == 0 {
		limit.bytes = math.MaxInt
	}
	if limit.rows > 0 {
		// One more row shows whether there are more. If a limit is only a placeholder, SQLite
		// prepares the statement again for each value.
		q.Text += " LIMIT CAST(? AS bigint)"
		q.Args = append(q.Args, limit.rows+1)
	}
	return database.Collect(ctx, s.db, s.sql.selectVersions(q, limit),
		func(rows *sql.Rows) (p registrystore.Page, err error) {
			p.Records, p.More, err = s.sql.collectVersions(rows, limit)
			return p, err
		})
}
