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
	if f == Kiro {
		address, exact := r.exact()
		if !exact {
			return nil, "the format has no variables in the URL of a remote"
		}
		return &Remote{r.transport, address, fixedValues(r.headers)}, ""
	}
	address, _ := replaceVariables(r.url, s.placeholder)
	return &Remote{r.transport, address, s.values(r.headers)}, ""
}

// definePackage returns a package in a format, or why the format has none.
func (s server) definePackage(p pkg, f Format) (defined *Package, reason string) {
	argv, err := p.command()
	if err != nil {
		return nil, err.Error()
	}
	defined = &Package{RegistryType: p.registryType, Identifier: p.identifier, Command: argv}
	defined.RuntimeArguments, _ = fixedArguments(p.identifier, p.runtimeArguments) // command has checked them
	defined.PackageArguments, _ = fixedArguments(p.identifier, p.packageArguments)
	if f != Kiro {
		defined.Environment = s.values(p.environment)
		return defined, ""
	}
	switch {
	case !slices.Contains([]string{"npm", "pypi", "oci"}, p.registryType) || p.transport != "stdio":
		return nil, "the format has only packages of npm, PyPI and OCI that use stdio"
	case argv[0] != runtimes[p.registryType][0].name:
		return nil, "the format has no runtimeHint " + p.runtimeHint
	}
	defined.Environment = fixedValues(p.environment)
	return defined, ""
}

// fixedValues returns headers or environment variables. A value that the user has to enter is
// empty.
func fixedValues(inputs []input) []Value {
	var all []Value
	for _, in := range inputs {
		if in.name != "" {
			value, _ := in.fixed()
			all = append(all, Value{in.name, value})
		}
	}
	return all
}

// values returns headers or environment variables. What the user has to enter is a placeholder.
func (s server) values(inputs []input) []Value {
	all := fixedValues(inputs)
	at := 0
	for _, in := range inputs {
		if in.name == "" {
			continue
		}
		v := &all[at]
		at++
		switch {
		case v.Value != "":
		case in.value != "":
			v.Value, _ = replaceVariables(in.value, s.placeholder)
		default: // the document says nothing about the value
			v.Value, _ = s.placeholder(in.name)
		}
	}
	return all
}

var notInVariable = regexp.MustCompile(`[^A-Z0-9_]+`)

// placeholder returns the reference to an environment variable of the user. Its name begins with the
// name of the server, because the publisher chooses the rest, and must not get the value of a
// variable that the user has for something else.
func (s server) placeholder(name string) (string, bool) {
	return "${" + notInVariable.ReplaceAllString(strings.ToUpper(s.release.Name.String()+"_"+name), "_") + "}", true
}
