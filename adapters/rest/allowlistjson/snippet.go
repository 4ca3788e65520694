package allowlistjson

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

// EncodeSnippet returns what a user adds to the configuration of a client.
func EncodeSnippet(s allowlist.Snippet) ([]byte, error) {
	d := s.Definition
	switch s.Client {
	case allowlist.ClientGemini:
		return encode(geminiSnippet{map[string]geminiServer{d.Name: newGeminiServer(d)}})
	case allowlist.ClientVSCode:
		return encode(vscodeSnippet{newInputs(s.Inputs), map[string]clientServer{d.Name: newClientServer(d, true)}})
	case allowlist.ClientCursor:
		return encode(clientSnippet{map[string]clientServer{d.Name: newClientServer(d, false)}})
	}
	return encode(clientSnippet{map[string]clientServer{d.Name: newClientServer(d, true)}})
}

type geminiSnippet struct {
	Servers map[string]geminiServer `json:"mcpServers"`
}

// clientSnippet is the form of Claude Code (.mcp.json) and of Cursor (mcp.json).
type clientSnippet struct {
	Servers map[string]clientServer `json:"mcpServers"`
}

// vscodeSnippet is the form of VS Code (mcp.json).
type vscodeSnippet struct {
	Inputs  []promptInput           `json:"inputs,omitempty"`
	Servers map[string]clientServer `json:"servers"`
}

type promptInput struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	Description string `json:"description"`
	Password    bool   `json:"password,omitempty"`
}

type clientServer struct {
	Type    string            `json:"type,omitempty"` // Cursor has no type
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

func newClientServer(d allowlist.Definition, typed bool) clientServer {
	var s clientServer
	switch {
	case d.Package != nil:
		s = clientServer{
			Type: "stdio", Command: d.Package.Command[0], Args: d.Package.Command[1:],
			Env: valueMap(d.Package.Environment),
		}
	case d.Remote.Transport == allowlist.SSE:
		s = clientServer{Type: "sse", URL: d.Remote.URL, Headers: valueMap(d.Remote.Headers)}
	default:
		s = clientServer{Type: "http", URL: d.Remote.URL, Headers: valueMap(d.Remote.Headers)}
	}
	if !typed {
		s.Type = ""
	}
	return s
}

func newInputs(inputs []allowlist.Input) []promptInput {
	var all []promptInput
	for _, in := range inputs {
		all = append(all, promptInput{"promptString", in.ID, in.Description, in.Secret})
	}
	return all
}

// InstallLink returns the link that installs the server in the client by a click; empty for a
// client without such links. VS Code has vscode:mcp/install, Cursor its deep links.
func InstallLink(s allowlist.Snippet) (string, error) {
	d := s.Definition
	switch s.Client {
	case allowlist.ClientVSCode:
		config, err := encodeIndented(vscodeLink{d.Name, newInputs(s.Inputs), newClientServer(d, true)}, "", "")
		return "vscode:mcp/install?" + escapeComponent(bytes.TrimSpace(config)), err
	case allowlist.ClientCursor:
		config, err := encodeIndented(newClientServer(d, false), "", "")
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

// vscodeLink is the configuration of a server in a link for VS Code.
type vscodeLink struct {
	Name   string        `json:"name"`
	Inputs []promptInput `json:"inputs,omitempty"`
	clientServer
}
