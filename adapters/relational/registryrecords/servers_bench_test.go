package registryrecords_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	livingServers  = flag.Int("living-servers", 200_000, "number of active servers in benchmarks of the registry")
	deletedServers = flag.Int("deleted-servers", 300_000,
		"number of deleted servers in benchmarks of the registry; their names sort first")
)

// serverPart is how many servers one statement adds.
const serverPart = 20_000

// insertCrowd returns the statements that add servers with one version each: deleted ones, whose
// names sort first, and active ones, of which the last fifth are in org.example. One of 100 active
// servers has a q in its name. 20 have "zz" in their name, and all of these are in org.example.
func insertCrowd(kind string, living, deleted int) []string {
	var statements []string
	add := func(first, last int, name, status string) {
		for ; first < last; first += serverPart {
			until := min(first+serverPart, last)
			numbers, at := fmt.Sprintf("generate_series(%d, %d) AS n (i)", first, until-1),
				"'2026-01-01T00:00:00Z'::timestamptz + n.i * interval '1 second'"
			document, flagged := "convert_to('{\"description\":\"' || repeat('x', 500) || '\"}', 'UTF8')", "true"
			if kind == relationaltest.SQLite {
				numbers = fmt.Sprintf(
					"(WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n) AS n", first, until-1)
				at, document, flagged = "1767225600000000 + n.i * 1000000",
					"CAST(printf('{\"description\":\"%.*c\"}', 500, 'x') AS BLOB)", "1"
			}
			statements = append(statements,
				"INSERT INTO servers (name) SELECT "+name+" FROM "+numbers,
				`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
					SELECT `+name+", '1.0.0', '"+status+"', '', "+at+", "+at+", "+at+", "+flagged+", "+document+
					" FROM "+numbers)
		}
	}
	add(0, deleted, "'aa.gone.o' || (n.i % 100003 * 7919 % 100003) || '/server-' || n.i", "deleted")
	add(0, living-living/5,
		"'com.example.o' || (n.i % 100003 * 7919 % 100003) || CASE WHEN n.i % 100 = 0 THEN '/query-' ELSE '/server-' END || n.i", "active")
	add(living-living/5, living,
		fmt.Sprintf("'org.example.o' || (n.i %% 100003 * 7919 %% 100003) || CASE WHEN n.i %% %d = 0 THEN '/fuzz-' WHEN n.i %% 100 = 0 THEN '/query-' ELSE '/server-' END || n.i",
			max(1, living/100)), "active")
	if kind == relationaltest.PostgreSQL {
		return append(statements, "VACUUM ANALYZE servers", "VACUUM ANALYZE versions")
	}
	return statements
}

func crowdedRegistry(b *testing.B, kind string, db *relationaltest.Database) *registryrecords.Servers {
	b.Helper()
	began := time.Now()
	db.Fill(b, insertCrowd(kind, *livingServers, *deletedServers)...)
	b.Logf("filled in %v", time.Since(began))
	return registryrecords.NewServers(db.DB, registryrecords.Config{})
}

// callersAtOnce is the number of parallel callers in the benchmark of a crowded registry.
const callersAtOnce = 40

