package allowlist_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// This file plays what VS Code does when a user installs a server from a registry, after
// microsoft/vscode at 022dd59, src/vs/platform/mcp/common/mcpManagementService.ts
// (getMcpServerConfigurationFromManifest), against the list that the service gives for VS Code. It
// shares no code with the package.

// vscodeServer is a server in the configuration of VS Code.
type vscodeServer struct {
	name, url string
	command   []string
	asks      bool // the user completes the command
}

// shape is the part of a document that VS Code reads.
type shape struct {
	Name     string
	Remotes  []struct{ URL string }
	Packages []shapePackage
}

type shapePackage struct {
	RegistryType, Identifier, Version  string
	RuntimeArguments, PackageArguments []shapeArgument
	EnvironmentVariables               []struct{ Name string }
}

type shapeArgument struct {
	Type, Name, Value, ValueHint, Description string
	Default                                   *string
	Variables                                 map[string]any
}

// installs returns the servers that VS Code stores for a document: one for each type of package, of
// the first package of the type, and one for the first remote.
func (s shape) installs() []vscodeServer {
	var all []vscodeServer
	var types []string
	for _, p := range s.Packages {
		if !slices.Contains(types, p.RegistryType) && p.RegistryType != "mcpb" { // of which VS Code starts nothing
			types = append(types, p.RegistryType)
			argv := p.commandLine()
			all = append(all, vscodeServer{
				name: s.Name, command: argv, asks: strings.Contains(strings.Join(argv, " "), "${input:"),
			})
		}
	}
	if len(s.Remotes) > 0 {
		all = append(all, vscodeServer{name: s.Name, url: s.Remotes[0].URL})
	}
	return all
}

func (p shapePackage) commandLine() []string {
	reference := func(separator string) string {
		if p.Version == "" {
			return p.Identifier
		}
		return p.Identifier + separator + p.Version
	}
	before := valuesOf(p.RuntimeArguments)
	after := valuesOf(p.PackageArguments)
	switch p.RegistryType {
	case "npm":
		return slices.Concat([]string{"npx"}, before, []string{reference("@")}, after)
	case "pypi":
		return slices.Concat([]string{"uvx"}, before, []string{reference("==")}, after)
	case "nuget":
		quiet := []string{reference("@"), "--yes"}
		if len(p.PackageArguments) > 0 {
			quiet = append(quiet, "--")
		}
		return slices.Concat([]string{"dnx"}, before, quiet, after)
	case "oci":
		var env []string
		for _, v := range p.EnvironmentVariables {
			env = append(env, "-e", v.Name)
		}
		return slices.Concat([]string{"docker", "run", "-i", "--rm"}, before, env, []string{reference(":")}, after)
	}
	return slices.Concat([]string{p.RegistryType}, before, after)
}

func valuesOf(arguments []shapeArgument) []string {
	var argv []string
	for _, a := range arguments {
		asks := a.Description != "" || a.Default != nil
		if a.Type == "named" {
			if a.Name == "" {
				continue
			}
			argv = append(argv, a.Name)
			if a.Value == "" {
				if asks {
					argv = append(argv, "${input:"+strings.TrimLeft(a.Name, "-")+"}")
				}
				continue
			}
		}
		switch {
		case a.Value != "":
			value := a.Value
			for name := range a.Variables {
				value = strings.Replace(value, "{"+name+"}", "${input:"+name+"}", 1)
			}
			argv = append(argv, value)
		case a.ValueHint != "" && asks:
			argv = append(argv, "${input:"+a.ValueHint+"}")
		default:
			argv = append(argv, a.ValueHint)
		}
	}
	return argv
}

