package allowlistjson_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/test/must"
)

// machine is a machine on which a client runs: with an /etc of its own, a home, and no network.
type machine struct{ program, etc, home string }

// newMachine returns a machine for the client whose program an environment variable names. The
// programs are too large to be fetched for every run.
func newMachine(t *testing.T, variable string) machine {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Skip("needs the program of the client: set " + variable)
	}
	m := machine{program, t.TempDir(), t.TempDir()}
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
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.home, "ETC=" + m.etc}
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
