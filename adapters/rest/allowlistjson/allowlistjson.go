// Package allowlistjson encodes allow lists, and what a user adds to install a server, in the JSON of
// the clients that read them.
package allowlistjson

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

// Encode returns a list in its format. Equal lists give the same bytes.
func Encode(l allowlist.List) ([]byte, error) {
	switch l.Format {
	case allowlist.Gemini:
		return encode(newGeminiSettings(l))
	case allowlist.Kiro:
		return encode(newKiroRegistry(l))
	}
	return encode(managedSettings{newEntries(l.Allowed), newEntries(l.Denied)})
}

// encode returns JSON that a person can read and edit.
func encode(content any) ([]byte, error) { return encodeIndented(content, "  ") }

func encodeIndented(content any, indent string) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(content); err != nil {
		return nil, fmt.Errorf("encode the settings of a client: %w", err)
	}
	return text.Bytes(), nil
}

// managedSettings are the settings of Claude Code and of GitHub Copilot in VS Code (contract C-3).
type managedSettings struct {
	Allowed []entry `json:"allowedMcpServers"`
	Denied  []entry `json:"deniedMcpServers"`
}

type entry struct {
	URL     string   `json:"serverUrl,omitempty"`
	Command []string `json:"serverCommand,omitempty"`
	Name    string   `json:"serverName,omitempty"`
}

func newEntries(entries []allowlist.Entry) []entry {
	all := make([]entry, len(entries))
	for i, e := range entries {
		all[i] = entry(e)
	}
	return all
}

// geminiSettings are the settings of Gemini CLI: the names that are allowed, each with a definition
// that other settings of the user cannot replace, and the names that are excluded (contract C-4).
type geminiSettings struct {
	MCP     geminiNames             `json:"mcp"`
	Servers map[string]geminiServer `json:"mcpServers"`
}

type geminiNames struct {
	Allowed  []string `json:"allowed"`
	Excluded []string `json:"excluded"`
}

type geminiServer struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	HTTPURL string            `json:"httpUrl,omitempty"` // streamable HTTP
	URL     string            `json:"url,omitempty"`     // server-sent events
	Headers map[string]string `json:"headers,omitempty"`
}

func newGeminiSettings(l allowlist.List) geminiSettings {
	g := geminiSettings{geminiNames{[]string{}, append([]string{}, l.Excluded...)}, map[string]geminiServer{}}
	for _, d := range l.Definitions {
		g.MCP.Allowed = append(g.MCP.Allowed, d.Name)
		g.Servers[d.Name] = newGeminiServer(d)
	}
	return g
}

func newGeminiServer(d allowlist.Definition) geminiServer {
	switch {
	case d.Package != nil:
		return geminiServer{Command: d.Package.Command[0], Args: d.Package.Command[1:], Env: valueMap(d.Package.Environment)}
	case d.Remote.Transport == allowlist.SSE:
		return geminiServer{URL: d.Remote.URL, Headers: valueMap(d.Remote.Headers)}
	}
	return geminiServer{HTTPURL: d.Remote.URL, Headers: valueMap(d.Remote.Headers)}
}

func valueMap(values []allowlist.Value) map[string]string {
	all := make(map[string]string, len(values))
	for _, v := range values {
		all[v.Name] = v.Value
	}
	return all
}

// kiroRegistry is the MCP registry file of Kiro: documents with at most one remote or package
// (contract C-4).
type kiroRegistry struct {
	Servers []kiroEntry `json:"servers"`
}

type kiroEntry struct {
	Server kiroServer `json:"server"`
}

type kiroServer struct {
	Name        string        `json:"name"`
	Title       string        `json:"title,omitempty"`
	Description string        `json:"description"`
	Version     string        `json:"version"`
	Remotes     []kiroRemote  `json:"remotes,omitempty"`
	Packages    []kiroPackage `json:"packages,omitempty"`
}

type kiroRemote struct {
	Type    string      `json:"type"`
	URL     string      `json:"url"`
	Headers []kiroValue `json:"headers,omitempty"`
}

type kiroPackage struct {
	RegistryType     string         `json:"registryType"`
	Identifier       string         `json:"identifier"`
	Transport        kiroTransport  `json:"transport"`
	RuntimeArguments []kiroArgument `json:"runtimeArguments,omitempty"`
	PackageArguments []kiroArgument `json:"packageArguments,omitempty"`
	Environment      []kiroValue    `json:"environmentVariables,omitempty"`
}

type kiroTransport struct {
	Type string `json:"type"`
}

type kiroArgument struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type kiroValue struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

func newKiroRegistry(l allowlist.List) kiroRegistry {
	file := kiroRegistry{make([]kiroEntry, len(l.Definitions))}
	for i, d := range l.Definitions {
		s := kiroServer{Name: d.Name, Title: d.Title, Description: d.Description, Version: d.Version}
		if r := d.Remote; r != nil {
			s.Remotes = []kiroRemote{{r.Transport, r.URL, kiroValues(r.Headers)}}
		}
		if p := d.Package; p != nil {
			s.Packages = []kiroPackage{{
				p.RegistryType, p.Identifier, kiroTransport{"stdio"}, kiroArguments(p.RuntimeArguments), kiroArguments(p.PackageArguments), kiroValues(p.Environment),
			}}
		}
		file.Servers[i] = kiroEntry{s}
	}
	return file
}

func kiroArguments(argv []string) []kiroArgument {
	var all []kiroArgument
	for _, a := range argv {
		all = append(all, kiroArgument{"positional", a})
	}
	return all
}

func kiroValues(values []allowlist.Value) []kiroValue {
	var all []kiroValue
	for _, v := range values {
		all = append(all, kiroValue(v))
	}
	return all
}
