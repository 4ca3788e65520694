package allowlistjson_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/tollgate-dev/tollgate/adapters/rest/allowlistjson"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/test/must"
)

var update = flag.Bool("update", false, "write the golden files")

// newRecord returns a record with a document that has the properties.
func newRecord(t testing.TB, name, version, properties string) registry.Record {
	t.Helper()
	parsed, err := registry.ParseName(name)
	must.Succeed(t, err)
	v, err := registry.ParseVersion(version)
	must.Succeed(t, err)
	text := `{"name":"` + name + `","description":"About ` + name + `","version":"` + version + `"` + properties + `}`
	return registry.Record{Release: registry.Release{Name: parsed, Version: v}, Document: []byte(text)}
}

func remotes(list string) string { return `,"remotes":[` + list + `]` }

func packages(list string) string { return `,"packages":[` + list + `]` }

// fixture returns the listed and the deleted records of the golden files.
func fixture(t *testing.T) (listed, deleted []registry.Record) {
	t.Helper()
	add := func(to *[]registry.Record, name, version, properties string) {
		*to = append(*to, newRecord(t, name, version, properties))
	}
	const stdio = `"transport":{"type":"stdio"}`
	add(&listed, "com.example/remote", "1.0.0", remotes(
		`{"type":"sse","url":"https://example.com/sse"},{"type":"streamable-http","url":"https://example.com/mcp","headers":[{"name":"Authorization","value":"Bearer {api-key}","isSecret":true},{"name":"X-Team"}]}`))
	add(&listed, "com.example/tenant", "1.0.0",
		remotes(`{"type":"streamable-http","url":"https://{tenant}.example.com/{path}/mcp?v=1"}`))
	add(&listed, "com.example/npm", "1.2.3",
		packages(`{"registryType":"npm","identifier":"@example/weather","version":"1.2.3",`+stdio+`,
		"packageArguments":[{"type":"positional","value":"start"},{"type":"named","name":"--units","value":"<metric>"},{"type":"named","name":"--dir","default":"/tmp"},{"type":"positional","valueHint":"left out"}],
		"environmentVariables":[{"name":"API_KEY","isSecret":true,"isRequired":true},{"name":"LOG","default":"info"}]}`))
	add(&listed, "com.example/pypi", "2.0.0",
		packages(`{"registryType":"pypi","identifier":"weather","version":"2.0.1","runtimeHint":"uvx",`+stdio+`}`))
	add(&listed, "com.example/image", "1.0.0",
		packages(`{"registryType":"oci","identifier":"ghcr.io/example/weather:1.0.0",`+stdio+
			`},{"registryType":"nuget","identifier":"Weather","version":"3.0.0",`+stdio+`}`))
	add(&listed, "com.example/container", "1.0.0",
		packages(`{"registryType":"oci","identifier":"ghcr.io/example/tides:2.0.0",`+stdio+`,
		"runtimeArguments":[{"type":"named","name":"--network","value":"none"}],"environmentVariables":[{"name":"KEY","isRequired":true},{"name":"LOG"}]}`))
	add(&listed, "com.example/bundle", "1.0.0",
		packages(`{"registryType":"mcpb","identifier":"https://example.com/a.mcpb",`+stdio+`}`))
	add(&listed, "com.example/dotted.name", "1.0.0", "")
	add(&listed, "com.example/asks", "1.0.0",
		packages(`{"registryType":"npm","identifier":"asks","version":"1.0.0",`+stdio+
			`,"packageArguments":[{"type":"named","name":"--key","isRequired":true}]}`))
	add(&listed, "com.example/open", "1.0.0",
		remotes(`{"type":"sse","url":"https://{host}/mcp"},{"type":"sse","url":"https://other.example/mcp"}`))
	add(&deleted, "com.example/remote", "0.9.0",
		remotes(`{"type":"sse","url":"https://example.com/sse"},{"type":"sse","url":"https://old.example.com/sse"}`))
	add(&deleted, "com.example/npm", "1.0.0",
		packages(`{"registryType":"npm","identifier":"@example/weather","version":"1.0.0",`+stdio+`}`))
	add(&deleted, "com.example/evil", "1.0.0", remotes(`{"type":"sse","url":"https://evil.example/mcp"}`))
	add(&deleted, "com.example/tenant-old", "1.0.0",
		remotes(`{"type":"sse","url":"https://acme.example.com/x/mcp?v=1"}`))
	add(&deleted, "com.example/old-bundle", "1.0.0",
		packages(`{"registryType":"mcpb","identifier":"https://example.com/b.mcpb",`+stdio+`}`))
	return listed, deleted
}

