package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	server = "com.example/weather"
	remote = "https://com.example.weather/mcp"
)

// site is a service with a version of a server, and people: ada publishes it, rita reviews it.
type site struct {
	*fixture.Service
	environment *fixture.Environment
	ada, rita   *fixture.Person
}

func openSite(t *testing.T, e *fixture.Environment, settings ...string) *site {
	t.Helper()
	s := &site{Service: e.Start(t, append(fixture.RegistrySettings(), settings...)...), environment: e}
	s.ada = e.NewWriter(t, s.Service, "ada@example.com", "publish com.example/*", "edit com.example/*")
	s.rita = e.NewWriter(t, s.Service, "rita@example.com", "review com.example/*")
	return s
}

// call sends a request to a path below the API.
func (s *site) call(t *testing.T, method, path string, body any, header ...string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, s.API+path, body, header...)
}

// publish publishes a version with a remote and two packages.
func (s *site) publish(t *testing.T, version string) {
	t.Helper()
	s.call(t, "POST", "/v0.1/publish", newDocument(version, "one", "two"), s.ada.Bearer()...).WantStatus(t, http.StatusOK)
}

// newDocument returns a document with a remote and packages.
func newDocument(version string, packages ...string) map[string]any {
	d := fixture.NewServerDocument(server, version)
	d["remotes"] = []any{map[string]any{"type": "streamable-http", "url": remote}}
	all := []any{}
	for _, p := range packages {
		all = append(all, map[string]any{
			"registryType": "npm", "identifier": p, "version": "1.0.0", "transport": map[string]any{"type": "stdio"},
		})
	}
	d["packages"] = all
	return d
}

func toolsPath(version string) string {
	return "/v0.1/x/dev.tollgate" + fixture.ServerPath(server, version) + "/tools"
}

// listOf returns a list of the remote with one tool.
func listOf(description string) map[string]any {
	return map[string]any{"remote": remote, "tools": []any{map[string]any{"name": "forecast", "description": description}}}
}

// ofPackage returns a list of a package with one tool.
func ofPackage(index int, description string) map[string]any {
	l := listOf(description)
	delete(l, "remote")
	l["package"] = index
	return l
}

// list is a list as the API shows it.
type list struct {
	Remote, State, Source, Mark, At, By string
	Package                             *int
	Tools                               []struct{ Name, Description, Mark string }
}

// lists returns what an answer has: where each list is of, its state, and the description of its tool.
func lists(t *testing.T, a apiclient.Response) (all []list, summary string) {
	t.Helper()
	var body struct{ Lists []list }
	a.Decode(t, &body)
	var parts []string
	for _, l := range body.Lists {
		of := l.Remote
		if l.Package != nil {
			of = fmt.Sprint(*l.Package)
		}
		parts = append(parts, strings.Join([]string{of, l.State, l.Tools[0].Description}, " "))
	}
	return body.Lists, strings.Join(parts, ", ")
}

// read reads the lists of a version.
func (s *site) read(t *testing.T, version string) (all []list, summary string) {
	t.Helper()
	return lists(t, s.call(t, "GET", toolsPath(version), nil).WantStatus(t, http.StatusOK))
}

// want checks what everybody reads of a version.
func (s *site) want(t *testing.T, version, summary string) []list {
	t.Helper()
	all, got := s.read(t, version)
	if got != summary {
		t.Errorf("the lists of %s are %q, want %q", version, got, summary)
	}
	return all
}

// acts returns the details of the events tools_record in the audit log.
func (s *site) acts(t *testing.T) []map[string]any {
	t.Helper()
	return s.actsOf(t, "tools_record")
}

// actsOf returns the details of events with actions in the audit log.
func (s *site) actsOf(t *testing.T, actions ...string) (all []map[string]any) {
	t.Helper()
	rows, err := s.environment.OpenDatabase(t).QueryContext(t.Context(), "SELECT details FROM audit_events WHERE type = 'REGISTRY_CHANGE'")
	must.Succeed(t, err)
	defer func() { _ = rows.Close() }() // all rows are read, or the test has failed
	for rows.Next() {
		var text string
		must.Succeed(t, rows.Scan(&text))
		var details map[string]any
		must.Succeed(t, json.Unmarshal([]byte(text), &details))
		if action, _ := details["action"].(string); slices.Contains(actions, action) {
			all = append(all, details)
		}
	}
	must.Succeed(t, rows.Err())
	return all
}
