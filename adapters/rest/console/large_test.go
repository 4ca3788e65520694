package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// The greatest size of a page in bytes, and the least of a document that is not shown whole.
const (
	largePage     = 100 << 10
	largeDocument = 200 << 10
)

// largeSite returns the size of the site of TestLargeSite.
func largeSite() (servers, events int) {
	if testing.Short() {
		return 1000, 10_000
	}
	return 5000, 100_000
}

// TestLargeSite opens each page of a site with many servers and audit events: no page is larger
// than largePage. The test says how long the service takes for each, with -v.
func TestLargeSite(t *testing.T) {
	servers, events := largeSite()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		importServers(t, e, servers)
		s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *", "review *")
		recordEvents(t, e, s, ada, events)
		submitted := submitLarge(t, e, s, ada)
		b := newBrowser(t, s)
		b.signIn(ada)
		b.open("/console/step-up", http.StatusOK)
		b.verify(e, ada, http.StatusOK)
		o := newOperator(t, e, s)
		for _, page := range []string{
			"/", "/?q=server-09", "/?page=30", "/connect", "/?status=active&remote=true&package=npm", "/servers/com.example/server-0500",
			"/sign-in", "/account", "/account/password",
			"/account/authenticator", "/account/log", "/account/log?offset=5000", "/publish", "/own",
			"/own/com.example/server-0500", "/reviews", "/quarantine",
			"/servers/com.example/large",
		} {
			measurePage(t, b, "/console"+page)
		}
		b.open("/console/reviews/"+submitted, http.StatusOK) // which has everything, however long
		b.wantNoText("leaves something out")
		b.open("/console/reviews/"+submitted+"/document", http.StatusOK)
		if !json.Valid([]byte(b.page.body)) || len(b.page.body) < largeDocument {
			t.Errorf("the whole document has %d bytes", len(b.page.body))
		}
		for _, page := range append([]string{
			"/people/ada@example.com", "/log?email=ada@example.com&offset=9000", "/log?type=DEVICE_CHANGE", "/log?server=com.example/server-0500", "/people?q=ada",
		}, operatorPages...) {
			measurePage(t, o, "/console/operator"+page)
		}
	})
}

// measurePage opens a page three times, checks its size, and logs the first and the least time.
func measurePage(t *testing.T, b *browser, path string) {
	t.Helper()
	var first, least time.Duration
	for n := range 3 {
		began := time.Now()
		b.open(path, http.StatusOK)
		took := time.Since(began)
		if n == 0 {
			first, least = took, took
		}
		least = min(least, took)
	}
	b.wantPath(path)
	if size := len(b.page.body); size > largePage {
		t.Errorf("%s has %d bytes", path, size)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	t.Logf("%-60s %6.1f ms, first %6.1f ms %4d KB", path, ms(least), ms(first), len(b.page.body)>>10)
}

// importServers imports servers with a package and a remote each, and one with many versions.
func importServers(t *testing.T, e *fixture.Environment, servers int) {
	t.Helper()
	var list struct {
		Servers []map[string]any `json:"servers"`
	}
	add := func(name, version string) {
		doc := fixture.NewServerDocument(name, version)
		doc["packages"] = []map[string]any{{
			"registryType": "npm", "identifier": "@example/" + name[strings.LastIndex(name, "/")+1:],
			"version":   "1.0.0",
			"transport": map[string]any{"type": "stdio"},
			"environmentVariables": []map[string]any{
				{"name": "API_KEY", "description": strings.Repeat("The key of the service. ", 20), "isSecret": true},
			},
		}}
		list.Servers = append(list.Servers, map[string]any{"server": doc})
	}
	list.Servers = append(list.Servers, map[string]any{"server": newLargeDocument("1.0.0", "old")})
	for n := range servers {
		add(fmt.Sprintf("com.example/server-%04d", n), "1.0.0")
	}
	for n := range 200 {
		add("com.example/server-0500", fmt.Sprintf("1.1.%d", n))
	}
	content, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "servers.json")
	fixture.WriteFile(t, file, string(content))
	e.RunCommand(t, "", "registry", "import", file)
}

// newLargeDocument returns a document that is larger than a page may be.
func newLargeDocument(version, text string) map[string]any {
	doc := fixture.NewServerDocument("com.example/large", version)
	var remotes []any
	for n := range 100 {
		var headers []any
		for h := range 20 {
			headers = append(headers, map[string]any{
				"name": fmt.Sprintf("X-Header-%d", h), "description": text + strings.Repeat(" \"quoted\"", 10),
			})
		}
		remotes = append(remotes, map[string]any{
			"type": "streamable-http", "url": fmt.Sprintf("https://large.example.com/%d", n), "headers": headers,
		})
	}
	doc["remotes"] = remotes
	return doc
}

// submitLarge submits a large document in place of another one, and returns the id of its review.
func submitLarge(t *testing.T, e *fixture.Environment, s *fixture.Service, p *fixture.Person) string {
	t.Helper()
	p.PostJSON(t, s, "/v0.1/publish", newLargeDocument("1.1.0", "new")).WantStatus(t, http.StatusOK)
	var list []struct{ ID string }
	fixture.DecodeJSON(t, e.RunCommand(t, "", "review", "list", "--output", "json"), &list)
	return list[0].ID
}

// recordEvents makes many audit events out of one: a person has renamed a device.
func recordEvents(t *testing.T, e *fixture.Environment, s *fixture.Service, p *fixture.Person, events int) {
	t.Helper()
	var list struct{ Devices []struct{ ID string } }
	apiclient.Call(t, "GET", s.API+"/devices", nil, p.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &list)
	apiclient.Call(t, "PUT", s.API+"/devices/"+list.Devices[0].ID+"/name", `{"name":"Laptop of a person"}`,
		p.Bearer()...).WantStatus(t, http.StatusOK)
	id, unit := "printf('%08x-0000-4000-8000-000000000000', i)", "1"
	if e.Shared {
		id, unit = "gen_random_uuid()", "interval '1 microsecond'"
	}
	const step = 10_000 // a statement ends within the time limit of the driver
	db := e.OpenDatabase(t)
	for first := 0; first < events; first += step {
		_, err := db.ExecContext(t.Context(), fmt.Sprintf(`
			WITH RECURSIVE number (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM number WHERE i < %d),
				event AS (SELECT * FROM audit_events WHERE type = 'DEVICE_CHANGE' ORDER BY time DESC LIMIT 1)
			INSERT INTO audit_events (id, time, type, user_id, success, details)
				SELECT %s, time - i * %s, type, user_id, success, details FROM event, number`, first+1, first+step, id, unit))
		if err != nil {
			t.Fatal(err)
		}
	}
}
