package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// largePage is the greatest size of a page in bytes.
const largePage = 100 << 10

// TestLargeSite opens each page of a site with many servers and audit events, and with a document that
// is larger than a page: no page is larger than largePage.
func TestLargeSite(t *testing.T) {
	servers, events := 5000, 100_000
	if testing.Short() {
		servers, events = 500, 5_000
	}
	e := newEnvironment(t)
	importServers(t, e, servers)
	s := run(t, e, "REGISTRY_REVIEW=on")
	ada := e.NewPerson(t, "ada@example.com", "publish *", "edit *", "review *")
	b, o := openVerified(t, e, s, ada), newOperator(t, e, s)
	b.Open("/console/account", http.StatusOK).Press("Save the name of Firefox on Linux", http.StatusOK, "name", "Laptop of a person")
	repeatEvent(t, e, events)
	text, err := json.Marshal(newLargeDocument("1.1.0", "new"))
	must.Succeed(t, err)
	b.Open("/console/publish", http.StatusOK).Press("Publish", http.StatusOK, "document", string(text))
	b.Open("/console/reviews", http.StatusOK).Follow("com.example/large", http.StatusOK).WantNoText("leaves something out")
	b.Open(b.Page.URL.Path+"/document", http.StatusOK)
	if !json.Valid([]byte(b.Page.Body)) || len(b.Page.Body) < 2*largePage {
		t.Errorf("the whole document has %d bytes", len(b.Page.Body))
	}
	for viewer, all := range map[*browser][]string{
		b: append([]string{
			"?q=server-09", "?page=15", "?status=active&remote=true&package=npm", "servers/com.example/server-0400", "servers/com.example/large",
			"account/log?offset=2500", "own/com.example/server-0400", "own/com.example/server-0400/owner", "quarantine",
		}, slices.DeleteFunc(slices.Clone(pages["people"]), func(page string) bool { return strings.Contains(page, "/com.example/") })...),
		o: append([]string{
			"operator/people/ada@example.com", "operator/log?email=ada@example.com&offset=2500", "operator/log?type=DEVICE_CHANGE",
			"operator/log?server=com.example/server-0400", "operator/people?q=ada",
		}, operatorPages...),
	} {
		for _, page := range all {
			viewer.Open("/console/"+page, http.StatusOK).WantPath("/console/" + page)
			if size := len(viewer.Page.Body); size > largePage {
				t.Errorf("%s has %d bytes", page, size)
			}
		}
	}
}

// importServers imports servers with a package and a remote each, one of them with many versions, and
// a large one.
func importServers(t *testing.T, e *fixture.Environment, servers int) {
	t.Helper()
	list := []map[string]any{{"server": newLargeDocument("1.0.0", "old")}}
	for n := range servers + 200 {
		name, version := fmt.Sprintf("server-%04d", n), "1.0.0"
		if n >= servers {
			name, version = "server-0400", fmt.Sprintf("1.1.%d", n)
		}
		doc := fixture.NewServerDocument("com.example/"+name, version)
		doc["packages"] = []map[string]any{{
			"registryType": "npm", "identifier": "@example/" + name, "version": "1.0.0", "transport": map[string]any{"type": "stdio"},
			"environmentVariables": []map[string]any{
				{"name": "API_KEY", "description": strings.Repeat("The key of the service. ", 20), "isSecret": true},
			},
		}}
		list = append(list, map[string]any{"server": doc})
	}
	content, err := json.Marshal(map[string]any{"servers": list})
	must.Succeed(t, err)
	file := filepath.Join(e.Dir, "servers.json")
	fixture.WriteFile(t, file, string(content))
	e.RunCommand(t, "", "registry", "import", file)
}

// newLargeDocument returns a document that is larger than a page may be.
func newLargeDocument(version, text string) map[string]any {
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
	return fixture.WithProperty(fixture.NewServerDocument("com.example/large", version), "remotes", remotes)
}

// repeatEvent makes many audit events out of the newest: a person has renamed a device.
func repeatEvent(t *testing.T, e *fixture.Environment, events int) {
	t.Helper()
	const step = 10_000 // a statement ends within the time limit of the driver
	for first := 0; first < events; first += step {
		_, err := e.OpenDatabase(t).ExecContext(t.Context(), fmt.Sprintf(`
			WITH RECURSIVE number (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM number WHERE i < %d),
				event AS (SELECT * FROM audit_events WHERE type = 'DEVICE_CHANGE' ORDER BY time DESC LIMIT 1)
			INSERT INTO audit_events (id, time, type, user_id, success, details)
				SELECT printf('%%08x-0000-4000-8000-000000000000', i), time - i, type, user_id, success, details FROM event, number`,
			first+1, min(first+step, events)))
		must.Succeed(t, err)
	}
}
