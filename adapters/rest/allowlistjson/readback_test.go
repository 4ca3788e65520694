package allowlistjson_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/rest/allowlistjson"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// reader says where a client reads what it starts or reaches, by its documentation, which the golden
// files cite. It shares nothing with the forms.
type reader struct {
	servers                string
	program, args, env     string // without args the program is a list with the arguments
	url, eventsURL         string
	kind, local, http, sse string // the property that has the transport, and its values
	required               []string
}

var readers = map[allowlist.Client]reader{
	"vscode":    {"servers", "command", "args", "env", "url", "url", "type", "stdio", "http", "sse", nil},
	"claude":    {"mcpServers", "command", "args", "env", "url", "url", "type", "stdio", "http", "sse", nil},
	"cursor":    {"mcpServers", "command", "args", "env", "url", "url", "", "", "", "", nil},
	"gemini":    {"mcpServers", "command", "args", "env", "httpUrl", "url", "", "", "", "", nil},
	"codex":     {"mcp_servers", "command", "args", "env", "url", "", "", "", "", "", nil},
	"copilot":   {"mcpServers", "command", "args", "env", "url", "url", "type", "local", "http", "sse", []string{"tools"}},
	"opencode":  {"mcp", "command", "", "environment", "url", "url", "type", "local", "remote", "remote", []string{"enabled"}},
	"windsurf":  {"mcpServers", "command", "args", "env", "serverUrl", "serverUrl", "", "", "", "", nil},
	"kiro":      {"mcpServers", "command", "args", "env", "url", "url", "", "", "", "", nil},
	"cline":     {"mcpServers", "command", "args", "env", "url", "url", "type", "", "streamableHttp", "sse", nil},
	"zed":       {"context_servers", "command", "args", "env", "url", "", "", "", "", "", nil},
	"jetbrains": {"mcpServers", "command", "args", "env", "url", "", "", "", "", "", nil},
	"goose":     {"extensions", "cmd", "args", "envs", "uri", "", "type", "stdio", "streamable_http", "", []string{"enabled", "name", "timeout"}},
}

// decode reads a snippet in the syntax of its client.
func decode(t *testing.T, c allowlist.Client, text []byte) (content map[string]any) {
	t.Helper()
	switch allowlistjson.ContentType(c) {
	case "application/toml":
		_, err := toml.Decode(string(text), &content)
		must.Succeed(t, err)
	case "application/yaml":
		must.Succeed(t, yaml.Unmarshal(text, &content))
	default:
		must.Succeed(t, json.Unmarshal(text, &content))
	}
	return content
}

// wantReadBack checks that a client reads the definition of a snippet in what is encoded.
func wantReadBack(t *testing.T, s allowlist.Snippet) {
	t.Helper()
	text, err := allowlistjson.EncodeSnippet(s)
	must.Succeed(t, err)
	r, d := readers[s.Client], s.Definition
	servers, _ := decode(t, s.Client, text)[r.servers].(map[string]any)
	server, found := servers[d.Name].(map[string]any)
	if !found || len(servers) != 1 {
		t.Fatalf("%s: no server %s in %s", s.Client, d.Name, text)
	}
	for _, name := range r.required {
		if server[name] == nil {
			t.Errorf("%s: %s is missing in %s", s.Client, name, text)
		}
	}
	kind := r.local
	if d.Package != nil {
		argv := texts(server[r.program])
		if r.args != "" {
			argv = append(argv, texts(server[r.args])...)
		}
		env, _ := server[r.env].(map[string]any)
		if !slices.Equal(argv, d.Package.Command) || !sameValues(env, d.Package.Environment) {
			t.Errorf("%s starts %q with %v, want %+v", s.Client, argv, env, d.Package)
		}
	} else {
		address := server[r.url]
		if kind = r.http; d.Remote.Transport == allowlist.SSE {
			address, kind = server[r.eventsURL], r.sse
		}
		headers, _ := server["headers"].(map[string]any)
		if address != d.Remote.URL || s.Client != "codex" && !sameValues(headers, d.Remote.Headers) {
			t.Errorf("%s reaches %v with %v, want %+v", s.Client, address, headers, d.Remote)
		}
	}
	if r.kind != "" && kind != "" && server[r.kind] != kind {
		t.Errorf("%s: %s is %v, want %s", s.Client, r.kind, server[r.kind], kind)
	}
}

// texts returns a text, or a list of texts, as a list.
func texts(value any) (all []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, v := range value {
			all = append(all, texts(v)...)
		}
	}
	return all
}

func sameValues(got map[string]any, want []allowlist.Value) bool {
	all := map[string]any{}
	for _, v := range want {
		all[v.Name] = v.Value
	}
	return len(got) == len(all) && (len(all) == 0 || reflect.DeepEqual(got, all))
}

