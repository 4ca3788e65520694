package allowlistjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/allowlistjson"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/test/must"
)

// machine is a machine on which a client runs: with an /etc of its own, a home, and no network.
type machine struct {
	program, etc, home string
	variables          []string // more environment variables
}

// newMachine returns a machine for the client whose program an environment variable names. The
// programs are too large to be fetched for every run.
func newMachine(t *testing.T, variable string) machine {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Skip("needs the program of the client: set " + variable)
	}
	m := machine{program: program, etc: t.TempDir(), home: t.TempDir()}
	m.write(t, "passwd", []byte("root:x:0:0::/:/bin/sh\n"))
	return m
}

// write writes a file below /etc.
func (m machine) write(t *testing.T, name string, text []byte) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(filepath.Join(m.etc, name)), 0o700))
	must.Succeed(t, os.WriteFile(filepath.Join(m.etc, name), text, 0o600))
}

// run runs the client with arguments, and returns what it says.
func (m machine) run(t *testing.T, arguments ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "unshare", append([]string{
		"--map-root-user", "--mount", "--net", "sh", "-c", `mount --bind "$ETC" /etc && exec "$@"`, "sh", m.program,
	}, arguments...)...)
	c.Dir = m.home
	c.Env = append(m.variables, "PATH="+os.Getenv("PATH"), "HOME="+m.home, "ETC="+m.etc)
	said, _ := c.CombinedOutput() // a client that refuses a server fails
	return string(said)
}

// TestClaudeCodeObeysTheList runs Claude Code with a list as its managed settings: it adds listed
// servers, also after an older spelling of their URL was deleted, and no other (contract C-2, C-3).
func TestClaudeCodeObeysTheList(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "TEST_CLAUDE_CODE")
	remote := func(name, version, address string) registry.Record {
		return newRecord(t, "com.example/"+name, version, remotes(`{"type":"streamable-http","url":"`+address+`"}`))
	}
	list := encode(t, allowlist.Claude, []registry.Record{
		remote("a", "2.0.0", "https://a.example.com/mcp"), remote("b", "2.0.0", "https://b.example.com/mcp"),
		remote("c", "2.0.0", "https://c.example.com/mcp"), remote("d", "2.0.0", "https://d.example.com/mcp"),
		remote("e", "2.0.0", "https://e.example.com/mcp?team=1"),
		remote("nopath", "1.0.0", "https://nopath.example.com"), remote("slash", "1.0.0", "https://slash.example.com/"),
		remote("query", "1.0.0", "https://query.example.com?"), remote("fragment", "1.0.0", "https://fragment.example.com/#x"),
	}, []registry.Record{
		remote("a", "1.0.0", "https://a.example.com"), remote("b", "1.0.0", "https://b.example.com/mcp/"),
		remote("c", "1.0.0", "https://C.example.com/mcp"), remote("d", "1.0.0", "https://d.example.com:443/mcp"),
		remote("e", "1.0.0", "https://e.example.com/mcp"), remote("gone", "1.0.0", "https://gone.example.com/mcp"),
	})
	var settings map[string]any
	must.Succeed(t, json.NewDecoder(strings.NewReader(string(list))).Decode(&settings)) // what it skips follows
	settings["allowManagedMcpServersOnly"] = true
	text, err := json.Marshal(settings)
	must.Succeed(t, err)
	m.write(t, "claude-code/managed-settings.json", text)
	added := 0
	for address, want := range map[string]string{
		"https://a.example.com/mcp":          "Added",
		"https://b.example.com/mcp":          "Added",
		"https://c.example.com/mcp":          "Added",
		"https://d.example.com/mcp":          "Added",
		"https://e.example.com/mcp?team=1":   "Added",
		"https://nopath.example.com":         "Added",
		"https://nopath.example.com/":        "Added",
		"https://nopath.example.com/other":   "not allowed",
		"https://slash.example.com":          "Added",
		"https://slash.example.com/other":    "not allowed",
		"https://query.example.com":          "Added",
		"https://query.example.com/other":    "not allowed",
		"https://fragment.example.com/#x":    "Added",
		"https://fragment.example.com/other": "not allowed",
		"https://a.example.com/mcp/other":    "not allowed",
		"https://gone.example.com/mcp":       "explicitly blocked",
		"https://rogue.example.com/mcp":      "not allowed",
	} {
		added++
		said := m.run(t, "mcp", "add", "--transport", "http", fmt.Sprintf("server%d", added), address)
		if !strings.Contains(said, want) {
			t.Errorf("%s: want %q, Claude Code says %s", address, want, said)
		}
	}
}

