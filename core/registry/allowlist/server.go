package allowlist

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// server is what a document says about how clients reach or start a server.
type server struct {
	release     registry.Release
	title       string
	description string
	remotes     []remote
	packages    []pkg
}

// remote is a server that clients reach by URL.
type remote struct {
	transport string
	url       string // may have variables in braces
	headers   []input
}

// pkg is a package that clients download and start.
type pkg struct {
	registryType, identifier, version, runtimeHint, transport string

	runtimeArguments, packageArguments []argument
	environment                        []input
}

// input is a value that a document gives or asks for.
type input struct {
	name, value, fallback string // fallback is the default
	required              bool
	variables             map[string]input
}

// argument is one argument of a command.
type argument struct {
	input

	named bool
}

// object is a JSON object. Its properties are read by their exact names, as the clients read them.
type object map[string]any

var errNoObject = errors.New("it is not a JSON object")

// parseServer reads the document of a record. Values of a wrong type, which documents from other
// registries may have, count as missing.
func parseServer(r registry.Record) (server, error) {
	var doc object
	if err := json.Unmarshal(r.Document, &doc); err != nil || doc == nil {
		return server{}, errNoObject
	}
	s := server{release: r.Release, title: doc.text("title"), description: doc.text("description")}
	for _, o := range doc.objects("remotes") {
		s.remotes = append(s.remotes, remote{o.text("type"), o.text("url"), o.inputs("headers")})
	}
	for _, o := range doc.objects("packages") {
		s.packages = append(s.packages, pkg{
			registryType: o.text("registryType"), identifier: o.text("identifier"), version: o.text("version"),
			runtimeHint: o.text("runtimeHint"), transport: o.object("transport").text("type"),
			runtimeArguments: o.arguments("runtimeArguments"), packageArguments: o.arguments("packageArguments"),
			environment: o.inputs("environmentVariables"),
		})
	}
	return s, nil
}

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

func (o object) object(name string) object {
	m, _ := o[name].(map[string]any)
	return m
}

func (o object) objects(name string) []object {
	items, _ := o[name].([]any)
	var all []object
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

func (o object) inputs(name string) []input {
	var all []input
	for _, item := range o.objects(name) {
		all = append(all, item.input())
	}
	return all
}

func (o object) arguments(name string) []argument {
	var all []argument
	for _, item := range o.objects(name) {
		all = append(all, argument{item.input(), item.text("type") == "named"})
	}
	return all
}

func (o object) input() input {
	in := input{name: o.text("name"), value: o.text("value"), fallback: o.text("default")}
	in.required, _ = o["isRequired"].(bool)
	if variables := o.object("variables"); len(variables) > 0 {
		in.variables = make(map[string]input, len(variables))
		for name := range variables {
			in.variables[name] = variables.object(name).input()
		}
	}
	return in
}

// fixed returns the value that every client uses: the value, else the default, with the values of
// its variables. It reports false if the user has to enter something.
func (in input) fixed() (string, bool) {
	text := in.value
	if text == "" {
		text = in.fallback
	}
	return replaceVariables(text, func(name string) (string, bool) {
		v, ok := in.variables[name]
		if !ok {
			return "", false
		}
		if value, ok := v.fixed(); ok && value != "" {
			return value, true
		}
		return "", false
	})
}

// replaceVariables replaces each variable in braces. It reports false if value does not know one.
// Braces that are not closed are text.
func replaceVariables(text string, value func(name string) (string, bool)) (string, bool) {
	var out strings.Builder
	for {
		before, rest, open := strings.Cut(text, "{")
		name, after, closed := strings.Cut(rest, "}")
		if !open || !closed {
			out.WriteString(text)
			return out.String(), true
		}
		v, ok := value(name)
		if !ok {
			return "", false
		}
		out.WriteString(before + v)
		text = after
	}
}

// The transports of remotes.
const (
	StreamableHTTP = "streamable-http"
	SSE            = "sse"
)

// usableRemotes returns the remotes with a known transport, streamable HTTP first.
func (s server) usableRemotes() []remote {
	var all []remote
	for _, transport := range []string{StreamableHTTP, SSE} {
		for _, r := range s.remotes {
			if r.transport == transport {
				all = append(all, r)
			}
		}
	}
	return all
}

// lastPart returns the part of a server's name after the slash.
func lastPart(name registry.Name) string {
	_, last, _ := strings.Cut(name.String(), "/")
	return last
}