// readDocuments returns real documents, each as the record of a server of its own.
func readDocuments(t *testing.T) (all []registry.Record) {
	t.Helper()
	for _, text := range upstream.RealDocuments(t) {
		var d struct{ Name string }
		must.Succeed(t, json.Unmarshal(text, &d))
		r := newRecord(t, d.Name, "1.0.0", "")
		r.Document = text
		all = append(all, r)
	}
	return all
}

// TestSnippetsAreReadBack makes the snippets of real documents for each client, and reads them as
// the client does (contract C-7).
func TestSnippetsAreReadBack(t *testing.T) {
	t.Parallel()
	documents := readDocuments(t)
	for _, c := range allowlist.Clients() {
		made := 0
		for _, r := range documents {
			if s, err := allowlist.NewSnippet(r, c.Client); err == nil {
				made++
				wantReadBack(t, s)
			}
		}
		t.Logf("%s: %d of %d documents", c.Title, made, len(documents))
		if made < len(documents)*6/10 {
			t.Errorf("%s has %d snippets of %d documents", c.Title, made, len(documents))
		}
	}
}

// TestUnlistedSnippets compares the snippets of real documents with the lists of the same servers: a
// list has the command or URL of a snippet, unless that says why lists cannot have it (contract C-7).
func TestUnlistedSnippets(t *testing.T) {
	t.Parallel()
	documents := readDocuments(t)
	var list struct {
		Allowed []struct {
			URL     string   `json:"serverUrl"`
			Command []string `json:"serverCommand"`
		} `json:"allowedMcpServers"`
	}
	must.Succeed(t, json.NewDecoder(bytes.NewReader(encode(t, allowlist.Claude, documents, nil))).Decode(&list))
	commands := map[string]bool{}
	for _, e := range list.Allowed {
		text, err := json.Marshal(e.Command)
		must.Succeed(t, err)
		commands[string(text)] = true
	}
	var requirements struct {
		Servers map[string]struct {
			Identity struct{ URL string }
		} `toml:"mcp_servers"`
	}
	text, _, _ := bytes.Cut(encode(t, allowlist.Codex, documents, nil), []byte("not in the list")) // what it skips follows
	_, err := toml.Decode(string(text), &requirements)
	must.Succeed(t, err)
	unlisted := 0
	for _, r := range documents {
		s, err := allowlist.NewSnippet(r, allowlist.ClientClaude)
		if err == nil && s.Definition.Package != nil {
			text, err := json.Marshal(s.Definition.Package.Command)
			must.Succeed(t, err)
			if commands[string(text)] == (s.Unlisted != "") {
				t.Errorf("%s: %s is in the list: %t, and the snippet says %q", r.Name, text, commands[string(text)], s.Unlisted)
			}
			if s.Unlisted != "" {
				unlisted++
			}
		}
		s, err = allowlist.NewSnippet(r, allowlist.ClientCodex)
		if err != nil {
			continue
		}
		entry, listed := requirements.Servers[s.Definition.Name]
		if listed != (s.Unlisted == "") || listed && s.Definition.Remote.URL != entry.Identity.URL {
			t.Errorf("%s: Codex lists %+v, %t, and the snippet says %q", r.Name, entry, listed, s.Unlisted)
		}
	}
	t.Logf("%d documents, %d with a command that each user completes", len(documents), unlisted)
}

// TestTOMLIsReadBack draws definitions of any text for Codex, and wants a parser of TOML to read the
// same; of other syntaxes too.
func TestTOMLIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a\"'\\\x00\x1f\x7f\n\r\t\u2028\ufeff#[]={}.,😀"))))
		d := allowlist.Definition{Name: text.Draw(rt, "name"), Package: &allowlist.Package{
			Command: rapid.SliceOfN(text, 1, 3).Draw(rt, "command"),
		}}
		for name, value := range rapid.MapOfN(text, text, 0, 3).Draw(rt, "environment") {
			d.Package.Environment = append(d.Package.Environment, allowlist.Value{Name: name, Value: value})
		}
		for _, c := range []allowlist.Client{allowlist.ClientCodex, allowlist.ClientClaude, "goose"} {
			wantReadBack(t, allowlist.Snippet{Client: c, Definition: d})
		}
		var list bytes.Buffer
		e := allowlistjson.NewEncoder()
		d.Remote = &allowlist.Remote{URL: text.Draw(rt, "url")}
		d.Name = "com.example-" + rapid.StringMatching(`[A-Za-z0-9._-]{1,20}`).Draw(rt, "listed")
		must.Succeed(t, e.Define(allowlist.Codex, d))
		must.Succeed(t, e.Encode(&list, allowlist.NewCompiler(allowlist.Output{}, allowlist.Codex).Compile(), allowlist.Codex))
		var content map[string]map[string]map[string]map[string]string
		if _, err := toml.Decode(list.String(), &content); err != nil || content["mcp_servers"][d.Name]["identity"]["url"] != d.Remote.URL {
			rt.Fatalf("%v: %s", err, list.String())
		}
	})
}
