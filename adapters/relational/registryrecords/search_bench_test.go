package registryrecords_test

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

var searchServers = flag.String("search-servers", "500,50000",
	"numbers of servers in benchmarks of searches, separated by commas")

// wordParts are parts of the names of servers in a public registry.
var wordParts = strings.Fields(`mcp server weather github agent tools search data cloud image mail calendar finance notes graph memory
	browser docker kube sql lite vector chat voice code review test deploy monitor log trace stock crypto travel hotel map route
	music video photo pdf excel sheet slide drive file disk cache queue event stream secure auth token vault scan audit`)

// serverName returns the name of a server number, in the form of names of a public registry. Four
// of ten namespaces are of GitHub. One of 250 servers has "uptime" in its name.
func serverName(i int) string {
	hash := uint64(i+1) * 0x9e3779b97f4a7c15 // spreads the numbers
	word := func(shift uint) string { return wordParts[(hash>>shift)%uint64(len(wordParts))] }
	space := [...]string{
		"io.github.", "io.github.", "io.github.", "io.github.", "com.", "ai.", "dev.", "com.", "app.", "org.",
	}[hash>>60%10]
	name := word(40) + "-" + word(50)
	if i%250 == 100 {
		name = "uptime-" + name
	}
	if hash>>33&3 == 0 {
		name = "mcp-" + name
	}
	return fmt.Sprintf("%s%s%s%d/%s", space, word(10), word(20), i, name)
}

// fillNames adds servers with one version of 700 bytes each. The first thousand are added one by
// one, as by publications.
func fillNames(b *testing.B, db *relationaltest.Database, kind string, servers int) {
	b.Helper()
	document, at, flagged := "convert_to('{\"description\":\"' || repeat('x', 680) || '\"}', 'UTF8')",
		"'2026-01-01T00:00:00Z'", "true"
	if kind == relationaltest.SQLite {
		document, at, flagged = "CAST(printf('{\"description\":\"%.*c\"}', 680, 'x') AS BLOB)", "1767225600000000", "1"
	}
	for first := 0; first < servers; {
		until := first + 1
		if first >= 1000 {
			until = min(first+1000, servers)
		}
		names := make([]string, 0, until-first)
		for i := first; i < until; i++ {
			names = append(names, "('"+serverName(i)+"')")
		}
		values := strings.Join(names, ",")
		for _, statement := range []string{
			"INSERT INTO servers (name) VALUES " + values,
			`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
				SELECT n.column1, '1.0.0', 'active', '', ` + strings.Join([]string{at, at, at, flagged, document},
				", ") + " FROM (VALUES " + values + ") AS n",
		} {
			must.Succeed(b, db.Execute(b.Context(), statement))
		}
		first = until
	}
	if kind == relationaltest.PostgreSQL {
		must.Succeed(b, db.Execute(b.Context(), "VACUUM ANALYZE"))
	}
}

// processCPU returns the CPU time that the process has used.
func processCPU(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	must.Succeed(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkSearch measures the first page of 30 records of searches of 1 to 20 characters, for
// frequent and rare texts, and their CPU time in this process.
//
//	go test -run xxx -bench Search ./adapters/relational/registryrecords
func BenchmarkSearch(b *testing.B) {
	forEachSize(b, func(b *testing.B, db *relationaltest.Database, kind string, n int) {
		fillNames(b, db, kind, n)
		servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
		b.Run("first search", func(b *testing.B) {
			for b.Loop() {
				first := registryrecords.NewServers(db.DB, registryrecords.Config{})
				if _, err := first.List(b.Context(), registrystore.Query{
					Search: "weather", Limit: 30, Bytes: 4 << 20,
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, text := range []string{
			"e", "q", "_", "mc", "zz", "sql", "weather", "github", "uptime", "uptime-weather", "weather-uptime",
			"io.github.weather",
			"server-weather-agent", "monitor-deploy/audit", serverName(n / 2)[:min(20, len(serverName(n/2)))],
		} {
			b.Run(text, func(b *testing.B) { searchRepeatedly(b, servers, text) })
		}
	})
}

// forEachSize runs a benchmark with an empty database of each kind for each number of servers.
func forEachSize(b *testing.B, run func(b *testing.B, db *relationaltest.Database, kind string, n int)) {
	b.Helper()
	for size := range strings.SplitSeq(*searchServers, ",") {
		n, err := strconv.Atoi(size)
		must.Succeed(b, err)
		b.Run(size, func(b *testing.B) {
			relationaltest.MeasureInEach(b, func(b *testing.B, db *relationaltest.Database) {
				run(b, db, db.Kind(), n)
			})
		})
	}
}

func searchRepeatedly(b *testing.B, servers *registryrecords.Servers, text string) {
	b.Helper()
	q := registrystore.Query{Search: text, Limit: 30, Bytes: 4 << 20}
	found, err := servers.List(b.Context(), q)
	must.Succeed(b, err)
	began := processCPU(b)
	for b.Loop() {
		if _, err := servers.List(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processCPU(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(len(found.Records)), "records")
}
