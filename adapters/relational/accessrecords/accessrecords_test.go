package accessrecords_test

import (
	"os"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/accessrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/accessstore/accessstoretest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Run(m)) }

func TestRules(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			accessstoretest.Run(t, func(t *testing.T) accessstoretest.Opened {
				opened := open(t)
				return accessstoretest.Opened{
					Rules: accessrecords.NewRules(opened.DB), Runner: opened.DB,
					Revision: func(t *testing.T) (n int64) {
						q := database.Query{Text: "SELECT CAST(sum(access) AS bigint) FROM registry_changes"}
						if err := opened.ScanRow(t.Context(), q, &n); err != nil {
							t.Fatal(err)
						}
						return n
					},
				}
			})
		})
	}
}
