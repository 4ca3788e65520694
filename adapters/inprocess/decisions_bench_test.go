package inprocess_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/kindrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

// silent stores no events and reports nothing.
type silent struct{}

func (silent) RecordChanges(context.Context, ...audit.Change) error { return nil }
func (silent) Report(any)                                           {}

// BenchmarkDecideAmongChanges decides calls for ten seconds while five servers a second are published, in a
// registry of SERVERS (10,000) servers, and measures the first decision, how long decisions take, and when a
// quarantine holds.
//
//	SERVERS=300000 go test -run xxx -bench AmongChanges -benchtime 1x ./adapters/inprocess
func BenchmarkDecideAmongChanges(b *testing.B) {
	servers, _ := strconv.Atoi(os.Getenv("SERVERS"))
	for kind, open := range map[string]func() *relationaltest.Database{
		relationaltest.SQLite: func() *relationaltest.Database { return relationaltest.NewSQLite(b) },
		relationaltest.PostgreSQL: func() *relationaltest.Database {
			return relationaltest.OpenPostgres(b, postgrestest.NewEmpty(b))
		},
	} {
		b.Run(kind, func(b *testing.B) {
			db := open()
			_, err := db.Migrate(b.Context())
			must.Succeed(b, err)
			fillServers(b, db, kind, max(servers, 10_000))
			for b.Loop() {
				decideAmongChanges(b, db, kind)
			}
		})
	}
}

func decideAmongChanges(b *testing.B, db *relationaltest.Database, kind string) {
	b.Helper()
	stores := registryrecords.NewStores(db.DB, registryrecords.Config{})
	changes, end := registryrecords.WatchChanges(db.DB, stores)
	defer end()
	s := deciding.New(deciding.Config{StaleMax: time.Minute, Options: access.Options{Default: access.Allow}}, deciding.Ports{
		Rules: kindrecords.NewRules(db.DB), Servers: stores.Listings, Changes: changes, Recorder: silent{}, Reporter: silent{},
		Clock: system.Clock{}, Waiter: system.Clock{}, Entropy: system.Entropy{},
		Count: func(access.Decision) {}, Log: func(context.Context, *deciding.Question, *deciding.Answer) {},
	})
	decide := func() (access.Decision, error) {
		a, err := s.Decide(b.Context(), deciding.Question{
			Caller: authority.Caller{}, Call: access.NewCall("tools/call", "x"), From: netip.Addr{},
			Address: access.Address{Scheme: "https", Host: "s7.example.com", Path: "/mcp"},
		})
		return a.Decision, err
	}
	began := time.Now()
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { s.Follow(ctx) })
	for d, err := decide(); err != nil || d.Effect != access.Allow; d, err = decide() {
	}
	b.ReportMetric(time.Since(began).Seconds(), "s-first")
	running.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			must.Succeed(b, db.Execute(context.WithoutCancel(ctx), fmt.Sprintf("UPDATE remotes SET url = 'https://n%d.example/' WHERE name = 'com.example/s%06d'", n, 8+n%5000)))
			must.Succeed(b, db.Execute(context.WithoutCancel(ctx), fmt.Sprintf("UPDATE versions SET status_message = '%d' WHERE name = 'com.example/s%06d'", n, 8+n%5000)))
			time.Sleep(200 * time.Millisecond)
		}
	})
	var took []time.Duration
	for began = time.Now(); time.Since(began) < 10*time.Second; time.Sleep(2 * time.Millisecond) {
		at := time.Now()
		_, err := decide()
		must.Succeed(b, err)
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "ms-p99")
	must.Succeed(b, db.Execute(b.Context(), "UPDATE versions SET status = 'deleted' WHERE name = 'com.example/s000007'"))
	began = time.Now()
	for d, err := decide(); err != nil || d.Effect == access.Allow; d, err = decide() {
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/1e3, "ms-quarantine")
}

// fillServers stores servers with one version and one address each.
func fillServers(b *testing.B, db *relationaltest.Database, kind string, servers int) {
	b.Helper()
	at, latest, document, name := "now()", "true", `'\x7b7d'::bytea`, "'com.example/s' || lpad(CAST(i AS text), 6, '0')"
	from := fmt.Sprintf(" FROM generate_series(0, %d) AS n (i)", servers-1)
	if kind == relationaltest.SQLite {
		at, latest, document, name = "1767225600000000", "1", "x'7b7d'", "printf('com.example/s%06d', i)"
		from = fmt.Sprintf(" FROM (WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n)", servers-1)
	}
	db.Fill(b,
		"INSERT INTO servers (name) SELECT "+name+from,
		`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
			SELECT `+name+", '1.0.0', 'active', '', "+at+", "+at+", "+at+", "+latest+", "+document+from,
		"INSERT INTO remotes (name, version, url) SELECT "+name+", '1.0.0', 'https://s' || i || '.example.com/mcp'"+from,
	)
}
