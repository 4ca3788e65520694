package registryrecords_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// The number of servers of the crowded registry in tests. A fifth of the active ones, which sort
// last, are more than a page reads with an index.
const (
	crowdActive  = 30_000
	crowdDeleted = 20_000
)

// manyDeleted is a server with three active versions and more than a thousand deleted ones.
const manyDeleted = "org.zebra/deleted"

// insertCrowdWithManyVersions returns the statements that add the crowded registry, in which most
// servers that sort first are deleted.
func insertCrowdWithManyVersions(kind string) []string {
	at, document := wordsOf(kind).at, "'{}'"
	if kind == relationaltest.SQLite {
		document = "CAST('{}' AS BLOB)"
	}
	statements := append([]string{
		"INSERT INTO servers (name) VALUES ('" + manyDeleted + "')",
		`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
			SELECT '` + manyDeleted + "', CAST(n.i AS text), CASE WHEN n.i > 3 THEN 'deleted' ELSE 'active' END, '', " +
			strings.Join([]string{at, at, at, "n.i = 1", document}, ", ") + " FROM " + numbers(kind, 1500),
	}, insertCrowd(kind, crowdActive, crowdDeleted)...)
	if kind == relationaltest.PostgreSQL {
		statements = append(statements, "VACUUM ANALYZE") // now, and not whenever the server does it
	}
	return statements
}

// TestCrowdedRegistry reads one crowded registry.
func TestCrowdedRegistry(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		db.Fill(t, insertCrowdWithManyVersions(db.Kind())...)
		for name, check := range map[string]func(t *testing.T, db *relationaltest.Database){
			"reads skip deleted rows": skipsDeletedRows, "pages add up": addsPagesUp, "first search": searchesFirst,
		} {
			t.Run(name, func(t *testing.T) { check(t, db) })
		}
	})
}

// historyStart is when the first versions of the crowded registry were updated.
var historyStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// crowdedRead is a read of the crowded registry.
type crowdedRead struct {
	read  func(ctx context.Context, s *registryrecords.Servers) (int, error) // returns how many records it found
	least int                                                                // records that it must find
	// rows that PostgreSQL may read in vain or without an index
	most int
	// the index with which SQLite must find the rows
	index string
}

func crowdedReads(t *testing.T) map[string]crowdedRead {
	t.Helper()
	name, one := parse(t, registry.ParseName, manyDeleted), parse(t, registry.ParseVersion, "1.0.0")
	list := func(q registrystore.Query) func(ctx context.Context, s *registryrecords.Servers) (int, error) {
		q.Limit, q.Bytes = 30, 4<<20
		return func(ctx context.Context, s *registryrecords.Servers) (int, error) {
			p, err := s.List(ctx, q)
			return len(p.Records), err
		}
	}
	since := func(i int) time.Time { return historyStart.Add(time.Duration(i) * time.Second) }
	const near = 128 + 1
	return map[string]crowdedRead{
		"list": {list(registrystore.Query{}), 30, 0, "versions_living "},
		"next page": {
			list(registrystore.Query{AfterName: "com.example.o5", AfterVersion: "1"}), 30, 0, "versions_living ",
		},
		"list with deleted": {
			list(registrystore.Query{Deleted: true}), 30, 0, "versions_1|sqlite_autoindex_versions_1 ",
		},
		"latest": {list(registrystore.Query{LatestOnly: true}), 30, 0, "versions_living_latest "},
		"latest, next page": {
			list(registrystore.Query{LatestOnly: true, AfterName: "com.example.o5", AfterVersion: "1"}), 30, 0,
			"versions_living_latest ",
		},
		"one version": {list(registrystore.Query{Version: one}), 30, 0, "versions_living_by_version "},

		"search of 1, common": {list(registrystore.Query{Search: "e"}), 30, near, "versions_living "},
		"search of 1, rare":   {list(registrystore.Query{Search: "Q"}), 30, 2 * near, `versions_living \(name=`},
		"search of 2, rare":   {list(registrystore.Query{Search: "zz"}), 20, 2 * near, `versions_living \(name=`},
		"search of 3, common": {list(registrystore.Query{Search: "ver"}), 30, near, "versions_living "},
		"search of 3, rare":   {list(registrystore.Query{Search: "uzz"}), 20, 2 * near, `versions_living \(name=`},
		"search of 5, rare":   {list(registrystore.Query{Search: "Fuzz-"}), 20, 2 * near, `versions_living \(name=`},
		"search without a match": {
			list(registrystore.Query{Search: "jj"}), 0, 2 * near, "servers USING INTEGER PRIMARY KEY",
		},
		"search, latest": {
			list(registrystore.Query{Search: "zz", LatestOnly: true}), 20, 2 * near, `versions_one_latest \(name=`,
		},
		"search, one version": {
			list(registrystore.Query{Search: "zz", Version: one}), 20, 2 * near,
			`versions_living_by_version \(version=\? AND name=`,
		},
		"search, many deleted": {list(registrystore.Query{Search: manyDeleted}), 3, 2 * near, "versions_living "},
		"search, many, latest": {
			list(registrystore.Query{Search: manyDeleted, LatestOnly: true}), 1, 2 * near, "versions_one_latest ",
		},
		"search with deleted": {
			list(registrystore.Query{Search: "zz", Deleted: true}), 20, 2 * near, `sqlite_autoindex_versions_1 \(name=`,
		},
		"search in a server": {
			list(registrystore.Query{Search: manyDeleted, Deleted: true, AfterName: manyDeleted, AfterVersion: "1"}),
			30, near, "sqlite_autoindex_versions_1 ",
		},
		"search in a server without a match": {
			list(registrystore.Query{Search: "server", Deleted: true, AfterName: manyDeleted, AfterVersion: "1"}), 0,
			near + 2*(crowdActive+crowdDeleted), // the index has the names before the page too
			"servers USING INTEGER PRIMARY KEY",
		},
		"search of late names": {
			list(registrystore.Query{Search: "org."}), 0, near + registryrecords.FarRows + 1, "versions_living ",
		},
		"updates, few": {
			list(registrystore.Query{UpdatedSince: since(crowdActive - 10), Deleted: true}), 9, near,
			"versions_by_update ",
		},
		"updates of late names": {
			list(registrystore.Query{UpdatedSince: since(crowdDeleted), Deleted: true}), 0,
			near + registryrecords.FarRows + registryrecords.FewRows + 2, "sqlite_autoindex_versions_1 ",
		},
		"versions":                 {countVersions(name), 3, 0, "versions_living_by_publication "},
		"versions, outline":        {countOutline(name), 3, 0, "versions_living_by_publication "},
		"latest version of server": {findLatest(name), 1, 0, "versions_one_latest "},
	}
}

