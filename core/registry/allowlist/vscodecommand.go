package allowlist

import (
	"errors"
	"slices"
	"strings"
)

var errAsked = errors.New("VS Code asks the user for an argument of a package")

// vscodeCommand returns the program and the arguments by which VS Code starts a package that a user
// installs from the registry (microsoft/vscode at 022dd59,
// src/vs/platform/mcp/common/mcpManagementService.ts, getMcpServerConfigurationFromManifest). It
// returns an error if the command is not the same for all users.
func (p pkg) vscodeCommand() ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	argv := []string{runtimes[p.registryType][0].name} // VS Code ignores runtimeHint
	if p.registryType == typeOCI {
		argv = append(argv, "run", "-i", "--rm")
	}
	argv = appendVSCodeArguments(argv, p.runtimeArguments)
	if p.registryType == typeOCI {
		for _, name := range p.variableNames() {
			argv = append(argv, "-e", name)
		}
	}
	reference := runtimes[p.registryType][0].exact(p)
	if p.registryType == typeOCI { // unlike other clients, VS Code appends the version to an image that has a tag too
		reference = withVersion(p, ":")
	}
	argv = append(argv, reference)
	if p.registryType == "nuget" {
		argv = append(argv, "--yes")
		if len(p.packageArguments) > 0 {
			argv = append(argv, "--")
		}
	}
	argv = appendVSCodeArguments(argv, p.packageArguments)
	if slices.ContainsFunc(argv, func(a string) bool { return strings.Contains(a, "$") }) {
		return nil, errAsked
	}
	return argv, nil
}

// vscodeInput is in the place of what VS Code requests from the user.
const vscodeInput = "${input:"

func appendVSCodeArguments(argv []string, arguments []argument) []string {
	for _, a := range arguments {
		asks := a.description != "" || a.hasDefault
		switch {
		case a.named && a.name == "":
			continue
		case a.named:
			argv = append(argv, a.name)
			if a.value == "" && !asks {
				continue // an option without a value
			}
		case a.value == "" && (a.hint == "" || !asks):
			argv = append(argv, a.hint)
			continue
		}
		if a.value == "" {
			argv = append(argv, vscodeInput)
			continue
		}
		value := a.value
		for name := range a.variables {
			value = strings.Replace(value, "{"+name+"}", vscodeInput, 1)
		}
		argv = append(argv, value)
	}
	return argv
}