// BenchmarkCrowdedRegistry measures pages of 30 records, for one caller and for 40 parallel
// callers, and publications, in a registry with more deleted servers than active ones.
//
//	go test -run xxx -bench CrowdedRegistry ./adapters/relational/registryrecords
func BenchmarkCrowdedRegistry(b *testing.B) {
	relationaltest.MeasureInEach(b, func(b *testing.B, db *relationaltest.Database) {
		servers := crowdedRegistry(b, db.Kind(), db)
		for _, c := range []struct {
			name string
			registrystore.Query
		}{
			{"first page", registrystore.Query{}},
			{"middle page", registrystore.Query{AfterName: "com.example.o5", AfterVersion: "1"}},
			{"latest", registrystore.Query{LatestOnly: true}},
			{"with deleted", registrystore.Query{Deleted: true}},
			{"view", registrystore.Query{Names: benchRanges(b, "org.example.*")}},
			{"view, latest", registrystore.Query{Names: benchRanges(b, "org.example.*"), LatestOnly: true}},
			{"view of 100 prefixes", registrystore.Query{Names: benchRanges(b, manyPrefixes()...)}},
			{
				"view that hides", registrystore.Query{
					Names: benchRanges(b, "org.example.*"), WithoutDeprecated: true,
				},
			},
			{"view, search zz", registrystore.Query{Names: benchRanges(b, "org.example.*"), Search: "zz"}},
			{
				"view, search common", registrystore.Query{
					Names: benchRanges(b, manyPrefixes()...), Search: "server",
				},
			},
			{"view, updated since", registrystore.Query{
				Names:        benchRanges(b, manyPrefixes()...),
				UpdatedSince: historyStart.Add(time.Second * time.Duration(*livingServers*9/10)), Deleted: true,
			}},
			{"search q", registrystore.Query{Search: "q"}},
			{"search zz", registrystore.Query{Search: "zz"}},
			{"search rare", registrystore.Query{Search: "fuzz-"}},
			{"search none", registrystore.Query{Search: "jjj"}},
			{"search common", registrystore.Query{Search: "server"}},
			{"search late", registrystore.Query{Search: "org."}},
			{"search with deleted", registrystore.Query{Search: "zz", Deleted: true}},
			{
				"updated since", registrystore.Query{
					UpdatedSince: historyStart.Add(time.Second * time.Duration(*deletedServers-1000)),
					Deleted:      true,
				},
			},
			{
				"updated since, late", registrystore.Query{
					UpdatedSince: historyStart.Add(time.Second * time.Duration(*livingServers*9/10)), Deleted: true,
					AfterName: "b",
				},
			},
		} {
			c.Limit, c.Bytes = 30, 4<<20
			for _, callers := range []int{1, callersAtOnce} {
				b.Run(fmt.Sprintf("%s/%d", c.name, callers), func(b *testing.B) {
					listRepeatedly(b, servers, c.Query, callers)
				})
			}
		}
		b.Run("publish a server", func(b *testing.B) { publishRepeatedly(b, db, servers, true) })
		b.Run("publish a version", func(b *testing.B) { publishRepeatedly(b, db, servers, false) })
	})
}

// benchRanges returns the ranges of patterns, which must be in order.
func benchRanges(b *testing.B, patterns ...string) []registry.NameRange {
	b.Helper()
	all := make([]registry.NameRange, 0, len(patterns))
	for _, s := range patterns {
		p, err := registry.ParsePattern(s)
		must.Succeed(b, err)
		all = append(all, p.Range())
	}
	return all
}

// manyPrefixes returns 100 patterns, each of a few servers.
func manyPrefixes() []string {
	all := make([]string, 0, 100)
	for i := range 100 {
		all = append(all, fmt.Sprintf("com.example.o%d/*", 10_000+i*800))
	}
	return all
}

// listRepeatedly reads a page with parallel callers.
func listRepeatedly(b *testing.B, servers *registryrecords.Servers, q registrystore.Query, callers int) {
	b.Helper()
	found := 0
	for b.Loop() {
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				p, err := servers.List(b.Context(), q)
				if err != nil {
					b.Error(err)
				}
				if callers == 1 {
					found = len(p.Records)
				}
			})
		}
		all.Wait()
	}
	if callers == 1 {
		b.ReportMetric(float64(found), "records")
	}
}

// publishRepeatedly publishes one version after the other, of a new server each time or all of one
// server.
func publishRepeatedly(b *testing.B, db *relationaltest.Database, servers *registryrecords.Servers, serverEach bool) {
	b.Helper()
	for n := 0; b.Loop(); n++ {
		at, server := time.Now(), "com.example.new/server"
		if serverEach {
			server = fmt.Sprintf("com.example.o%d/server-%d", n*7919%100003, at.UnixNano())
		}
		name, err := registry.ParseName(server)
		must.Succeed(b, err)
		version, err := registry.ParseVersion(fmt.Sprintf("1.%d.0", at.UnixNano()))
		must.Succeed(b, err)
		change := registrystore.Change{
			Release: registry.Release{
				Name: name, Version: version, Status: registry.StatusActive, Latest: serverEach, StatusChangedAt: at,
				PublishedAt: at, UpdatedAt: at,
			},
			Document: []byte(`{"description":"a server"}`),
		}
		err = db.Atomically(b.Context(), func(ctx context.Context) error {
			if _, err := servers.Lock(ctx, name); err != nil {
				return err
			}
			return servers.Save(ctx, []registrystore.Change{change})
		})
		must.Succeed(b, err)
	}
}