// encode compiles and encodes a list, followed by what it skips.
func encode(t *testing.T, f allowlist.Format, listed, deleted []registry.Record) []byte {
	t.Helper()
	var skipped []string
	encoder := allowlistjson.NewEncoder()
	c := allowlist.NewCompiler(allowlist.Output{Define: encoder.Define,
		Skip: func(_ allowlist.Format, s allowlist.Skipped) {
			skipped = append(skipped, fmt.Sprintf("not in the list: %s %s: %s\n", s.Name, s.Version, s.Reason))
		}}, f)
	slices.SortFunc(listed, func(a, b registry.Record) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	for _, r := range listed {
		must.Succeed(t, c.Allow(r))
	}
	for _, r := range deleted {
		c.Deny(r)
	}
	var text bytes.Buffer
	must.Succeed(t, encoder.Encode(&text, c.Compile(), f))
	if f == allowlist.Codex {
		var list any
		_, err := toml.Decode(text.String(), &list)
		must.Succeed(t, err)
	} else if !json.Valid(text.Bytes()) {
		t.Errorf("%s is not JSON: %s", f, text.Bytes())
	}
	slices.Sort(skipped)
	return append(text.Bytes(), strings.Join(skipped, "")...)
}

// TestGoldenLists compares the list of each format, and what it cannot express, with a file.
func TestGoldenLists(t *testing.T) {
	t.Parallel()
	listed, deleted := fixture(t)
	for _, f := range allowlist.Formats() {
		text := encode(t, f, listed, deleted)
		compareGolden(t, string(f), text)
		slices.Reverse(listed)
		slices.Reverse(deleted)
		if again := encode(t, f, listed, deleted); !bytes.Equal(again, text) {
			t.Errorf("%s: another order of the records gives another list", f)
		}
	}
}

// TestEmptyLists wants a list that allows nothing, not one that a client takes for no restriction.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	for f, want := range map[allowlist.Format]string{
		allowlist.Claude:    "{\n  \"allowedMcpServers\": [],\n  \"deniedMcpServers\": []\n}\n",
		allowlist.VSCode:    "{\n  \"allowedMcpServers\": [],\n  \"deniedMcpServers\": []\n}\n",
		allowlist.Gemini:    "{\n  \"mcp\": {\n    \"allowed\": [],\n    \"excluded\": []\n  },\n  \"mcpServers\": {}\n}\n",
		allowlist.Kiro:      "{\n  \"servers\": []\n}\n",
		allowlist.Codex:     "[mcp_servers]\n", // without it Codex starts every server
		allowlist.ClaudeMCP: "{\n  \"mcpServers\": {}\n}\n",
	} {
		if got := string(encode(t, f, nil, nil)); got != want {
			t.Errorf("%s: %s", f, got)
		}
	}
}

// TestGoldenSnippets compares the snippets of some servers for each client with a file.
func TestGoldenSnippets(t *testing.T) {
	t.Parallel()
	records := []registry.Record{
		newRecord(t, "com.example/remote", "1.0.0", remotes(`{"type":"sse","url":"https://example.com/sse"},
			{"type":"streamable-http","url":"https://{tenant}.example.com/mcp","variables":{"tenant":{"description":"Your tenant"}},
			 "headers":[{"name":"Authorization","value":"Bearer {api-key}","isSecret":true},{"name":"X-Team","default":"none"}]}`)),
		newRecord(t, "com.example/events", "1.0.0", remotes(`{"type":"sse","url":"https://example.com/sse"}`)),
		newRecord(t, "com.example/package", "1.2.3",
			packages(`{"registryType":"pypi","identifier":"weather","version":"1.2.3","transport":{"type":"stdio"},
			"packageArguments":[{"type":"named","name":"--dir","isRequired":true,"description":"A folder"},{"type":"positional","valueHint":"city","isRequired":true}],
			"environmentVariables":[{"name":"API_KEY","isSecret":true,"isRequired":true},{"name":"LOG","default":"info"}]}`)),
		newRecord(t, "com.example/container", "1.0.0",
			packages(`{"registryType":"oci","identifier":"ghcr.io/example/tides:2.0.0","transport":{"type":"stdio"},
			"packageArguments":[{"type":"named","name":"--place","description":"May be left out"},{"type":"named","name":"--fast","format":"boolean","description":"A flag"}],
			"environmentVariables":[{"name":"KEY","isRequired":true},{"name":"LOG","description":"May be left out"}]}`)),
	}
	for _, c := range allowlist.Clients() {
		var text []byte
		for _, r := range records {
			s, err := allowlist.NewSnippet(r, c.Client)
			if err != nil {
				text = append(text, err.Error()+"\n"...)
				continue
			}
			encoded, err := allowlistjson.EncodeSnippet(s)
			must.Succeed(t, err)
			text = append(text, encoded...)
			if s.Unlisted != "" {
				text = append(text, "not in an allow list: "+s.Unlisted+"\n"...)
			}
		}
		compareGolden(t, "install-"+string(c.Client), text)
	}
}

