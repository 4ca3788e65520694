package allowlistjson

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

// form is how a client writes servers in its configuration.
type form struct {
	servers          string // the property that has the servers
	local, http, sse members
	syntax           syntax
}

// syntax is a language of configurations.
type syntax struct {
	contentType string
	encode      func(object) ([]byte, error)
}

var (
	inJSON = syntax{"application/json", func(o object) ([]byte, error) { return encode(o) }}
	inTOML = syntax{"application/toml", func(o object) ([]byte, error) { return appendTables(nil, "", o), nil }}
	inYAML = syntax{"application/yaml", encodeYAML}
)

// members are the properties of a server.
type members []member

type member struct {
	name  string
	value any // a part, or the value itself
}

// part returns a part of a definition, and false if the definition lacks it.
type part func(allowlist.Definition) (value any, ok bool)

var (
	named     part = func(d allowlist.Definition) (any, bool) { return d.Name, true }
	program   part = func(d allowlist.Definition) (any, bool) { return d.Package.Command[0], true }
	argv      part = func(d allowlist.Definition) (any, bool) { return d.Package.Command, true }
	everyArg  part = func(d allowlist.Definition) (any, bool) { return d.Package.Command[1:], true }
	arguments part = func(d allowlist.Definition) (any, bool) {
		return d.Package.Command[1:], len(d.Package.Command) > 1
	}
	environment part = func(d allowlist.Definition) (any, bool) { return valueMap(d.Package.Environment) }
	address     part = func(d allowlist.Definition) (any, bool) { return d.Remote.URL, true }
	headers     part = func(d allowlist.Definition) (any, bool) { return valueMap(d.Remote.Headers) }
)

func valueMap(values []allowlist.Value) (any, bool) {
	all := make(map[string]string, len(values))
	for _, v := range values {
		all[v.Name] = v.Value
	}
	return all, len(all) > 0
}

// remote returns the members of a remote whose URL has a name, after others.
func remote(name string, before ...member) members {
	return append(before, member{name, address}, member{"headers", headers})
}

var (
	command    = members{{"command", program}, {"args", arguments}, {"env", environment}}
	typedLocal = append(members{{"type", "stdio"}}, command...)
	typedHTTP  = remote("url", member{"type", "http"})
	typedSSE   = remote("url", member{"type", "sse"})
	allTools   = member{"tools", []string{"*"}}
)

// forms has the form of each client.
var forms = map[allowlist.Client]form{
	allowlist.ClientVSCode: {"servers", typedLocal, typedHTTP, typedSSE, inJSON},
	allowlist.ClientClaude: {"mcpServers", typedLocal, typedHTTP, typedSSE, inJSON},
	allowlist.ClientCursor: {"mcpServers", command, remote("url"), remote("url"), inJSON},
	allowlist.ClientGemini: {"mcpServers", command, remote("httpUrl"), remote("url"), inJSON},
	allowlist.ClientCodex: {"mcp_servers", command, members{
		{"url", address},
		{bearerVariable, codexHeaders(bearerVariable)}, {"env_http_headers", codexHeaders("env_http_headers")},
		{"http_headers", codexHeaders("http_headers")},
	}, nil, inTOML},
	"copilot": {
		"mcpServers", append(append(members{{"type", "local"}}, command...), allTools), append(slices.Clone(typedHTTP), allTools),
		append(slices.Clone(typedSSE), allTools), inJSON,
	},
	"opencode": {
		"mcp", members{{"type", "local"}, {"command", argv}, {"environment", environment}, {"enabled", true}},
		append(remote("url", member{"type", "remote"}), member{"enabled", true}),
		append(remote("url", member{"type", "remote"}), member{"enabled", true}), inJSON,
	},
	"windsurf":  {"mcpServers", command, remote("serverUrl"), remote("serverUrl"), inJSON},
	"kiro":      {"mcpServers", command, remote("url"), remote("url"), inJSON},
	"cline":     {"mcpServers", command, remote("url", member{"type", "streamableHttp"}), typedSSE, inJSON},
	"zed":       {"context_servers", members{{"command", program}, {"args", everyArg}, {"env", environment}}, remote("url"), nil, inJSON},
	"jetbrains": {"mcpServers", command, remote("url"), nil, inJSON},
	"goose": {
		"extensions", members{
			{"enabled", true}, {"type", "stdio"}, {"name", named}, {"cmd", program}, {"args", everyArg}, {"envs", environment}, {"timeout", 300},
		},
		append(remote("uri", member{"enabled", true}, member{"type", "streamable_http"}, member{"name", named}), member{"timeout", 300}), nil,
		inYAML,
	},
}

func (f form) server(d allowlist.Definition) object {
	chosen := f.http
	switch {
	case d.Package != nil:
		chosen = f.local
	case d.Remote.Transport == allowlist.SSE:
		chosen = f.sse
	}
	var o object
	for _, m := range chosen {
		if from, isPart := m.value.(part); isPart {
			value, ok := from(d)
			if !ok {
				continue
			}
			m.value = value
		}
		o = append(o, m)
	}
	return o
}

// bearerVariable is the property of Codex that names the variable with a bearer token.
const bearerVariable = "bearer_token_env_var"

// ownVariable is a header that is the value of a variable, alone or as a bearer token.
var ownVariable = regexp.MustCompile(`^(Bearer )?\$\{([A-Z0-9_]+)\}$`)

