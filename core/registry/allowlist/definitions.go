package allowlist

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
)

const nothingToStart = "it has neither packages nor remotes"

// define passes on the definitions of a server. If another server has the same name in these
// formats, Lists.Shared reports it in the end.
func (c *Compiler) define(s server) error {
	if !slices.ContainsFunc(definitionFormats, c.has) {
		return nil
	}
	named := listedName{name: s.release.Name.Clone()}
	if c.output.Skip != nil {
		named.version = s.release.Version.Clone()
	}
	c.names = append(c.names, named)
	for _, f := range definitionFormats {
		if !c.has(f) {
			continue
		}
		d, reasons := s.define(f)
		if d == nil {
			c.skip(f, s.release.Name, s.release.Version, reasons...)
			continue
		}
		d.Name = configName(s.release.Name)
		if err := c.output.Define(f, *d); err != nil {
			return err
		}
	}
	return nil
}

// sharedNames returns the names that several servers have, and skips these servers. c.names must be
// ordered.
func (c *Compiler) sharedNames() map[string]bool {
	shared := map[string]bool{}
	for i, n := range c.names {
		name := configName(n.name)
		if i+1 < len(c.names) && compareConfigNames(c.names[i+1].name.String(), name) == 0 {
			shared[name] = true
		}
		for _, f := range definitionFormats {
			if shared[name] && c.has(f) {
				c.skip(f, n.name, n.version, "another server has the same name in this format: "+name)
			}
		}
	}
	return shared
}

// configName returns the name of a server in formats that do not accept a slash.
func configName(n registry.Name) string { return strings.ReplaceAll(n.String(), "/", "-") }

// compareConfigNames compares names as configName makes them.
func compareConfigNames(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == '/' {
			x = '-'
		}
		if y == '/' {
			y = '-'
		}
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// define returns the definition of the first remote, or else of the first package, that has one in
// the format, and why those before lack one.
func (s server) define(f Format) (d *Definition, reasons []string) {
	d = &Definition{Title: s.title, Description: s.description, Version: s.release.Version.String()}
	for _, r := range s.usableRemotes() {
		var reason string
		if d.Remote, reason = s.defineRemote(r, f); reason == "" {
			return d, nil
		}
		reasons = append(reasons, reason)
	}
	for _, p := range s.packages {
		var reason string
		if d.Package, reason = s.definePackage(p, f); reason == "" {
			if p.version != "" {
				d.Version = p.version // what the client starts
			}
			return d, nil
		}
		reasons = append(reasons, reason)
	}
	if len(reasons) == 0 {
		reasons = []string{nothingToStart}
	}
	return nil, reasons
}

// errProgramAlone is why allow lists of Codex have no packages: an entry has a program, without
// arguments.
var errProgramAlone = errors.New("the format has the program of a package alone, like npx, which would allow every package")

// defineRemote returns a remote in a format, or why the format lacks it.
func (s server) defineRemote(r remote, f Format) (defined *Remote, reason string) {
	if _, err := r.pattern(); err != nil {
		return nil, err.Error()
	}
	p := f.program()
	if err := r.check(p); err != nil {
		return nil, err.Error()
	}
	address, exact := r.url.fixed()
	switch {
	case f != Kiro && f != Codex:
		return &Remote{r.transport, r.url.filled(p.filler(s, inURL)), filledValues(r.headers, p.filler(s, inHeader))}, ""
	case !exact:
		return nil, "the format has no variables in the URL of a remote"
	}
	return &Remote{r.transport, address, fixedValues(r.headers)}, ""
}

// definePackage returns a package in a format, or why the format lacks it.
func (s server) definePackage(p pkg, f Format) (defined *Package, reason string) {
	if f == Codex {
		return nil, errProgramAlone.Error()
	}
	argv, err := p.localCommand(nil, f.program().marks())
	if err != nil {
		return nil, err.Error()
	}
	defined = &Package{RegistryType: p.registryType, Identifier: p.identifier, Command: argv}
	if f != Kiro {
		defined.Environment = filledValues(p.environment, f.program().filler(s, inEnvironment))
		return defined, ""
	}
	switch {
	case !slices.Contains([]string{"npm", "pypi", "oci"}, p.registryType):
		return nil, "the format has only packages of npm, PyPI and OCI"
	case argv[0] != runtimes[p.registryType][0].name: // bunx, pipx or podman
		return nil, "the format has no runtimeHint " + p.runtimeHint
	}
	given, _ := p.arguments(p.runtimeArguments, nil, isFlag) // localCommand has checked them
	start := runtimes[p.registryType][0].start
	defined.RuntimeArguments = slices.DeleteFunc(given, func(a string) bool {
		return p.isPackage(a) || slices.Contains(start, a)
	})
	defined.PackageArguments, _ = p.arguments(p.packageArguments, nil, takesValue)
	defined.Environment = fixedValues(p.environment)
	return defined, ""
}

// fixedValues returns headers or environment variables. A value that the user has to enter is
// empty.
func fixedValues(inputs []input) []Value {
	return valuesOf(inputs, func(in input) string {
		value, _ := in.fixed()
		return value
	})
}

// filledValues returns headers or environment variables with placeholders for what the user has to
// enter.
func filledValues(inputs []input, fill filler) []Value {
	return valuesOf(inputs, func(in input) string { return in.filled(fill) })
}

func valuesOf(inputs []input, value func(input) string) []Value {
	var all []Value
	for _, in := range inputs {
		if in.name != "" {
			all = append(all, Value{in.name, value(in)})
		}
	}
	return all
}

var notInVariable = regexp.MustCompile(`[^A-Z0-9]+`)

// variableName returns the name of an environment variable for a value. It begins with the name of
// the server, because the publisher chooses the rest, and must not get the value of a variable that
// the user has for something else.
func (s server) variableName(name string) string {
	return strings.Trim(notInVariable.ReplaceAllString(strings.ToUpper(s.release.Name.String()+"_"+name), "_"), "_")
}