func countVersions(name registry.Name) func(ctx context.Context, s *registryrecords.Servers) (int, error) {
	return func(ctx context.Context, s *registryrecords.Servers) (int, error) {
		p, err := s.Versions(ctx, registrystore.VersionsQuery{Name: name, Bytes: 4 << 20})
		return len(p.Records), err
	}
}

func countOutline(name registry.Name) func(ctx context.Context, s *registryrecords.Servers) (int, error) {
	return func(ctx context.Context, s *registryrecords.Servers) (int, error) {
		all, err := s.Outline(ctx, name, false)
		return len(all), err
	}
}

func findLatest(name registry.Name) func(ctx context.Context, s *registryrecords.Servers) (int, error) {
	return func(ctx context.Context, s *registryrecords.Servers) (int, error) {
		_, err := s.Latest(ctx, name, false)
		return 1, err
	}
}

// skipsDeletedRows checks the plans of all reads of a registry with many deleted versions.
func skipsDeletedRows(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
	for name, r := range crowdedReads(t) {
		t.Run(name, func(t *testing.T) {
			read := func(ctx context.Context) error {
				n, err := r.read(ctx, servers)
				if err == nil && n < r.least {
					t.Errorf("it finds %d records, want %d or more", n, r.least)
				}
				return err
			}
			if db.Kind() == relationaltest.SQLite {
				requireIndex(t, db, read, r.index)
				return
			}
			requireNoMoreRows(t, db, read, false, r.most)
			if r.most == 0 { // it is prepared
				requireNoMoreRows(t, db, read, true, 0)
			}
		})
	}
}

// deletedToo matches a plan of SQLite that uses an index with deleted rows, except to find one
// name.
var deletedToo = regexp.MustCompile(`sqlite_autoindex_versions|versions_one_latest \(name>|versions_by_`)

// requireIndex checks that SQLite finds all rows with an index, and that one query uses the index
// of this name.
func requireIndex(t *testing.T, db *relationaltest.Database, read func(ctx context.Context) error, index string) {
	t.Helper()
	plans, err := db.Plans(t.Context(), read)
	must.Succeed(t, err)
	used, by := false, regexp.MustCompile(index)
	for query, plan := range plans {
		if wholeTable[relationaltest.SQLite].MatchString(plan) {
			t.Errorf("it reads a whole table:\n%s\n%s", query, plan)
		}
		if strings.Contains(query, "'deleted'") && deletedToo.MatchString(plan) {
			t.Errorf("it reads deleted rows:\n%s\n%s", query, plan)
		}
		used = used || by.MatchString(plan+" ")
	}
	if !used {
		t.Errorf("it does not use %s:\n%v", index, plans)
	}
}

