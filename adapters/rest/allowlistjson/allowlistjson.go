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

type kiroEntry struct {
	Server kiroServer `json:"server"`
}

type kiroServer struct {
	Name        string        `json:"name"`
	Title       string        `json:"title,omitempty"`
	Description string        `json:"description"`
	Version     string        `json:"version"`
	Remotes     []kiroRemote  `json:"remotes,omitempty"`
	Packages    []kiroPackage `json:"packages,omitempty"`
}

type kiroRemote struct {
	Type    string      `json:"type"`
	URL     string      `json:"url"`
	Headers []kiroValue `json:"headers,omitempty"`
}

type kiroPackage struct {
	RegistryType     string         `json:"registryType"`
	Identifier       string         `json:"identifier"`
	Transport        kiroTransport  `json:"transport"`
	RuntimeArguments []kiroArgument `json:"runtimeArguments,omitempty"`
	PackageArguments []kiroArgument `json:"packageArguments,omitempty"`
	Environment      []kiroValue    `json:"environmentVariables,omitempty"`
}

type kiroTransport struct {
	Type string `json:"type"`
}

type kiroArgument struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type kiroValue struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

func newKiroEntry(d allowlist.Definition) kiroEntry {
	s := kiroServer{Name: d.Name, Title: d.Title, Description: d.Description, Version: d.Version}
	if r := d.Remote; r != nil {
		s.Remotes = []kiroRemote{{r.Transport, r.URL, kiroValues(r.Headers)}}
	}
	if p := d.Package; p != nil {
		s.Packages = []kiroPackage{{
			p.RegistryType, p.Identifier, kiroTransport{"stdio"}, kiroArguments(p.RuntimeArguments),
			kiroArguments(p.PackageArguments), kiroValues(p.Environment),
		}}
	}
	return kiroEntry{s}
}

func kiroArguments(argv []string) []kiroArgument {
	var all []kiroArgument
	for _, a := range argv {
		all = append(all, kiroArgument{"positional", a})
	}
	return all
}

func kiroValues(values []allowlist.Value) []kiroValue {
	var all []kiroValue
	for _, v := range values {
		all = append(all, kiroValue(v))
	}
	return all
}
