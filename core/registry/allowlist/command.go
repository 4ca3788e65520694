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
	quiet  []string // arguments so that it asks nothing
	behind bool     // quiet comes after the package, and "--" before the arguments of the package
	exact  func(p pkg) string
}

// The runtimes of each type of package; the first name is the one that clients use if the document
// has no runtimeHint. A document cannot name another program, such as a shell.
var runtimes = map[string][]struct {
	name string
	runtime
}{
	"npm": {
		{"npx", runtime{quiet: []string{"-y"}, exact: atVersion}},
		{"bunx", runtime{exact: atVersion}},
	},
	"pypi": {
		{"uvx", runtime{exact: equalVersion}},
		{"pipx", runtime{start: []string{"run"}, exact: equalVersion}},
	},
	"oci": {
		{"docker", runtime{start: []string{"run"}, quiet: []string{"-i", "--rm"}, exact: image}},
		{"podman", runtime{start: []string{"run"}, quiet: []string{"-i", "--rm"}, exact: image}},
	},
	"nuget": {{"dnx", runtime{quiet: []string{"--yes"}, behind: true, exact: atVersion}}},
}

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
	last := p.identifier[strings.LastIndex(p.identifier, "/")+1:]
	if p.version == "" || strings.ContainsAny(last, ":@") {
		return p.identifier
	}
	return p.identifier + ":" + p.version
}

var errNoIdentifier = errors.New("a package has no identifier")

// command returns the program and the arguments by which a client starts a package, with
// placeholders for what the user has to enter. It returns an error, which says why, if a client
// cannot start it or, without fill, would start it otherwise for each user.
func (p pkg) command(fill filler) ([]string, error) {
	if p.identifier == "" {
		return nil, errNoIdentifier
	}
	name, r, err := p.runtime()
	if err != nil {
		return nil, err
	}
	first, err := p.arguments(p.runtimeArguments, fill)
	if err != nil {
		return nil, err
	}
	last, err := p.arguments(p.packageArguments, fill)
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
	if !slices.ContainsFunc(first, func(a string) bool { return a == p.identifier || a == r.exact(p) }) {
		argv = append(argv, r.exact(p))
	}
	if r.behind {
		argv = appendMissing(argv, r.quiet, first)
		if len(last) > 0 {
			argv = append(argv, "--")
		}
	}
	return append(argv, last...), nil
}

// runtime returns the program that starts the package.
func (p pkg) runtime() (string, runtime, error) {
	known := runtimes[p.registryType]
	if len(known) == 0 {
		return "", runtime{}, fmt.Errorf("clients have no command for packages of the type %q", p.registryType)
	}
	if p.runtimeHint == "" {
		return known[0].name, known[0].runtime, nil
	}
	for _, k := range known {
		if k.name == p.runtimeHint {
			return k.name, k.runtime, nil
		}
	}
	return "", runtime{}, fmt.Errorf("the runtimeHint %q does not start packages of the type %q", p.runtimeHint, p.registryType)
}

// sameOptions has other spellings of the arguments in runtimes.
var sameOptions = map[string][]string{"-y": {"--yes"}, "-i": {"--interactive", "-it", "-ti"}}

// appendMissing appends the options that the document does not give itself.
func appendMissing(argv, options, given []string) []string {
	for _, o := range options {
		if !slices.Contains(given, o) && !slices.ContainsFunc(sameOptions[o], func(s string) bool { return slices.Contains(given, s) }) {
			argv = append(argv, o)
		}
	}
	return argv
}

// arguments returns the arguments of a command. An argument that the user may leave out and that
// has no value is not there. Without fill it returns an error for one whose value the user has to
// enter.
func (p pkg) arguments(arguments []argument, fill filler) ([]string, error) {
	var argv []string
	for _, a := range arguments {
		value, fixed := a.fixed()
		if !fixed || value == "" && a.required {
			if fill == nil {
				return nil, fmt.Errorf("the user enters %s of %s", a.describe(), p.identifier)
			}
			value = a.filled(fill)
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

func (a argument) describe() string {
	if a.name != "" {
		return "the argument " + a.name
	}
	return "an argument"
}
