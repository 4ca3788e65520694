package registry

import (
	"regexp"
	"slices"
	"strings"
)

// What the properties of one object owe each other. Values of the wrong kind
// were reported by their own row, and are passed over here.

var decimal = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$`)

// inputRules: default, and value without variables, fit format and choices.
func inputRules(r *report, at place, v *node) {
	for _, name := range []string{"value", "default"} {
		given, ok := v.str(name)
		if !ok || name == "value" && hasVariable(given) {
			continue
		}
		at := at.key(name).under(at.rule + "/" + name)
		r.add(v.get(name), at, fitsFormat(v, given))
		r.add(v.get(name), at, fitsChoices(v, given))
	}
}

func fitsFormat(v *node, given string) *problem {
	format, _ := v.str("format")
	switch {
	case format == "number" && !decimal.MatchString(given):
		return semanticProblem("format", "must be a decimal number, as its format says, not %s", quote(given))
	case format == "boolean" && given != "true" && given != "false":
		return semanticProblem("format", "must be true or false, as its format says, not %s", quote(given))
	}
	return nil
}

func fitsChoices(v *node, given string) *problem {
	choices := v.get("choices")
	if choices == nil || choices.kind != kindArray {
		return nil
	}
	if slices.ContainsFunc(choices.items, func(c node) bool { return c.kind == kindString && c.text == given }) {
		return nil
	}
	return semanticProblem("choices", "must be one of the choices, and %s is not", quote(given))
}

// argumentRules: what each of the two kinds needs.
func argumentRules(r *report, at place, v *node) {
	switch kind, _ := v.str("type"); kind {
	case positional:
		if v.get("valueHint") == nil && v.get("value") == nil {
			r.add(v, at.under("PositionalArgument"), schemaProblem("anyOf", "needs a valueHint or a value"))
		}
	case named:
		at := at.key("name").under("NamedArgument/name")
		name := v.get("name")
		if name == nil {
			r.add(v, at, schemaProblem("required", "is required"))
		} else if name.kind == kindString && !argumentForm.MatchString(name.text) {
			r.add(name, at, semanticProblem("pattern", "must be the flag alone, without blanks, \"<\", \">\" or \"$\", what follows it goes into value or valueHint"))
		}
	}
}

// transportRules: one of the kinds, and a url where the kind has one.
func transportRules(kinds ...string) check {
	oneOf := enum(kinds...)
	return func(r *report, at place, v *node) {
		kind, ok := v.str("type")
		if !ok {
			return
		}
		if p := oneOf(kind); p != nil {
			r.add(v.get("type"), at.key("type").under(at.rule+"/type"), p)
			return
		}
		address := v.get("url")
		switch {
		case kind != stdio && address == nil:
			r.add(v, at.key("url").under(at.rule+"/url"), schemaProblem("required", "is required for the transport %s", kind))
		case kind == stdio:
			for _, name := range []string{"url", "headers"} {
				if given := v.get(name); given != nil {
					r.add(given, at.key(name).under(at.rule+"/"+name), schemaProblem("stdio", "is no property of the transport stdio, leave it out or choose streamable-http or sse"))
				}
			}
		}
	}
}

// packageRules: the sum that mcpb needs, and the variables of the transport.
func packageRules(r *report, at place, v *node) {
	if kind, _ := v.str("registryType"); kind == "mcpb" && v.get("fileSha256") == nil {
		r.add(v, at.key("fileSha256").under("Package/fileSha256"), schemaProblem("required", "is required for packages of the registryType mcpb"))
	}
	transport := v.get("transport")
	knownVariables(r, at.key("transport").under("LocalTransport"), transport, packageVariables(v),
		"an argument's valueHint or name, or an environment variable of the package")
}

func remoteRules(r *report, at place, v *node) {
	known := make(map[string]bool)
	if variables := v.get("variables"); variables != nil {
		for _, m := range variables.members {
			known[m.name] = true
		}
	}
	knownVariables(r, at, v, known, "one of the remote's variables")
}

// packageVariables are the names that the transport of a package may refer to.
func packageVariables(v *node) map[string]bool {
	known := make(map[string]bool)
	note := func(list string, properties ...string) {
		inputs := v.list(list)
		for i := range inputs {
			for _, p := range properties {
				if name, ok := inputs[i].str(p); ok {
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

// knownVariables checks that the variables of a transport's url exist.
func knownVariables(r *report, at place, transport *node, known map[string]bool, where string) {
	address, ok := transport.str("url")
	if !ok {
		return
	}
	for _, name := range variablesIn(address) {
		if known[name] {
			continue
		}
		hint := ""
		if flag := slices.IndexFunc([]string{"-", "--"}, func(dashes string) bool { return known[dashes+name] }); flag >= 0 {
			hint = " (a flag is named with its dashes, {" + strings.Repeat("-", flag+1) + name + "})"
		}
		r.add(transport.get("url"), at.key("url").under(at.rule+"/url"),
			semanticProblem("variable", "refers to {%s}, which is not %s%s", shorten(name), where, hint))
	}
}
