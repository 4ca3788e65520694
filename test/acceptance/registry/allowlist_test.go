package registry

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestAllowLists compiles the servers of a registry into the lists of clients, by the API and by
// the command (contract C-1 to C-5).
func TestAllowLists(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		r := openRegistry(t, e)
		publish := func(name, version, property string, value any) {
			t.Helper()
			doc := fixture.NewServerDocument("com.example/"+name, version)
			delete(doc, "remotes")
			r.write(t, "POST", "/publish", fixture.WithProperty(doc, property, value))
		}
		remote := func(address string) []map[string]any {
			return []map[string]any{
				{"type": "streamable-http", "url": address, "variables": map[string]any{"tenant": map[string]any{}}},
			}
		}
		publish("remote", "1.0.0", "remotes", remote("https://old.example.com/mcp"))
		publish("remote", "2.0.0", "remotes", remote("https://example.com/{tenant}/mcp"))
		publish("package", "1.0.0", "packages", []map[string]any{{
			"registryType": "npm", "identifier": "weather", "version": "1.2.3", "transport": map[string]any{
				"type": "stdio",
			},
		}})
		publish("gone", "1.0.0", "remotes", remote("https://gone.example.com/mcp"))
		publish("plain", "1.0.0", "title", "Neither packages nor remotes")
		publish("dotted.name", "1.0.0", "title", "A name that the clients do not accept")
		const allowed = `{"allowedMcpServers":[{"serverCommand":["npx","-y","weather@1.2.3"]},{"serverName":"plain"},`
		const allowedVSCode = `{"allowedMcpServers":[{"serverCommand":["npx","-y","weather@1.2.3"]},{"serverCommand":["npx","weather@1.2.3"]},` +
			`{"serverName":"com.example/dotted.name"},{"serverName":"com.example/plain"},{"serverName":"plain"},`
		r.wantAllowList(t, "claude", "2",
			allowed+
				`{"serverUrl":"https://example.com/*/mcp"},{"serverUrl":"https://gone.example.com/mcp"}],"deniedMcpServers":[]}`)
		r.setStatus(t, "com.example/gone", "1.0.0", "deleted")
		for format, allowed := range map[string]string{"claude": allowed, "vscode": allowedVSCode} {
			skipped := map[string]string{"claude": "2", "vscode": "0"}[format]
			r.wantAllowList(t, format, skipped,
				allowed+
					`{"serverUrl":"https://example.com/*/mcp"}],"deniedMcpServers":[{"serverUrl":"https://gone.example.com/mcp"}]}`)
		}
		r.wantAllowList(t, "gemini", "2",
			`{"mcp":{"allowed":["com.example-package","com.example-remote"],"excluded":["com.example-gone"]},"mcpServers":{`+
				`"com.example-package":{"command":"npx","args":["-y","weather@1.2.3"]},"com.example-remote":{"httpUrl":"https://example.com/${COM_EXAMPLE_REMOTE_TENANT}/mcp"}}}`)
		r.wantAllowList(t, "kiro", "3",
			`{"servers":[{"server":{"name":"com.example-package","description":"Answers what the weather will be","version":"1.2.3","packages":[`+
				`{"registryType":"npm","identifier":"weather","transport":{"type":"stdio"}}]}}]}`)
		r.wantAllowList(t, "claude-mcp", "2",
			`{"mcpServers":{"com.example-package":{"type":"stdio","command":"npx","args":["-y","weather@1.2.3"]},`+
				`"com.example-remote":{"type":"http","url":"https://example.com/${COM_EXAMPLE_REMOTE_TENANT}/mcp"}}}`)
		r.wantAllowList(t, "codex", "4", "[mcp_servers]\n")
		for path, sentence := range map[string]string{
			"all/allowlist/cursor.json":  "claude.json, vscode.json, gemini.json, kiro.json, codex.toml, claude-mcp.json",
			"team/allowlist/claude.json": "registry view not found",
		} {
			wantFault(t, apiclient.Call(t, "GET", r.s.API+"/registries/"+path, nil), http.StatusNotFound, sentence)
		}
		apiclient.Call(t, "OPTIONS", r.s.API+"/registries/all/allowlist/claude.json", nil).WantStatus(t, 204)
		r.checkSnippets(t)
		if _, stderr, code := e.TryCommand(t, "", "allowlist", "--for", "cursor"); code != 1 ||
			!strings.Contains(stderr, "claude, vscode, gemini, kiro, codex or claude-mcp") {
			t.Errorf("an unknown format: exit %d, %s", code, stderr)
		}
	})
}

