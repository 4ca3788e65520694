package registryrecords_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// catalogueDocument returns the document of a server number: a title of some of its servers, and a
// description of a dozen words.
func catalogueDocument(i int) string {
	hash := uint64(i+7) * 0x9e3779b97f4a7c15
	words := make([]string, 12)
	for k := range words {
		words[k] = wordParts[(hash>>(k*4))%uint64(len(wordParts))]
	}
	title := ""
	if i%3 == 0 {
		title = strings.Join(words[:3], " ")
	}
	return fmt.Sprintf(`{"title":"%s","description":"%s","packages":[{"registryType":"%s","transport":{"type":"stdio"}}]}`,
		title, strings.Join(words, " "), []string{"npm", "pypi", "oci", "cargo"}[hash>>61%4])
}

func fillCatalogue(b *testing.B, db *relationaltest.Database, kind string, servers int) {
	b.Helper()
	at, flagged, document := "'2026-01-01T00:00:00Z'", "true", "convert_to(n.column2, 'UTF8')"
	if kind == relationaltest.SQLite {
		at, flagged, document = "1767225600000000", "1", "CAST(n.column2 AS BLOB)"
	}
	for first := 0; first < servers; first += 1000 {
		names, rows := make([]string, 0, 1000), make([]string, 0, 1000)
		for i := first; i < min(first+1000, servers); i++ {
			names = append(names, "('"+serverName(i)+"')")
			rows = append(rows, "('"+serverName(i)+"', '"+catalogueDocument(i)+"')")
		}
		for _, statement := range []string{
			"INSERT INTO servers (name) VALUES " + strings.Join(names, ","),
			`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
				SELECT n.column1, '1.0.0', 'active', '', ` + strings.Join([]string{at, at, at, flagged, document}, ", ") +
				" FROM (VALUES " + strings.Join(rows, ",") + ") AS n",
		} {
			must.Succeed(b, db.Execute(b.Context(), statement))
		}
	}
}

// BenchmarkCatalogue measures the first page of 30 servers of searches by words and facets, with
// its total, and how long it takes to index a server.
//
//	go test -run xxx -bench Catalogue ./adapters/relational/registryrecords -search-servers 100000
func BenchmarkCatalogue(b *testing.B) {
	forEachSize(b, func(b *testing.B, db *relationaltest.Database, kind string, n int) {
		fillCatalogue(b, db, kind, n)
		c := newStores(db).Catalogue
		began := time.Now()
		for more := true; more; {
			var err error
			if more, err = c.Index(b.Context(), 250); err != nil {
				b.Fatal(err)
			}
		}
		b.Logf("indexed in %v for each server", time.Since(began)/time.Duration(n))
		if kind == relationaltest.PostgreSQL {
			must.Succeed(b, db.Execute(b.Context(), "VACUUM ANALYZE"))
		}
		searchCatalogue(b, c)
	})
}

func searchCatalogue(b *testing.B, c registrystore.Catalogue) {
	b.Helper()
	for _, text := range []string{
		"", "e", "q", "zz", "mcp", "weather", "uptime", "weather map", "secure vault scan", "io.github", "nothing-has-this",
		"package:cargo", "weather package:cargo", "status:deprecated", "newest", "newest weather",
	} {
		b.Run(text, func(b *testing.B) {
			q := registrystore.Search{Limit: 30, Order: registrystore.ByFit}
			for _, w := range strings.Fields(text) {
				switch {
				case w == "newest":
					q.Order = registrystore.ByNewest
				case strings.Contains(w, ":"):
					q.Facets = append(q.Facets, registry.Facet(w))
				default:
					q.Words = append(q.Words, w)
				}
			}
			found := 0
			for b.Loop() {
				f, err := c.Find(b.Context(), q)
				must.Succeed(b, err)
				found = f.Total
			}
			b.ReportMetric(float64(found), "servers")
		})
	}
}
