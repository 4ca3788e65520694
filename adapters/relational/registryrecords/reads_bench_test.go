package registryrecords_test

import (
	"context"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// BenchmarkReads measures reads of a registry of 2,000 servers and their CPU time in this process,
// which does not include that of PostgreSQL.
//
//	go test -run xxx -bench Reads ./adapters/relational/registryrecords
func BenchmarkReads(b *testing.B) {
	const servers = 2000
	name, err := registry.ParseName(serverName(servers / 2))
	must.Succeed(b, err)
	list := func(q registrystore.Query) func(ctx context.Context, s *registryrecords.Servers) error {
		q.Bytes = 4 << 20
		return func(ctx context.Context, s *registryrecords.Servers) error {
			_, err := s.List(ctx, q)
			return err
		}
	}
	reads := []struct {
		name string
		read func(ctx context.Context, s *registryrecords.Servers) error
	}{
		{"get latest", func(ctx context.Context, s *registryrecords.Servers) error {
			_, err := s.Latest(ctx, name, false)
			return err
		}},
		{"list of 100", list(registrystore.Query{Limit: 100})},
		{"list of 30, latest", list(registrystore.Query{Limit: 30, LatestOnly: true})},
		{"search", list(registrystore.Query{Limit: 30, Search: "weather"})},
	}
	relationaltest.MeasureInEach(b, func(b *testing.B, db *relationaltest.Database) {
		fillNames(b, db, db.Kind(), servers)
		store := registryrecords.NewServers(db.DB, registryrecords.Config{})
		for _, r := range reads {
			b.Run(r.name, func(b *testing.B) {
				began := processCPU(b)
				for b.Loop() {
					must.Succeed(b, r.read(b.Context(), store))
				}
				b.ReportMetric(float64((processCPU(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	})
}
