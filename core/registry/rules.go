package registry

import (
	"regexp"
	"slices"
	"strings"
)

// The rules between properties of one object. They ignore values of the wrong kind, which have a
// problem already.

var decimal = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$`)

// inputRules checks that default, and value without variables, match format and choices.
func inputRules(r *report, at location, v *node) {
	for _, name := range []string{"value", "default"} {
		given, ok := v.stringProperty(name)
		if !ok || name == "value" && hasVariable(given) {
			continue
		}
		at := at.key(name).withRule(at.rule + "/" + name)
		r.addProblem(v.property(name), at, fitsFormat(v, given))
		r.addProblem(v.property(name), at, fitsChoices(v, given))
	}
}

func fitsFormat(v *node, given string) *problem {
	format, _ := v.stringProperty("format")
	switch {
	case format == "number" && !decimal.MatchString(given):
		return semanticProblem("format", "must be a decimal number, as its format says, not %s", quote(given))
	case format == "boolean" && given != "true" && given != "false":
		return semanticProblem("format", "must be true or false, as its format says, not %s", quote(given))
	}
	return nil
}

func fitsChoices(v *node, given string) *problem {
	choices := v.property("choices")
	if choices == nil || choices.kind != kindArray {
		return nil
	}
	if slices.ContainsFunc(choices.items, func(c node) bool { return c.kind == kindString && c.text == given }) {
		return nil
	}
	return semanticProblem("choices", "must be one of the choices, and %s is not", quote(given))
}

// argumentRules checks what each of the two kinds of argument needs.
func argumentRules(r *report, at location, v *node) {
	switch kind, _ := v.stringProperty("type"); kind {
	case positional:
		if v.property("valueHint") == nil && v.property("value") == nil {
			r.addProblem(v, at.withRule("PositionalArgument"), schemaProblem("anyOf", "needs a valueHint or a value"))
		}
	case named:
		at := at.key("name").withRule("NamedArgument/name")
		name := v.property("name")
		if name == nil {
			r.addProblem(v, at, schemaProblem("required", "is required"))
		} else if name.kind == kindString && !argumentForm.MatchString(name.text) {
			r.addProblem(name, at,
				semanticProblem("pattern",
					"must be only the flag, without spaces, \"<\", \">\" or \"$\"; put its value into value or valueHint"))
		}
	}
}

// transportRules returns the check that a transport has one of the kinds, and a url if the kind
// needs one.
func transportRules(kinds ...string) check {
	oneOf := enumRule(kinds...)
	return func(r *report, at location, v *node) {
		kind, ok := v.stringProperty("type")
		if !ok {
			return
		}
		if p := oneOf(kind); p != nil {
			r.addProblem(v.property("type"), at.key("type").withRule(at.rule+"/type"), p)
			return
		}
		address := v.property("url")
		switch {
		case kind != stdio && address == nil:
			r.addProblem(v, at.key("url").withRule(at.rule+"/url"),
				schemaProblem("required", "is required for the transport %s", kind))
		case kind == stdio:
			for _, name := range []string{"url", "headers"} {
				if given := v.property(name); given != nil {
					r.addProblem(given, at.key(name).withRule(at.rule+"/"+name),
						schemaProblem("stdio",
							"is not a property of the transport stdio, remove it or use streamable-http or sse"))
				}
			}
		}
	}
}

// packageRules checks that an mcpb package has a file hash, and the variables of the transport.
func packageRules(r *report, at location, v *node) {
	if kind, _ := v.stringProperty("registryType"); kind == "mcpb" && v.property("fileSha256") == nil {
		r.addProblem(v, at.key("fileSha256").withRule("Package/fileSha256"),
			schemaProblem("required", "is required for packages of the registryType mcpb"))
	}
	transport := v.property("transport")
	knownVariables(r, at.key("transport").withRule("LocalTransport"), transport, packageVariables(v),
		"an argument's valueHint or name, or an environment variable of the package")
}

// remoteRules checks the variables of a remote.
func remoteRules(r *report, at location, v *node) {
	known := make(map[string]bool)
	if variables := v.property("variables"); variables != nil {
		for _, m := range variables.members {
			known[m.name] = true
		}
	}
	knownVariables(r, at, v, known, "one of the remote's variables")
}

// packageVariables returns the names that the transport of a package may refer to.
func packageVariables(v *node) map[string]bool {
	known := make(map[string]bool)
	note := func(list string, properties ...string) {
		inputs := v.itemsOf(list)
		for i := range inputs {
			for _, p := range properties {
				if name, ok := inputs[i].stringProperty(p); ok {
					known[name] = true
				}
			}
		}
	}
	note("runtimeArguments", "name", "valueHint")
	note("packageArguments", "name", "valueHint")
	note("environmentVariables", "name")
	return known
}

// knownVariables checks that the variables in the url of a transport exist.
func knownVariables(r *report, at location, transport *node, known map[string]bool, where string) {
	address, ok := transport.stringProperty("url")
	if !ok {
		return
	}
	for _, name := range variablesIn(address) {
		if known[name] {
			continue
		}
		hint := ""
		if flag := slices.IndexFunc([]string{"-", "--"}, func(dashes string) bool {
			return known[dashes+name]
		}); flag >= 0 {
			hint = " (a flag is named with its dashes, {" + strings.Repeat("-", flag+1) + name + "})"
		}
		r.addProblem(transport.property("url"), at.key("url").withRule(at.rule+"/url"),
			semanticProblem("variable", "refers to {%s}, which is not %s%s", shorten(name), where, hint))
	}
}
