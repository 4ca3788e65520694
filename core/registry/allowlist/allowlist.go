// Package allowlist compiles the servers of the registry into the lists by which MCP clients
// restrict what their users may run. A client enforces such a list; a registry cannot.
//
// An entry allows exactly what the document of a server says: the URL of a remote, or the command by
// which a client starts a package. Whatever would allow more than that is not in the list, but in
// List.Skipped with the reason.
package allowlist

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Format is the form of the list of one client.
type Format string

// The formats of allow lists.
const (
	Claude Format = "claude" // managed-settings.json of Claude Code
	VSCode Format = "vscode" // managed-settings.json of GitHub Copilot in VS Code
	Gemini Format = "gemini" // settings.json of Gemini CLI
	Kiro   Format = "kiro"   // the MCP registry file of Kiro
)

// Formats returns all formats.
func Formats() []Format { return []Format{Claude, VSCode, Gemini, Kiro} }

// ParseFormat returns the format with the given name. It returns fault.Invalid for any other text.
func ParseFormat(s string) (Format, error) {
	if f := Format(s); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fault.Newf(fault.Invalid, "the format of an allow list must be claude, vscode, gemini or kiro, not %q", s)
}

// List is a compiled allow list. Claude and VSCode have entries, the other formats definitions.
type List struct {
	Format      Format
	Allowed     []Entry // ordered, each once, as Denied
	Denied      []Entry // wins over Allowed
	Definitions []Definition
	Excluded    []string  // names of servers that were deleted; Gemini only
	Skipped     []Skipped // ordered by name and version
}

// Entry allows or denies a server. It has exactly one of the fields.
type Entry struct {
	URL     string   // a "*" matches any text
	Command []string // must be equal
	Name    string   // that the user gives to the server
}

// Definition is how a client reaches or starts a server. It has either a remote or a package.
type Definition struct {
	Name        string // of the server, without a slash
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

// Compiler makes a list from records, which may come in any order.
type Compiler struct {
	format  Format
	listed  []server
	removed []server
	skipped []Skipped
}

// NewCompiler returns a compiler for a list of the given format.
func NewCompiler(f Format) *Compiler { return &Compiler{format: f} }

// Allow adds the latest version of a server.
func (c *Compiler) Allow(r registry.Record) { c.add(r, &c.listed) }

// Deny adds a version that was deleted. What it has in common with an allowed version stays allowed.
func (c *Compiler) Deny(r registry.Record) { c.add(r, &c.removed) }

func (c *Compiler) add(r registry.Record, to *[]server) {
	s, err := parseServer(r)
	if err != nil {
		c.skip(r.Release, "its document cannot be read: "+err.Error())
		return
	}
	*to = append(*to, s)
}

func (c *Compiler) skip(r registry.Release, reason string) {
	c.skipped = append(c.skipped, Skipped{r.Name, r.Version, reason})
}

// Compile returns the list of what was added.
func (c *Compiler) Compile() List {
	byName := func(a, b server) int {
		return compareReleases(a.release.Name, b.release.Name, a.release.Version, b.release.Version)
	}
	slices.SortFunc(c.listed, byName)
	slices.SortFunc(c.removed, byName)
	list := List{Format: c.format}
	switch c.format {
	case Gemini, Kiro:
		c.addDefinitions(&list)
	default:
		c.addEntries(&list)
	}
	slices.SortStableFunc(c.skipped, func(a, b Skipped) int { return compareReleases(a.Name, b.Name, a.Version, b.Version) })
	list.Skipped = c.skipped
	return list
}

func compareReleases(a, b registry.Name, av, bv registry.Version) int {
	if order := strings.Compare(a.String(), b.String()); order != 0 {
		return order
	}
	return strings.Compare(av.String(), bv.String())
}
