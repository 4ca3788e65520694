package allowlistjson

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

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
