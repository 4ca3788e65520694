package registryapi_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

// TestAllowLists reads the list of each format, again with its entity tag, and lists that are not
// there.
func TestAllowLists(t *testing.T) {
	servers := newServers(t)
	for _, name := range []string{"com.example/a", "com.example/b", "com.example/c"} {
		r := record(t, name, "1.0.0")
		r.Document = []byte("[]") // it is skipped
		servers.save(t, r)
	}
	address := serve(t, registryapi.Config{}, servers, nil) + "/registries/all/allowlist/"
	property := map[allowlist.Format]string{
		allowlist.Claude: `"allowedMcpServers"`, allowlist.VSCode: `"deniedMcpServers"`,
		allowlist.Gemini: `"mcpServers"`, allowlist.Kiro: `"servers"`, allowlist.Codex: `[mcp_servers]`, allowlist.ClaudeMCP: `"mcpServers"`,
	}
	for _, f := range allowlist.Formats() {
		got := call(t, "GET", address+f.File(), "")
		if got.status != 200 || !strings.Contains(got.body, property[f]) {
			t.Errorf("%s: %+v", f, got)
		}
		again := call(t, "GET", address+f.File(), "", "If-None-Match", got.header.Get("ETag"))
		if again.status != 304 || again.body != "" {
			t.Errorf("%s with its entity tag: %+v", f, again)
		}
		for _, a := range []response{got, again} {
			if a.header.Get("Cache-Control") != "public, max-age=60" || a.header.Get("X-Tollgate-Skipped") != "3" ||
				a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("ETag") == "" {
				t.Errorf("%s: status %d has the headers %v", f, a.status, a.header)
			}
		}
	}
	for _, path := range []string{"cursor.json", "claude", "claude.json.json", "Claude.json", "codex.json", "claude.toml", ".json", "claude.json/"} {
		if got := call(t, "GET", address+path, ""); got.status != 404 || !strings.HasPrefix(got.body, `{"error":`) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := call(t, "GET", strings.Replace(address, "/all/", "/unknown/", 1)+"claude.json", ""); got.status != 404 ||
		!strings.Contains(got.body, "registry view not found") {
		t.Errorf("an unknown view: %+v", got)
	}
	if got := call(t, "POST", address+"claude.json", "{}"); got.status != 405 {
		t.Errorf("POST: %+v", got)
	}
	if got := call(t, "OPTIONS", address+"claude.json", ""); got.status != 204 {
		t.Errorf("OPTIONS: %+v", got)
	}
}
