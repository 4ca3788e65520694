package allowlist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Client is a client whose users install servers.
type Client string

// The clients that code treats in a way of their own. Clients returns all.
const (
	ClientClaude Client = "claude"
	ClientVSCode Client = "vscode"
	ClientCursor Client = "cursor"
	ClientGemini Client = "gemini"
	ClientCodex  Client = "codex"
)

// Program describes a client. A new client needs one here, and its form in package allowlistjson.
type Program struct {
	Client Client
	Title  string
	File   string // in which users add a server

	// How a text takes the value of a variable of the user, %s, and of one that the user may leave
	// out. VS Code has inputs in place of references.
	reference, optional string
	replaces            place  // where the client replaces references; elsewhere the user does it by hand
	reserved            string // characters that may begin a reference
	fullName            bool   // servers have the name that they have in the allow list
	noEvents            bool   // it has no remotes with server-sent events
}

// place is a set of places in a definition.
type place uint8

const (
	inURL place = 1 << iota
	inHeader
	inEnvironment
	inArgument
	everywhere = inURL | inHeader | inEnvironment | inArgument
)

// programs has the clients as they document themselves; the golden files of package allowlistjson
// cite where.
var programs = []Program{
	{Client: ClientVSCode, Title: "VS Code", File: ".vscode/mcp.json", replaces: everywhere},
	{Client: ClientClaude, Title: "Claude Code", File: ".mcp.json", reference: "${%s}", optional: "${%s:-}", replaces: everywhere},
	{Client: ClientCursor, Title: "Cursor", File: ".cursor/mcp.json", reference: "${env:%s}", replaces: everywhere},
	{Client: ClientGemini, Title: "Gemini CLI", File: ".gemini/settings.json", reference: "${%s}", replaces: everywhere, fullName: true},
	{Client: ClientCodex, Title: "Codex", File: "~/.codex/config.toml", reference: "${%s}", replaces: inHeader, fullName: true, noEvents: true},
	{Client: "copilot", Title: "GitHub Copilot CLI", File: "~/.copilot/mcp-config.json", reference: "${%s}", optional: "${%s:-}", replaces: inEnvironment},
	{Client: "opencode", Title: "opencode", File: "opencode.json", reference: "{env:%s}", replaces: everywhere, reserved: "{"},
	{Client: "windsurf", Title: "Windsurf", File: "~/.codeium/windsurf/mcp_config.json", reference: "${env:%s}", replaces: everywhere},
	{Client: "kiro", Title: "Kiro", File: ".kiro/settings/mcp.json", reference: "${%s}", replaces: inHeader | inEnvironment},
	{Client: "cline", Title: "Cline", File: "cline_mcp_settings.json", reference: "${env:%s}", replaces: everywhere},
	{Client: "zed", Title: "Zed", File: "~/.config/zed/settings.json", noEvents: true},
	{Client: "jetbrains", Title: "JetBrains AI Assistant", File: "Settings | Tools | AI Assistant | Model Context Protocol (MCP)", noEvents: true},
	{Client: "goose", Title: "Goose", File: "~/.config/goose/config.yaml", noEvents: true},
}

// Clients returns all clients.
func Clients() []Program { return slices.Clone(programs) }

// ClientNames returns the names of all clients.
func ClientNames() []string {
	return each.Map(programs, func(p Program) string { return string(p.Client) })
}

// ParseClient returns the client with the given name. It returns fault.Invalid for any other text.
func ParseClient(s string) (Client, error) {
	name, err := fault.OneOf("client", s, ClientNames()...)
	return Client(name), err
}

// programOf returns the description of a client.
func programOf(c Client) Program {
	at := slices.IndexFunc(programs, func(p Program) bool { return p.Client == c })
	return programs[max(at, 0)]
}

// filler returns what is in the place of a value that the user has to enter: a reference to a
// variable of the user, or a name in angle brackets, or no text for what may be left out.
func (p Program) filler(s server, at place) filler {
	if p.replaces&at == 0 {
		return func(name string, about input) string {
			if !about.required && !about.secret {
				return ""
			}
			return "<" + plainName(name) + ">"
		}
	}
	return func(name string, about input) string {
		form := p.reference
		if p.optional != "" && !about.required {
			form = p.optional // Claude Code would otherwise pass on the reference itself
		}
		return fmt.Sprintf(form, s.variableName(name))
	}
}

// marks returns the characters by which a value could have a reference.
func (p Program) marks() string { return "$" + p.reserved }

// plainName returns a name of a value without other characters than clients accept.
func plainName(name string) string { return strings.Trim(notInInput.ReplaceAllString(name, "-"), "-") }