// snippets returns what installs records in a client, one after the other.
func snippets(t *testing.T, c allowlist.Client, records ...registry.Record) (text []byte) {
	t.Helper()
	for _, r := range records {
		s, err := allowlist.NewSnippet(r, c)
		must.Succeed(t, err)
		one, err := allowlistjson.EncodeSnippet(s)
		must.Succeed(t, err)
		text = append(text, one...)
	}
	return text
}

// TestClaudeCodeStartsTheManagedServers runs Claude Code with the list claude-mcp: it has the servers
// of the list, and a user can add no other (contract C-9).
func TestClaudeCodeStartsTheManagedServers(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "TEST_CLAUDE_CODE")
	listed, _ := fixture(t)
	list := encode(t, allowlist.ClaudeMCP, listed, nil)
	var servers struct {
		Servers map[string]any `json:"mcpServers"`
	}
	must.Succeed(t, json.NewDecoder(bytes.NewReader(list)).Decode(&servers))
	list, _, _ = bytes.Cut(list, []byte("not in the list")) // what it skips
	m.write(t, "claude-code/managed-mcp.json", list)
	said := m.run(t, "mcp", "list")
	for name := range servers.Servers {
		if !strings.Contains(said, name+": ") {
			t.Errorf("Claude Code does not have %s: %s", name, said)
		}
	}
	if said := m.run(t, "mcp", "add", "--transport", "http", "other", "https://example.com/mcp"); !strings.Contains(said, "Cannot add") {
		t.Errorf("Claude Code adds another server: %s", said)
	}
}

// TestCodexObeysTheList runs Codex with a list as its requirements, and the snippets of all servers
// and others in the configuration of the user: what is in the list is enabled, nothing else (contract
// C-9).
func TestCodexObeysTheList(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "TEST_CODEX")
	remote := newRecord(t, "com.example/remote.x", "1.0.0", remotes(`{"type":"streamable-http","url":"https://example.com/mcp",
		"headers":[{"name":"Authorization","value":"Bearer {key}","isSecret":true},{"name":"X-Key","isRequired":true},{"name":"X-Team","value":"a b"}]}`))
	local := newRecord(t, "com.example/local", "1.0.0", packages(`{"registryType":"npm","identifier":"a","version":"1.0.0",
		"transport":{"type":"stdio"},"environmentVariables":[{"name":"KEY","isSecret":true,"isRequired":true}]}`))
	list, _, _ := bytes.Cut(encode(t, allowlist.Codex, []registry.Record{remote, local}, nil), []byte("not in the list"))
	must.Succeed(t, os.MkdirAll(filepath.Join(m.home, ".codex"), 0o700))
	configuration := append(snippets(t, allowlist.ClientCodex, remote, local), `
[mcp_servers.rogue]
url = "https://rogue.example.com/mcp"
[mcp_servers.renamed]
url = "https://example.com/mcp"
[mcp_servers.command]
command = "npx"
`...)
	must.Succeed(t, os.WriteFile(filepath.Join(m.home, ".codex", "config.toml"), configuration, 0o600))
	for requirements, want := range map[string][]string{
		string(list): {"com.example-remote.x"},
		string(encode(t, allowlist.Codex, nil, nil)): nil,
	} {
		m.write(t, "codex/requirements.toml", []byte(requirements))
		said := m.run(t, "mcp", "list", "--json")
		_, said, _ = strings.Cut("\n"+said, "\n[") // a warning may be before the list
		var servers []struct {
			Name      string
			Enabled   bool
			Transport struct {
				URL, Command  string
				Bearer        string            `json:"bearer_token_env_var"`
				Headers       map[string]string `json:"http_headers"`
				HeaderOfUsers map[string]string `json:"env_http_headers"`
			}
		}
		if err := json.Unmarshal([]byte("["+said), &servers); err != nil || len(servers) != 5 {
			t.Fatalf("%v: Codex says %s", err, said)
		}
		var enabled []string
		for _, s := range servers {
			if s.Enabled {
				enabled = append(enabled, s.Name)
			}
			if r := s.Transport; s.Name == "com.example-remote.x" && (r.URL != "https://example.com/mcp" ||
				r.Bearer != "COM_EXAMPLE_REMOTE_X_KEY" || r.Headers["X-Team"] != "a b" || r.HeaderOfUsers["X-Key"] != "COM_EXAMPLE_REMOTE_X_X_KEY") {
				t.Errorf("Codex reads the snippet as %+v", r)
			}
		}
		if !slices.Equal(enabled, want) {
			t.Errorf("Codex enables %q, want %q, with %s", enabled, want, requirements)
		}
	}
}

