package allowlist

import (
	"regexp"
	"slices"
	"strings"
)

const nothingToStart = "it has neither packages nor remotes"

// addDefinitions adds a definition for each server that the format can express, and the names of
// the servers that were deleted.
func (c *Compiler) addDefinitions(list *List) {
	taken := map[string]bool{}
	for _, s := range c.listed {
		name := s.configName()
		if taken[name] {
			c.skip(s.release, "another server has the same name in this format: "+name)
			continue
		}
		d, reasons := s.define(c.format)
		if d == nil {
			c.skipAll(s, reasons)
			continue
		}
		taken[name] = true
		d.Name = name
		list.Definitions = append(list.Definitions, *d)
	}
	if c.format != Gemini {
		return
	}
	for _, s := range c.removed {
		if name := s.configName(); !taken[name] {
			taken[name] = true
			list.Excluded = append(list.Excluded, name)
		}
	}
}

// configName returns the name of a server in formats that do not accept a slash.
func (s server) configName() string { return strings.ReplaceAll(s.release.Name.String(), "/", "-") }

// define returns the definition of the first remote, or else of the first package, that has one in
// the format, and why those before have none.
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

// defineRemote returns a remote in a format, or why the format has none.
func (s server) defineRemote(r remote, f Format) (defined *Remote, reason string) {
	if _, err := r.pattern(); err != nil {
		return nil, err.Error()
	}
	if err := r.checkReferences(); err != nil {
		return nil, err.Error()
	}
	if f == Kiro {
		address, exact := r.url.fixed()
		if !exact {
			return nil, "the format has no variables in the URL of a remote"
		}
		return &Remote{r.transport, address, fixedValues(r.headers)}, ""
	}
	return &Remote{r.transport, r.url.filled(s.variableOfUser), filledValues(r.headers, s.variableOfUser)}, ""
}

// definePackage returns a package in a format, or why the format has none.
func (s server) definePackage(p pkg, f Format) (defined *Package, reason string) {
	argv, err := p.localCommand(nil)
	if err != nil {
		return nil, err.Error()
	}
	defined = &Package{RegistryType: p.registryType, Identifier: p.identifier, Command: argv}
	if f != Kiro {
		defined.Environment = filledValues(p.environment, s.variableOfUser)
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
	defined.RuntimeArguments = slices.DeleteFunc(given, func(a string) bool { return p.isPackage(a) || slices.Contains(start, a) })
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

// variableOfUser returns the reference to an environment variable of the user.
func (s server) variableOfUser(name string, _ input) string {
	return "${" + s.variableName(name) + "}"
}

// variableWithDefault is variableOfUser with an empty default for what the user may leave out. Claude
// Code would otherwise pass on the reference itself.
func (s server) variableWithDefault(name string, about input) string {
	if about.required {
		return s.variableOfUser(name, about)
	}
	return "${" + s.variableName(name) + ":-}"
}

var notInVariable = regexp.MustCompile(`[^A-Z0-9]+`)

// variableName returns the name of an environment variable for a value. It begins with the name of
// the server, because the publisher chooses the rest, and must not get the value of a variable that
// the user has for something else.
func (s server) variableName(name string) string {
	return strings.Trim(notInVariable.ReplaceAllString(strings.ToUpper(s.release.Name.String()+"_"+name), "_"), "_")
}