// wantAllowList checks the list of a format by the API, with its entity tag, and by the command.
func (r *registry) wantAllowList(t *testing.T, format, skipped, want string) {
	t.Helper()
	address, list := r.s.API+"/registries/all/allowlist/"+format+".json", "application/json"
	if format == "codex" {
		address, list = r.s.API+"/registries/all/allowlist/codex.toml", "application/toml"
	}
	a := apiclient.Call(t, "GET", address, nil).WantStatus(t, 200)
	compact := bytes.NewBuffer(a.Body)
	if list == "application/json" {
		compact = new(bytes.Buffer)
		must.Succeed(t, json.Compact(compact, a.Body))
	}
	if got := a.Header.Get("Content-Type"); got != list {
		t.Errorf("%s is %s", format, got)
	}
	if got := compact.String(); got != want || a.Header.Get("X-Tollgate-Skipped") != skipped {
		t.Errorf("%s without %s: %s\nwant %s", format, a.Header.Get("X-Tollgate-Skipped"), got, want)
	}
	apiclient.Call(t, "GET", address, nil, "If-None-Match", a.Header.Get("ETag")).WantStatus(t, 304)
	stdout, stderr, code := r.TryCommand(t, "", "allowlist", "--for", format)
	if code != 0 || stdout != string(a.Body) ||
		strings.Contains(stderr, "not in the list: com.example/dotted.name 1.0.0: ") != (skipped != "0") {
		t.Errorf("tollgate allowlist --for %s: exit %d, %s%s", format, code, stdout, stderr)
	}
}

// checkSnippets checks what installs the servers of TestAllowLists in each client (contract C-7).
func (r *registry) checkSnippets(t *testing.T) {
	t.Helper()
	address := r.s.API + "/registries/all/install?"
	for query, want := range map[string]string{
		"server=com.example/package&client=claude": `{"mcpServers":{"package":{"type":"stdio","command":"npx","args":["-y","weather@1.2.3"]}}}`,
		"server=com.example/package&client=cursor": `{"mcpServers":{"package":{"command":"npx","args":["-y","weather@1.2.3"]}}}`,
		"server=com.example/remote&client=gemini":  `{"mcpServers":{"com.example-remote":{"httpUrl":"https://example.com/${COM_EXAMPLE_REMOTE_TENANT}/mcp"}}}`,
		"server=com.example/remote&client=vscode": `{"inputs":[{"type":"promptString","id":"remote-tenant","description":"tenant"}],` +
			`"servers":{"remote":{"type":"http","url":"https://example.com/${input:remote-tenant}/mcp"}}}`,
		"server=com.example/package&client=opencode":              `{"mcp":{"package":{"type":"local","command":["npx","-y","weather@1.2.3"],"enabled":true}}}`,
		"server=com.example/remote&client=windsurf":               `{"mcpServers":{"remote":{"serverUrl":"https://example.com/${env:COM_EXAMPLE_REMOTE_TENANT}/mcp"}}}`,
		"server=com.example%2Fremote&version=1.0.0&client=claude": `{"mcpServers":{"remote":{"type":"http","url":"https://old.example.com/mcp"}}}`,
	} {
		a := apiclient.Call(t, "GET", address+query, nil).WantStatus(t, 200)
		var compact bytes.Buffer
		must.Succeed(t, json.Compact(&compact, a.Body))
		if got := compact.String(); got != want || a.Header.Get("X-Tollgate-Unlisted") != "" {
			t.Errorf("%s: %s\nwant %s", query, got, want)
		}
		apiclient.Call(t, "GET", address+query, nil, "If-None-Match", a.Header.Get("ETag")).WantStatus(t, 304)
	}
	codex := apiclient.Call(t, "GET", address+"server=com.example/package&client=codex", nil).WantStatus(t, 200)
	if got := codex.Header; !strings.Contains(got.Get("X-Tollgate-Unlisted"), "every package") || got.Get("Content-Type") != "application/toml" ||
		string(codex.Body) != "[mcp_servers.\"com.example-package\"]\ncommand = \"npx\"\nargs = [\"-y\", \"weather@1.2.3\"]\n" {
		t.Errorf("the snippet for Codex has %v: %s", got, codex.Body)
	}
	for query, want := range map[string]struct {
		status int
		word   string
	}{
		"client=claude":                                     {400, "server "},
		"server=com.example/remote":                         {400, "client "},
		"server=com.example/remote&client=emacs":            {400, "client "},
		"server=com.example/none&client=claude":             {404, "not found"},
		"server=com.example/gone&client=claude":             {404, "not found"},
		"server=%00&client=claude":                          {404, "not found"},
		"server=com.example/remote&version=9&client=claude": {404, "not found"},
		"server=com.example/plain&client=claude":            {404, "neither packages nor remotes"},
	} {
		wantFault(t, apiclient.Call(t, "GET", address+query, nil), want.status, want.word)
	}
	wantFault(t,
		apiclient.Call(t, "GET", r.s.API+"/registries/team/install?server=com.example/remote&client=claude",
			nil), 404, "view")
	apiclient.Call(t, "OPTIONS", address, nil).WantStatus(t, 204)
}