// TestOpencodeReadsTheSnippet runs opencode with a snippet in its configuration.
func TestOpencodeReadsTheSnippet(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "TEST_OPENCODE")
	r := newRecord(t, "com.example/tenant", "1.0.0", remotes(`{"type":"streamable-http","url":"https://{tenant}.example.com/mcp"}`))
	must.Succeed(t, os.WriteFile(filepath.Join(m.home, "opencode.json"), snippets(t, "opencode", r), 0o600))
	m.variables = []string{"COM_EXAMPLE_TENANT_TENANT=acme"}
	if said := m.run(t, "debug", "config"); !strings.Contains(said, `"https://acme.example.com/mcp"`) {
		t.Errorf("opencode says %s", said)
	}
}

// TestCopilotReadsTheSnippets runs the command line of GitHub Copilot with the snippets of real
// documents as the configuration of the user: it has each server as the snippet says. It does not take
// URLs with a name in angle brackets, until the user has replaced it.
func TestCopilotReadsTheSnippets(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "TEST_COPILOT")
	type configuration struct {
		Servers map[string]map[string]any `json:"mcpServers"`
	}
	all := configuration{map[string]map[string]any{}}
	for _, r := range readDocuments(t) {
		s, err := allowlist.NewSnippet(r, "copilot")
		if err != nil || s.Definition.Remote != nil && strings.Contains(s.Definition.Remote.URL, "<") {
			continue
		}
		text, err := allowlistjson.EncodeSnippet(s)
		must.Succeed(t, err)
		var one configuration
		must.Succeed(t, json.Unmarshal(text, &one))
		maps.Copy(all.Servers, one.Servers)
	}
	text, err := json.Marshal(all)
	must.Succeed(t, err)
	must.Succeed(t, os.MkdirAll(filepath.Join(m.home, ".copilot"), 0o700))
	must.Succeed(t, os.WriteFile(filepath.Join(m.home, ".copilot", "mcp-config.json"), text, 0o600))
	said := m.run(t, "mcp", "list", "--json")
	var read configuration
	if err := json.Unmarshal([]byte(said), &read); err != nil {
		t.Fatalf("%v: Copilot says %s", err, said)
	}
	for name, server := range all.Servers {
		got := read.Servers[name]
		delete(got, "source")
		delete(got, "enabled")
		for _, property := range []string{"headers", "env"} { // it hides their values
			delete(got, property)
			delete(server, property)
		}
		if !reflect.DeepEqual(got, server) {
			t.Errorf("%s: Copilot reads %v, want %v", name, got, server)
		}
	}
	t.Logf("%d servers", len(read.Servers))
}
