package registryrecords_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// numberedServer is the SQL of the name of server n.i.
const numberedServer = "'com.example.o' || (n.i * 7919 % 10007) || CASE WHEN n.i % 100 = 0 THEN '/needle-' ELSE '/server-' END || n.i"

// insertServers returns the statements that add 10,000 servers with two versions each. One of a
// hundred servers has "needle" in its name.
func insertServers(kind string) []string {
	at, document, name, from := "now() - n.i * interval '1 minute'", "'{}'", numberedServer, numbers(kind, 10_000)
	if kind == relationaltest.SQLite {
		at, document = "1700000000000000 + n.i * 1000000", "CAST('{}' AS BLOB)"
	}
	return []string{
		"INSERT INTO servers (name) SELECT " + name + " FROM " + from,
		`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
			SELECT ` + name + ", v.version, 'active', '', " + at + ", " + at + publicationOffset(kind) + ", " + at +
			", v.version = '2.0.0', " + document + " FROM " + from +
			", (SELECT '1.0.0' AS version, 0 AS k UNION ALL SELECT '2.0.0', 1) AS v",
	}
}

// publicationOffset returns the difference between the publication times of the versions of a
// server.
func publicationOffset(kind string) string {
	if kind == relationaltest.SQLite {
		return " + v.k"
	}
	return " + v.k * interval '1 second'"
}

// indexedReads returns the reads that must not read a whole table.
func indexedReads(t *testing.T) map[string]func(ctx context.Context, s *registryrecords.Servers) error {
	t.Helper()
	name := parse(t, registry.ParseName, "com.example.o7919/server-1")
	version := parse(t, registry.ParseVersion, "1.0.0")
	list := func(q registrystore.Query) func(ctx context.Context, s *registryrecords.Servers) error {
		return func(ctx context.Context, s *registryrecords.Servers) error {
			found, err := s.List(ctx, q)
			if err == nil && len(found.Records) == 0 {
				t.Errorf("List(%+v) returned no records", q)
			}
			return err
		}
	}
	return map[string]func(ctx context.Context, s *registryrecords.Servers) error{
		"list":                list(registrystore.Query{Limit: 101}),
		"list, next page":     list(registrystore.Query{Limit: 101, AfterName: "com.example.o5", AfterVersion: "1"}),
		"list with deleted":   list(registrystore.Query{Limit: 101, Deleted: true}),
		"list of the latest":  list(registrystore.Query{Limit: 101, LatestOnly: true}),
		"list of one version": list(registrystore.Query{Limit: 101, Version: version}),
		"list of updates": list(registrystore.Query{
			Limit: 101, UpdatedSince: time.UnixMicro(1700000000000000 + 9990*1000000).UTC(),
		}),
		"search": list(registrystore.Query{Limit: 31, Search: "NEEDLE-1"}),
		"view":   list(registrystore.Query{Limit: 101, Names: someNames(t, 1)}),
		"view, next page": list(registrystore.Query{
			Limit: 101, Names: someNames(t, 1), AfterName: "com.example.o1001", AfterVersion: "1",
		}),
		"view of many ranges": list(registrystore.Query{Limit: 101, Names: someNames(t, 200)}),
		"view with deleted":   list(registrystore.Query{Limit: 101, Names: someNames(t, 20), Deleted: true}),
		"view of the latest":  list(registrystore.Query{Limit: 101, Names: someNames(t, 20), LatestOnly: true}),
		"view of one version": list(registrystore.Query{Limit: 101, Names: someNames(t, 20), Version: version}),
		"view, search":        list(registrystore.Query{Limit: 31, Names: someNames(t, 20), Search: "NEEDLE-1"}),
		"view, search, latest": list(registrystore.Query{
			Limit: 31, Names: someNames(t, 20), Search: "NEEDLE-1", LatestOnly: true,
		}),
		"view, search of few": list(registrystore.Query{Limit: 31, Names: someNames(t, 20), Search: "needle-100"}),
		"view that hides": list(registrystore.Query{
			Limit: 101, Names: someNames(t, 20), WithoutDeprecated: true,
		}),
		"hidden deprecated": list(registrystore.Query{Limit: 101, WithoutDeprecated: true}),
		"hidden deprecated, again": list(registrystore.Query{
			Limit: 101, WithoutDeprecated: true, Deleted: true, Names: someNames(t, 200),
		}),
		"view, updates": list(registrystore.Query{
			Limit: 101, Names: someNames(t, 200), UpdatedSince: time.UnixMicro(1700000000000000 + 9000*1000000).UTC(),
			Deleted: true,
		}),
		"behind deprecated ones": func(ctx context.Context, s *registryrecords.Servers) error {
			_, err := s.Undeprecated(ctx, []registry.Name{name, name})
			return err
		},
		"latest": func(ctx context.Context, s *registryrecords.Servers) error {
			_, err := s.Latest(ctx, name, false)
			return err
		},
		"version": func(ctx context.Context, s *registryrecords.Servers) error {
			_, err := s.Version(ctx, name, version, false)
			return err
		},
		"versions": func(ctx context.Context, s *registryrecords.Servers) error {
			_, err := s.Versions(ctx, registrystore.VersionsQuery{Name: name, Bytes: 4 << 20})
			return err
		},
		"versions, next page": func(ctx context.Context, s *registryrecords.Servers) error {
			_, err := s.Versions(ctx, registrystore.VersionsQuery{
				Name: name, Before: time.Now(), Limit: 10, Bytes: 1 << 20,
			})
			return err
		},
		"outline": func(ctx context.Context, s *registryrecords.Servers) error {
			_, err := s.Outline(ctx, name, false)
			return err
		},
	}
}