// sources say where the clients document what the golden files have.
var sources = map[string]string{
	"claude": "https://code.claude.com/docs/en/managed-mcp: the command of an entry must equal that of the server, argument by argument",
	"vscode": "https://docs.github.com/en/copilot/how-tos/administer-copilot/manage-mcp-usage/configure-enterprise-allowlist; commands and names as in\n" +
		"# microsoft/vscode at 022dd59, src/vs/platform/mcp/common/mcpManagementService.ts, and as in install-vscode.golden",
	"gemini":         "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md: the list itself has the command that is started",
	"kiro":           "https://kiro.dev/docs/cli/mcp/governance: the client makes the command of a package",
	"install-claude": "https://code.claude.com/docs/en/mcp: environment variables in .mcp.json, ${VAR:-default}",
	"install-vscode": "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
	"install-cursor": "https://docs.cursor.com/context/mcp: ${env:NAME}",
	"install-gemini": "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
	"codex":          "https://github.com/openai/codex, codex-rs/config/src/config_requirements.rs (McpServerIdentity): the name and the exact URL",
	"claude-mcp":     "https://code.claude.com/docs/en/managed-mcp: managed-mcp.json, in the form of .mcp.json",
	"install-codex":  "https://github.com/openai/codex, codex-rs/config/src/mcp_types.rs (RawMcpServerConfig)",
	"install-copilot": "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers; variables in env since 1.0.10\n" +
		"# (github/copilot-cli issue 903)",
	"install-opencode":  "https://opencode.ai/docs/mcp-servers, and {env:NAME} of https://opencode.ai/docs/config",
	"install-windsurf":  "https://docs.windsurf.com/windsurf/cascade/mcp: ${env:NAME} in command, args, env, serverUrl and headers",
	"install-kiro":      "https://kiro.dev/docs/mcp/configuration: ${NAME} in env and headers",
	"install-cline":     "https://docs.cline.bot/mcp/mcp-overview; ${env:NAME} as in cline/cline, apps/vscode/src/services/mcp/McpHub.ts",
	"install-zed":       "https://zed.dev/docs/ai/mcp; args are required, and nothing is replaced (zed-industries/zed issue 60459)",
	"install-jetbrains": "https://www.jetbrains.com/help/ai-assistant/mcp.html: as JSON",
	"install-goose":     "https://goose-docs.ai/docs/guides/config-files: extensions of the types stdio and streamable_http; no server-sent events",
}

// compareGolden compares a text with a golden file, which begins with its source.
func compareGolden(t *testing.T, name string, text []byte) {
	t.Helper()
	text = append([]byte("# "+sources[name]+"\n"), text...)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		must.Succeed(t, os.WriteFile(path, text, 0o600))
	}
	want, err := os.ReadFile(path)
	must.Succeed(t, err)
	if !bytes.Equal(text, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, text, want)
	}
}

// TestInstallLinks checks that a link has the configuration of the snippet, as the client reads it.
func TestInstallLinks(t *testing.T) {
	record := newRecord(t, "com.example/news_feed", "1.0.0",
		packages(`{"registryType":"npm","identifier":"@example/weather","version":"1.2.3","transport":{"type":"stdio"},
		"packageArguments":[{"type":"positional","value":"a b&c=d+e%"}],"environmentVariables":[{"name":"API_KEY","isSecret":true,"isRequired":true}]}`))
	link := func(c allowlist.Client) string {
		snippet, err := allowlist.NewSnippet(record, c)
		must.Succeed(t, err)
		link, err := allowlistjson.InstallLink(snippet)
		must.Succeed(t, err)
		return link
	}
	read := func(text string, into any) {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	type server struct {
		Name, Type, Command string
		Args                []string
		Inputs              []struct{ ID string }
		Env                 map[string]string
	}
	coded, found := strings.CutPrefix(link(allowlist.ClientVSCode), "vscode:mcp/install?")
	text, err := url.PathUnescape(coded) // as decodeURIComponent does
	if !found || err != nil {
		t.Fatalf("the link is %s, %v", coded, err)
	}
	var vscode server
	read(text, &vscode)
	if vscode.Name != "news_feed" || vscode.Type != "stdio" || vscode.Args[len(vscode.Args)-1] != "a b&c=d+e%" ||
		len(vscode.Inputs) != 1 || vscode.Env["API_KEY"] == "" {
		t.Errorf("the link for VS Code has %s", text)
	}
	u, err := url.Parse(link(allowlist.ClientCursor))
	must.Succeed(t, err)
	config, err := base64.StdEncoding.DecodeString(u.Query().Get("config"))
	if u.Scheme != "cursor" || u.Host != "anysphere.cursor-deeplink" || u.Path != "/mcp/install" ||
		u.Query().Get("name") != "news_feed" || err != nil {
		t.Fatalf("the link for Cursor is %s, %v", u, err)
	}
	var cursor server
	read(string(config), &cursor)
	if cursor.Command == "" || cursor.Args[len(cursor.Args)-1] != "a b&c=d+e%" {
		t.Errorf("the link for Cursor has %s", config)
	}
	for _, c := range []allowlist.Client{allowlist.ClientClaude, allowlist.ClientGemini} {
		if got := link(c); got != "" {
			t.Errorf("the link for %s is %s", c, got)
		}
	}
}
