package allowlist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// runtime is a program that downloads and starts packages of one type.
type runtime struct {
	start  []string // arguments before all others
	quiet  []string // arguments so that it starts without a question
	behind bool     // quiet comes after the package, and "--" before the arguments of the package
	exact  func(p pkg) string
	flags  []string // options without a value; nil if arguments before the package never choose it
}

// The runtimes of each type of package; the first name is the one that clients use if the document
// has no runtimeHint, or one that is not here. A document cannot name another program, for example
// a shell.
var runtimes = map[string][]struct {
	name string
	runtime
}{
	"npm": {
		{"npx", runtime{quiet: []string{"-y"}, exact: atVersion, flags: npmFlags}},
		{"bunx", runtime{exact: atVersion, flags: npmFlags}},
	},
	"pypi": {
		{"uvx", runtime{exact: equalVersion, flags: pypiFlags}},
		{"pipx", runtime{start: []string{"run"}, exact: equalVersion, flags: pypiFlags}},
	},
	"oci": {
		{"docker", runtime{start: []string{"run"}, quiet: []string{"-i", "--rm"}, exact: image}},
		{"podman", runtime{start: []string{"run"}, quiet: []string{"-i", "--rm"}, exact: image}},
	},
	"nuget": {{"dnx", runtime{quiet: []string{"--yes"}, behind: true, exact: atVersion}}},
}

// The options of the programs that take no value, so that a word after one is the package.
var (
	npmFlags = []string{
		"-y", "--yes", "-n", "--no", "-q", "--quiet", "-s", "--silent", "-f", "--force", "--bun", "--verbose",
		"--offline", "--prefer-offline", "--prefer-online", "--no-install", "--ignore-existing",
	}
	pypiFlags = []string{
		"-q", "--quiet", "-v", "--verbose", "-n", "--no-cache", "-U", "--upgrade", "--isolated", "--refresh",
		"--offline", "--native-tls", "--no-config", "--no-index", "--managed-python", "--no-managed-python",
		"--no-env-file", "--pypackages", "--system-site-packages",
	}
)

func atVersion(p pkg) string { return withVersion(p, "@") }

func equalVersion(p pkg) string { return withVersion(p, "==") }

func withVersion(p pkg, separator string) string {
	if p.version == "" {
		return p.identifier
	}
	return p.identifier + separator + p.version
}

// image returns the reference of a container image. Documents of older schemas have the tag as the
// version.
func image(p pkg) string {
	if p.version == "" || p.repository() != p.identifier {
		return p.identifier
	}
	return p.identifier + ":" + p.version
}

// repository returns the reference of a container image without its tag and digest.
func (p pkg) repository() string {
	name, _, _ := strings.Cut(p.identifier, "@")
	if tag := strings.LastIndex(name, ":"); tag > strings.LastIndex(name, "/") {
		return name[:tag]
	}
	return name
}

var errNoIdentifier = errors.New("a package has no identifier")

// refusal is why an entry would allow more than the server. A server for which there is one has no
// entry by its name either.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	errOption       refusal = "the identifier or version of a package begins with a \"-\", so that it would be an option of the program that starts it"
	errOtherPackage refusal = "the runtime arguments of a package have a word before the package, which would be started in its place"
)

// check returns the refusal of a package whose command would start something else.
func (p pkg) check() error {
	switch {
	case p.identifier == "":
		return errNoIdentifier
	case strings.HasPrefix(p.identifier, "-"), strings.HasPrefix(p.version, "-"):
		return errOption
	}
	_, r, err := p.runtime()
	if err != nil {
		return err
	}
	if r.flags != nil &&
		slices.ContainsFunc(p.runtimeArguments, func(a argument) bool { return p.choosesPackage(a, r) }) {
		return errOtherPackage
	}
	return nil
}

// choosesPackage reports whether a program takes a runtime argument for the package to start, and
// it is not this one.
func (p pkg) choosesPackage(a argument, r runtime) bool {
	word := a.text()
	if a.named {
		if a.name == "" || strings.HasPrefix(a.name, "-") && !slices.Contains(r.flags, a.name) {
			return false
		}
		if !strings.HasPrefix(a.name, "-") {
			word = a.name
		}
	}
	return word != "" && !strings.HasPrefix(word, "-") && !p.isPackage(word) && !slices.Contains(r.start, word)
}

// command returns the program and the arguments by which clients start a package, with placeholders
// for what the user has to enter. It returns an error, which says why, if a client cannot start it
// or, without fill, would start it otherwise for each user.
func (p pkg) command(fill filler) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	name, r, err := p.runtime()
	if err != nil {
		return nil, err
	}
	first, err := p.startArguments(r, fill)
	if err != nil {
		return nil, err
	}
	last, err := p.arguments(p.packageArguments, fill, takesValue)
	if err != nil {
		return nil, err
	}
	argv := []string{name}
	if len(first) == 0 || len(r.start) == 0 || first[0] != r.start[0] {
		argv = append(argv, r.start...)
	} else { // the document has the whole command line
		argv, first = append(argv, first[0]), first[1:]
	}
	if !r.behind {
		argv = appendMissing(argv, r.quiet, first)
	}
	argv = append(argv, first...)
	if r.behind {
		argv = appendMissing(argv, r.quiet, first)
		if len(last) > 0 {
			argv = append(argv, "--")
		}
	}
	return append(argv, last...), nil
}