// someNames returns ranges with about half of the names: prefixes of three digits.
func someNames(t *testing.T, ranges int) []registry.NameRange {
	t.Helper()
	all := make([]registry.NameRange, 0, ranges)
	for i := range ranges {
		all = append(all, parse(t, registry.ParsePattern, fmt.Sprintf("com.example.o%d*", 100+i*900/ranges)).Range())
	}
	return all
}

// wholeTable matches a plan that reads all rows of a table, or sorts rows that an index has in
// order.
var wholeTable = map[string]*regexp.Regexp{
	relationaltest.PostgreSQL: regexp.MustCompile(`Seq Scan`),
	relationaltest.SQLite:     regexp.MustCompile(`SCAN (v|versions|servers)\b|AUTOMATIC`),
}

// TestPlans checks the plans of reads in one database with many rows of all kinds.
func TestPlans(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		kind := db.Kind()
		db.Fill(t, slices.Concat(insertServers(kind), insertReviews(kind), insertBacklog(kind), insertMirrored(kind),
			insertPolicies(kind), insertQuarantine(kind, 3000))...)
		if kind == relationaltest.PostgreSQL {
			db.Fill(t, "VACUUM ANALYZE")
		}
		for name, check := range map[string]func(t *testing.T, db *relationaltest.Database){
			"reads": checkPlansOfReads, "ranges": checkPlansOfRanges, "reviews": checkPlansOfReviews,
			"backlogs": checkPlansOfBacklogs, "mirrored": checkPlansOfMirrored,
			"policies": checkPlansOfPolicies, "quarantine": checkPlansOfQuarantine,
		} {
			t.Run(name, func(t *testing.T) { check(t, db) })
		}
	})
}

// checkPlansOfReads checks the plans of all queries of the reads.
func checkPlansOfReads(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
	for name, read := range indexedReads(t) {
		plans, err := db.Plans(t.Context(), func(ctx context.Context) error { return read(ctx, servers) })
		if err != nil || len(plans) == 0 {
			t.Fatalf("%s: %d plans, %v", name, len(plans), err)
		}
		for query, plan := range plans {
			if wholeTable[db.Kind()].MatchString(plan) {
				t.Errorf("%s reads a whole table:\n%s\n%s", name, query, plan)
			}
		}
	}
}

// checkPlansOfRanges checks that the first rows of one range of names are compared alone, although
// an index would have all rows of the range in the same order.
func checkPlansOfRanges(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	servers, names := registryrecords.NewServers(db.DB, registryrecords.Config{}), someNames(t, 1)
	names[0].From, names[0].Below = "com.example.o1", "com.example.o9"
	read := func(ctx context.Context) error {
		_, err := servers.List(ctx, registrystore.Query{
			Limit: 30, Names: names, UpdatedSince: time.Now().AddDate(100, 0, 0), Deleted: true,
		})
		return err
	}
	plans, err := db.Plans(t.Context(), read)
	must.Succeed(t, err)
	for query := range plans {
		if strings.Contains(query, "updated_at") && strings.Contains(query, "v.name < 'com.example.o9'") &&
			!strings.Contains(query, "CASE WHEN v.name") {
			t.Errorf("it compares the rows of the whole range:\n%s", query)
		}
	}
}