// permits reports whether a list allows a server: an entry has its URL, its command or its name,
// and none that denies it.
func permits(l list, s vscodeServer) bool {
	address, _ := parseWebAddress(s.url)
	matches := func(e allowlist.Entry) bool {
		switch {
		case e.URL != "":
			return s.url != "" && mayConcern(e, address.host) && copilotMatches(true)(e.URL, s.url)
		case e.Name != "":
			return e.Name == s.name
		}
		return slices.Equal(e.Command, s.command)
	}
	return slices.ContainsFunc(l.Allowed, matches) && !slices.ContainsFunc(l.Denied, matches)
}

// readShapes returns the records of real documents, with what VS Code reads of each.
func readShapes(t *testing.T) (records []registry.Record, shapes []shape) {
	t.Helper()
	for i, text := range upstream.RealDocuments(t) {
		var s shape
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
		r := newRecord(t, s.Name, fmt.Sprintf("1.0.%d", i), "")
		r.Document = text
		records, shapes = append(records, r), append(shapes, s)
	}
	return records, shapes
}

// isRefused reports whether VS Code would start something else than the package: a word before it
// is the package for npx and uvx.
func (s shape) isRefused(server vscodeServer) bool {
	for _, p := range s.Packages {
		if (p.RegistryType == "npm" || p.RegistryType == "pypi") && slices.Equal(p.commandLine(), server.command) {
			return slices.ContainsFunc(p.RuntimeArguments, func(a shapeArgument) bool {
				return a.Type == "positional" && !strings.HasPrefix(a.Value, "-")
			})
		}
	}
	return false
}

// TestVSCodeInstallsAreAllowed: VS Code may start what users install from the registry, and nothing
// else (contract C-3 and C-5).
func TestVSCodeInstallsAreAllowed(t *testing.T) {
	t.Parallel()
	records, shapes := readShapes(t)
	list := compile(t, allowlist.VSCode, records, nil)
	passed, asked, refused := 0, 0, 0
	for _, s := range shapes {
		for _, server := range s.installs() {
			allowed := permits(list, server)
			switch {
			case s.isRefused(server):
				refused++
				if allowed {
					t.Errorf("%s: %q is allowed, which starts another package", s.Name, server.command)
				}
			case server.asks:
				asked++
			case !allowed && !strings.Contains(server.url, "{"):
				t.Errorf("%s: %q %s is blocked", s.Name, server.command, server.url)
			default:
				passed++
			}
		}
	}
	t.Logf("%d documents: %d installations are allowed, %d start another package, and %d ask for an argument",
		len(shapes), passed, refused, asked)
	if passed < len(shapes)*9/10 {
		t.Errorf("only %d installations of %d documents are allowed", passed, len(shapes))
	}
}

// TestVSCodeBlocksOtherServers plays installations of documents that are not in the list, and
// changed commands and URLs of those that are.
func TestVSCodeBlocksOtherServers(t *testing.T) {
	t.Parallel()
	records, shapes := readShapes(t)
	list := compile(t, allowlist.VSCode, records[:len(records)/2], nil)
	var listed []vscodeServer
	for _, s := range shapes[:len(records)/2] {
		listed = append(listed, s.installs()...)
	}
	sameAs := func(a vscodeServer) bool {
		return slices.ContainsFunc(listed, func(b vscodeServer) bool {
			return a.name == b.name || a.url != "" && a.url == b.url ||
				a.url == "" && b.url == "" && slices.Equal(a.command, b.command)
		})
	}
	for _, s := range shapes[len(records)/2:] {
		for _, server := range s.installs() {
			if permits(list, server) && !sameAs(server) {
				t.Errorf("%s is not in the list, and allowed: %q %s", s.Name, server.command, server.url)
			}
		}
	}
	for _, server := range listed {
		changed := vscodeServer{
			name: "other", url: server.url, command: slices.Concat(server.command, []string{"--more"}),
		}
		if server.url != "" {
			changed.command, changed.url = nil, server.url+"/../other"
		}
		if permits(list, changed) && !strings.Contains(server.url, "{") {
			t.Errorf("%q %s is allowed", changed.command, changed.url)
		}
	}
}