// wastedRows matches the number of rows that a step read and did not return, or read without an
// index. A limit may end a scan of a table early.
var wastedRows = regexp.MustCompile(
	`(?:Rows Removed by (?:Filter|Index Recheck|Join Filter): |Seq Scan on .*actual rows=)(\d+)`)

// requireNoMoreRows checks that PostgreSQL wastes at most this many rows.
func requireNoMoreRows(
	t *testing.T, db *relationaltest.Database, read func(ctx context.Context) error, generic bool, most int,
) {
	t.Helper()
	plans, err := db.Executions(t.Context(), generic, read)
	must.Succeed(t, err)
	wasted := 0
	for _, plan := range plans {
		for _, found := range wastedRows.FindAllStringSubmatch(plan, -1) {
			n, err := strconv.Atoi(found[1])
			must.Succeed(t, err)
			wasted += n
		}
	}
	if wasted > most {
		t.Errorf("it reads %d rows in vain or without an index, want %d at most:\n%v", wasted, most, plans)
	}
}

// addsPagesUp reads all pages of searches and of lists of updates, some of which end early, and
// checks that they have each record once and in order.
func addsPagesUp(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	early, servers := 0, registryrecords.NewServers(db.DB, registryrecords.Config{})
	var withDeleted []registry.Record
	for _, scope := range []registrystore.Query{
		{}, {Deleted: true}, {LatestOnly: true}, {Version: parse(t, registry.ParseVersion, "1.0.0")},
	} {
		all, _ := readAllPages(t, servers, scope)
		if scope.Deleted {
			withDeleted = all
		}
		for _, search := range []string{"Q", "zz", "jj", "uzz", "org.", manyDeleted} {
			q := scope
			q.Search = search
			got, short := readAllPages(t, servers, q)
			early += short
			requireSame(t, q, got, all, func(r registry.Record) bool {
				return strings.Contains(strings.ToLower(r.Name.String()), strings.ToLower(search))
			})
		}
	}
	for _, i := range []int{crowdActive - 10, crowdDeleted, 100} {
		q := registrystore.Query{Deleted: true, UpdatedSince: historyStart.Add(time.Duration(i) * time.Second)}
		got, short := readAllPages(t, servers, q)
		early += short
		requireSame(t, q, got, withDeleted, func(r registry.Record) bool { return r.UpdatedAt.After(q.UpdatedSince) })
	}
	if early == 0 {
		t.Error("no page ends early")
	}
}

// searchesFirst searches with several callers at once before the names are in memory.
func searchesFirst(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := servers.List(ended, registrystore.Query{Search: "fuzz-", Limit: 100}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("List with a cancelled context returned %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p, err := servers.List(t.Context(), registrystore.Query{Search: "fuzz-", Limit: 100})
			if err != nil || len(p.Records) != 20 || p.More {
				t.Errorf("the search finds %d records, more: %v, %v; want 20", len(p.Records), p.More, err)
			}
		})
	}
	all.Wait()
}

// readAllPages returns the records of all pages, and how many pages ended early.
func readAllPages(
	t *testing.T, servers *registryrecords.Servers, q registrystore.Query,
) (all []registry.Record, early int) {
	t.Helper()
	for q.Limit = 1000; ; {
		p, err := servers.List(t.Context(), q)
		must.Succeed(t, err)
		all = append(all, p.Records...)
		if p.More && len(p.Records) < q.Limit {
			early++
		}
		if !p.More {
			return all, early
		}
		q.AfterName, q.AfterVersion = p.End()
	}
}

// requireSame checks that got has the wanted records of all, in the same order.
func requireSame(t *testing.T, q registrystore.Query, got, all []registry.Record, wanted func(registry.Record) bool) {
	t.Helper()
	n := 0
	for _, r := range all {
		switch {
		case !wanted(r):
			continue
		case n == len(got) || got[n].Name != r.Name || got[n].Version != r.Version:
			t.Fatalf("%+v has no %s@%s as number %d of %d", q, r.Name, r.Version, n, len(got))
		}
		n++
	}
	if n != len(got) {
		t.Errorf("%+v has %d records, want %d", q, len(got), n)
	}
}
