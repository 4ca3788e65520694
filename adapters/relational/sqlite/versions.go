package sqlite

import (
	"database/sql"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// versionRows reads a row for each version.
type versionRows struct{}

var _ database.VersionEncoding = versionRows{}

// Select implements database.VersionEncoding.
func (versionRows) Select(q database.Query, _ database.Limit) database.Query {
	q.Text = "SELECT " + database.FactsOfVersion + ", v.document FROM versions AS v WHERE " + q.Text
	return q
}

// Collect implements database.VersionEncoding. It does not read the rows after the limit.
func (versionRows) Collect(rows *sql.Rows, limit database.Limit, parse database.FactsParser) (all []registry.Record, more bool, err error) {
	size := 0
	for rows.Next() {
		if size >= limit.Bytes || limit.Rows > 0 && len(all) == limit.Rows {
			return all, true, nil
		}
		var facts string
		var r registry.Record
		if err := rows.Scan(&facts, &r.Document); err != nil {
			return nil, false, err
		}
		if r.Release, err = parse(facts); err != nil {
			return nil, false, err
		}
		all = append(all, r)
		size += len(r.Document)
	}
	return all, false, nil
}
