// Package allowlist compiles the servers of the registry into the lists by which MCP clients
// restrict what their users may run. A client enforces the list; a registry cannot.
//
// An entry allows exactly what the document of a server says: the URL of a remote, or the command
// by which a client starts a package. Whatever would allow more than that is not in the list, but
// is skipped with the reason.
//
// A registry may have hundreds of thousands of servers, so a Compiler keeps no documents: it passes
// on definitions at once, and keeps of each server its entries and names only.
package allowlist

import (
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewreader"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Format is the form of the list of one client.
type Format string

// The formats of allow lists.
const (
	Claude    Format = "claude"     // managed-settings.json of Claude Code
	VSCode    Format = "vscode"     // managed-settings.json of GitHub Copilot in VS Code
	Gemini    Format = "gemini"     // settings.json of Gemini CLI
	Kiro      Format = "kiro"       // the MCP registry file of Kiro
	Codex     Format = "codex"      // requirements.toml of Codex
	ClaudeMCP Format = "claude-mcp" // managed-mcp.json of Claude Code, which defines the servers
)

// Formats returns all formats, those of entries first.
func Formats() []Format { return append([]Format{Claude, VSCode}, definitionFormats...) }

// definitionFormats are the formats that define the servers.
var definitionFormats = []Format{Gemini, Kiro, Codex, ClaudeMCP}

// program returns the client that reads the definitions of a format.
func (f Format) program() Program {
	return programOf(map[Format]Client{Gemini: ClientGemini, Kiro: "kiro", Codex: ClientCodex, ClaudeMCP: ClientClaude}[f])
}

// File returns the name of the list: the format, and what kind of text it is.
func (f Format) File() string {
	if f == Codex {
		return string(f) + ".toml"
	}
	return string(f) + ".json"
}

// ParseFormat returns the format with the given name. It returns fault.Invalid for any other text.
func ParseFormat(s string) (Format, error) {
	return fault.OneOf("the format of an allow list", s, Formats()...)
}

// Entry allows or denies a server. It has exactly one of the fields.
type Entry struct {
	URL     string   // a "*" matches any text
	Command []string // must be equal
	Name    string   // that the user gives to the server
}

// Definition is how a client reaches or starts a server. It has either a remote or a package.
type Definition struct {
	Name        string // of the server, without a slash in the lists
	Title       string // may be empty
	Description string
	Version     string
	Remote      *Remote
	Package     *Package
}

// Remote is a server that clients reach by URL.
type Remote struct {
	Transport string // StreamableHTTP or SSE
	URL       string
	Headers   []Value
}

// Package is a package that clients download and start.
type Package struct {
	RegistryType, Identifier           string
	Command                            []string // the program and its arguments
	RuntimeArguments, PackageArguments []string // without those that a client adds itself
	Environment                        []Value
}

// Value is a header or an environment variable. Its value may be empty: the user enters it.
type Value struct{ Name, Value string }

// Skipped is something that the format cannot express.
type Skipped struct {
	Name    registry.Name
	Version registry.Version
	Reason  string
}

// Clone returns s in memory of its own. What Output.Skip takes may share the memory of many
// records.
func (s Skipped) Clone() Skipped {
	return Skipped{s.Name.Clone(), s.Version.Clone(), strings.Clone(s.Reason)}
}

// Source reads the servers of which allow lists are made. It is safe for concurrent use.
type Source struct{ servers registrystore.SnapshotReader }

// NewSource returns a source of the servers that the store has.
func NewSource(servers registrystore.SnapshotReader) *Source { return &Source{servers} }

// In returns a source of the servers of a view.
func (s *Source) In(v view.View) *Source { return &Source{viewreader.New(s.servers, v)} }

// Compile makes the lists of formats of all servers: the latest version of each is allowed, and
// every deleted version denied. It reads the whole registry once. It returns fault.Unavailable when
// the database is not available, and the errors of o.Define.
func (s *Source) Compile(ctx context.Context, o Output, formats ...Format) (*Lists, error) {
	c := NewCompiler(o, formats...)
	err := history.EachVersion(ctx, s.servers, func(r registry.Record) error {
		switch {
		case r.Status == registry.StatusDeleted:
			c.Deny(r)
		case r.Latest:
			return c.Allow(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.Compile(), nil
}