// anyReference is a reference to a variable within a text.
var anyReference = regexp.MustCompile(`\$\{([A-Z0-9_]+)\}`)

// codexHeaders returns the part that has the headers of a property of Codex, which takes a whole
// header from a variable, or a bearer token. Other headers the user completes.
func codexHeaders(property string) part {
	return func(d allowlist.Definition) (any, bool) {
		all := map[string]string{}
		for _, v := range d.Remote.Headers {
			at, value := "http_headers", anyReference.ReplaceAllString(v.Value, "<$1>")
			switch found := ownVariable.FindStringSubmatch(v.Value); {
			case found != nil && found[1] == "":
				at, value = "env_http_headers", found[2]
			case found != nil && strings.EqualFold(v.Name, "Authorization"):
				at, value = bearerVariable, found[2]
			}
			if at != property {
				continue
			}
			if at == bearerVariable {
				return value, true
			}
			all[v.Name] = value
		}
		return all, len(all) > 0
	}
}

// object is an object whose members keep their order.
type object []member

func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, m := range o {
		for j, v := range []any{m.name, m.value} {
			encoded, err := encode(v)
			if err != nil {
				return nil, err
			}
			if i+j > 0 {
				text = append(text, ",:"[j])
			}
			text = append(text, encoded...)
		}
	}
	return append(text, '}'), nil
}

func encodeYAML(o object) ([]byte, error) {
	text, err := yaml.Dump(o, yaml.WithIndent(2))
	if err != nil {
		return nil, fmt.Errorf("encode the settings of a client: %w", err)
	}
	return text, nil
}

func (o object) MarshalYAML() (any, error) {
	node := yaml.Node{Kind: yaml.MappingNode}
	for _, m := range o {
		var name, value yaml.Node
		if err := cmp.Or(name.Encode(m.name), value.Encode(m.value)); err != nil {
			return nil, fmt.Errorf("encode the settings of a client: %w", err)
		}
		node.Content = append(node.Content, &name, &value)
	}
	return &node, nil
}

// appendTables appends the tables of an object (TOML 1.0), which has tables or values, not both.
func appendTables(text []byte, path string, o object) []byte {
	for i, m := range o {
		if inner, isTable := m.value.(object); isTable {
			text = appendTables(text, strings.TrimPrefix(path+"."+tomlKey(m.name), "."), inner)
			continue
		}
		if i == 0 {
			text = fmt.Appendf(text, "[%s]\n", path)
		}
		text = fmt.Appendf(text, "%s = %s\n", tomlKey(m.name), tomlValue(m.value))
	}
	return text
}

// tomlValue returns a text, or a list or a table of texts on one line. A text is as in JSON, except
// that TOML has no delete character in it.
func tomlValue(value any) string {
	var items []string
	switch value := value.(type) {
	case []string:
		for _, item := range value {
			items = append(items, tomlValue(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]string:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			items = append(items, tomlKey(name)+" = "+tomlValue(value[name]))
		}
		return "{ " + strings.Join(items, ", ") + " }"
	}
	text, _ := encodeIndented(value, "", "") // a text has an encoding
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\x7f", `\u007F`)
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// tomlKey returns a key, in quotes if it has other characters than letters, digits, "_" and "-".
func tomlKey(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return tomlValue(name)
}

// EncodeSnippet returns what a user adds to the configuration of a client.
func EncodeSnippet(s allowlist.Snippet) ([]byte, error) {
	f := forms[s.Client]
	content := object{{f.servers, object{{s.Definition.Name, f.server(s.Definition)}}}}
	return f.syntax.encode(append(newInputs(s.Inputs), content...))
}

// ContentType returns the type of what EncodeSnippet returns for a client.
func ContentType(c allowlist.Client) string { return forms[c].syntax.contentType }

// newInputs returns the member that has what users of VS Code enter, if that is anything.
func newInputs(inputs []allowlist.Input) object {
	var all []object
	for _, in := range inputs {
		one := object{{"type", "promptString"}, {"id", in.ID}, {"description", in.Description}}
		if in.Secret {
			one = append(one, member{"password", true})
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil
	}
	return object{{"inputs", all}}
}

// InstallLink returns the link that installs the server in the client by a click; empty for a
// client without links. VS Code has vscode:mcp/install, Cursor its deep links.
func InstallLink(s allowlist.Snippet) (string, error) {
	d := s.Definition
	server := forms[s.Client].server(d)
	switch s.Client {
	case allowlist.ClientVSCode:
		config, err := encodeIndented(slices.Concat(object{{"name", d.Name}}, newInputs(s.Inputs), server), "", "")
		return "vscode:mcp/install?" + escapeComponent(bytes.TrimSpace(config)), err
	case allowlist.ClientCursor:
		config, err := encodeIndented(server, "", "")
		coded := base64.StdEncoding.EncodeToString(bytes.TrimSpace(config))
		return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + escapeComponent([]byte(d.Name)) + "&config=" +
			escapeComponent([]byte(coded)), err
	}
	return "", nil
}

// escapeComponent escapes a text as encodeURIComponent of JavaScript does: a space is %20 and not
// "+", which clients would keep.
func escapeComponent(text []byte) string {
	return strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20")
}
