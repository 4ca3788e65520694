package kindrecords_test

import (
	"os"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/kindrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/accessstore/accessstoretest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Run(m)) }

func TestRules(t *testing.T) {
	relationaltest.RunContract(t, accessstoretest.Run,
		func(_ *testing.T, db *relationaltest.Database) accessstoretest.Opened {
			return accessstoretest.Opened{
				Rules: kindrecords.NewRules(db.DB), Runner: db.DB,
				Revision: func(t *testing.T) (n int64) {
					q := database.Query{Text: "SELECT CAST(sum(access) AS bigint) FROM registry_changes"}
					must.Succeed(t, db.ScanRow(t.Context(), q, &n))
					return n
				},
			}
		})
}
