// Package allowlistjson encodes allow lists, and what a user adds to install a server, in the JSON
// of the clients that read them.
package allowlistjson

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

// encode returns JSON that a person can read and edit.
func encode(content any) ([]byte, error) { return encodeIndented(content, "", "  ") }

// encodeIndented returns JSON whose lines after the first begin with a prefix.
func encodeIndented(content any, prefix, indent string) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	if err := e.Encode(content); err != nil {
		return nil, fmt.Errorf("encode the settings of a client: %w", err)
	}
	return text.Bytes(), nil
}

// newKiroEntry returns a server in the registry file of Kiro (contract C-4).
func newKiroEntry(d allowlist.Definition) object {
	server := object{{"name", d.Name}}
	if d.Title != "" {
		server = append(server, member{"title", d.Title})
	}
	server = append(server, member{"description", d.Description}, member{"version", d.Version})
	if r := d.Remote; r != nil {
		remote := kiroList(object{{"type", r.Transport}, {"url", r.URL}}, "headers", kiroValues(r.Headers))
		server = append(server, member{"remotes", []object{remote}})
	}
	if p := d.Package; p != nil {
		one := object{{"registryType", p.RegistryType}, {"identifier", p.Identifier}, {"transport", object{{"type", "stdio"}}}}
		one = kiroList(one, "runtimeArguments", kiroArguments(p.RuntimeArguments))
		one = kiroList(one, "packageArguments", kiroArguments(p.PackageArguments))
		one = kiroList(one, "environmentVariables", kiroValues(p.Environment))
		server = append(server, member{"packages", []object{one}})
	}
	return object{{"server", server}}
}

// kiroList adds a list to an object, unless it is empty.
func kiroList(to object, name string, list []object) object {
	if len(list) == 0 {
		return to
	}
	return append(to, member{name, list})
}

func kiroArguments(argv []string) (all []object) {
	for _, a := range argv {
		all = append(all, object{{"type", "positional"}, {"value", a}})
	}
	return all
}

func kiroValues(values []allowlist.Value) (all []object) {
	for _, v := range values {
		one := object{{"name", v.Name}}
		if v.Value != "" {
			one = append(one, member{"value", v.Value})
		}
		all = append(all, one)
	}
	return all
}