// startArguments returns the runtime arguments and the package. A container gets each environment
// variable from the client; where the runtime arguments have the package, it gets its version.
func (p pkg) startArguments(r runtime, fill filler) ([]string, error) {
	given, err := p.arguments(p.runtimeArguments, fill, isFlag)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(given, p.isPackage)
	before, after := given, []string(nil)
	if at >= 0 {
		before, after = given[:at], given[at+1:]
	}
	argv := slices.Clone(before)
	if p.registryType == typeOCI {
		for _, name := range p.variableNames() {
			if !passesVariable(before, name) {
				argv = append(argv, "-e", name)
			}
		}
	}
	return slices.Concat(argv, []string{r.exact(p)}, after), nil
}

// isPackage reports whether a runtime argument is the package, with its version or without.
func (p pkg) isPackage(word string) bool {
	_, r, err := p.runtime()
	return err == nil &&
		(word == r.exact(p) || word == p.identifier || p.registryType == typeOCI && word == p.repository())
}

// typeOCI is the registry type of container images.
const typeOCI = "oci"

// variableNames returns the names of the environment variables, each once.
func (p pkg) variableNames() []string {
	var names []string
	for _, in := range p.environment {
		if in.name != "" && !slices.Contains(names, in.name) {
			names = append(names, in.name)
		}
	}
	return names
}

// passesVariable reports whether options of docker run pass an environment variable to the
// container.
func passesVariable(options []string, name string) bool {
	for i, option := range options {
		value, joined := strings.CutPrefix(option, "--env=")
		if !joined {
			value, joined = strings.CutPrefix(option, "-e")
		}
		if (option == "-e" || option == "--env") && i+1 < len(options) {
			value, joined = options[i+1], true
		}
		if given, _, _ := strings.Cut(value, "="); joined && given == name {
			return true
		}
	}
	return false
}

// runtime returns the program that starts the package. Clients ignore a runtimeHint that does not
// start packages of the type.
func (p pkg) runtime() (string, runtime, error) {
	known := runtimes[p.registryType]
	if len(known) == 0 {
		return "", runtime{}, fmt.Errorf("clients have no command for packages of the type %q", p.registryType)
	}
	for _, k := range known {
		if k.name == p.runtimeHint {
			return k.name, k.runtime, nil
		}
	}
	return known[0].name, known[0].runtime, nil
}

// sameOptions has other spellings of the arguments in runtimes.
var sameOptions = map[string][]string{"-y": {"--yes"}, "-i": {"--interactive", "-it", "-ti"}}

// appendMissing appends the options that the document does not give itself.
func appendMissing(argv, options, given []string) []string {
	for _, o := range options {
		if !slices.Contains(given, o) &&
			!slices.ContainsFunc(sameOptions[o], func(s string) bool { return slices.Contains(given, s) }) {
			argv = append(argv, o)
		}
	}
	return argv
}

// emptyArgument says what a named argument without a value is.
type emptyArgument bool

const (
	isFlag     emptyArgument = false // an option, or its value is the next argument
	takesValue emptyArgument = true  // the user gives a value, unless the argument is a boolean or has no description
)

// arguments returns the arguments of a command. An argument that the user may leave out and that
// has no value is not there. Without fill it returns an error for one whose value the user has to
// enter.
func (p pkg) arguments(arguments []argument, fill filler, empty emptyArgument) ([]string, error) {
	var argv []string
	for _, a := range arguments {
		value, fixed := a.fixed()
		if a.named && a.boolean && empty == isFlag && (value == "true" || value == "false") {
			if value == "true" {
				argv = append(argv, a.name)
			}
			continue
		}
		if !fixed || value == "" && a.required && !a.isSwitch() {
			if fill == nil {
				return nil, fmt.Errorf("the user enters %s of %s", a.describe(), p.identifier)
			}
			value = a.filled(fill)
		}
		if a.named && value == "" && empty == takesValue && !a.isSwitch() {
			continue
		}
		if a.named && a.name != "" {
			argv = append(argv, a.name)
		}
		if value != "" {
			argv = append(argv, value)
		}
	}
	return argv, nil
}

// isSwitch reports whether a named argument has no value by its nature.
func (a argument) isSwitch() bool {
	return a.named && (a.boolean || a.description == "" && !a.required)
}

func (a argument) describe() string {
	if a.name != "" {
		return "the argument " + a.name
	}
	return "an argument"
}

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
