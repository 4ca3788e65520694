package allowlist

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
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
	offer     string // see Offer
	transport string
	url       input // its value may have variables in braces
	headers   []input
}

// pkg is a package that clients download and start.
type pkg struct {
	offer string // see Offer

	registryType, identifier, version, runtimeHint, transport string

	runtimeArguments, packageArguments []argument
	environment                        []input
}

// input is a value that a document gives or requests.
type input struct {
	name, value, fallback string // fallback is the default
	hint                  string // what an argument without a name is for
	description           string
	required, secret      bool
	hasDefault, boolean   bool // the document has a default, which may be empty; the value is true or false
	variables             map[string]input
}

// argument is one argument of a command.
type argument struct {
	input

	named bool
}

var errNoObject = errors.New("it is not a JSON object")

// parseServer reads the document of a record. Values of a wrong type, which documents from other
// registries may have, count as missing.
func parseServer(r registry.Record) (server, error) {
	var doc jsonvalue.Object
	if err := json.Unmarshal(r.Document, &doc); err != nil || doc == nil {
		return server{}, errNoObject
	}
	s := server{release: r.Release, title: doc.Text("title"), description: doc.Text("description")}
	for i, o := range doc.Objects("remotes") {
		s.remotes = append(s.remotes, remote{
			"remote-" + strconv.Itoa(i+1), o.Text("type"), input{value: o.Text("url"), variables: readVariables(o), required: true},
			readInputs(o, "headers"),
		})
	}
	for i, o := range doc.Objects("packages") {
		s.packages = append(s.packages, pkg{
			offer:        "package-" + strconv.Itoa(i+1),
			registryType: o.Text("registryType"), identifier: o.Text("identifier"), version: o.Text("version"),
			runtimeHint: o.Text("runtimeHint"), transport: o.Inner("transport").Text("type"),
			runtimeArguments: readArguments(o, "runtimeArguments"),
			packageArguments: readArguments(o, "packageArguments"),
			environment:      readInputs(o, "environmentVariables"),
		})
	}
	return s, nil
}

func readInputs(o jsonvalue.Object, name string) []input {
	return each.Map(o.Objects(name), newVariableInput)
}

func readArguments(o jsonvalue.Object, name string) []argument {
	var all []argument
	for _, item := range o.Objects(name) {
		if kind := item.Text("type"); kind == "named" || kind == "positional" {
			all = append(all, argument{newVariableInput(item), kind == "named"})
		}
	}
	return all
}

func newInput(o jsonvalue.Object) input {
	in := input{
		name: o.Text("name"), value: o.Text("value"), fallback: o.Text("default"), hint: o.Text("valueHint"),
		description: o.Text("description"),
	}
	_, in.hasDefault = o["default"]
	in.boolean = o.Text("format") == "boolean"
	in.required, in.secret = o.Flag("isRequired"), o.Flag("isSecret")
	return in
}

// newVariableInput is newInput for a value that may have variables. These have no variables
// themselves.
func newVariableInput(o jsonvalue.Object) input {
	in := newInput(o)
	in.variables = readVariables(o)
	return in
}

func readVariables(o jsonvalue.Object) map[string]input {
	all := map[string]input{}
	variables := o.Inner("variables")
	for name := range variables {
		all[name] = newInput(variables.Inner(name))
	}
	return all
}

// filler returns a placeholder for what the user has to enter: a value with a name, and what the
// document says about it.
type filler func(name string, about input) string

// text returns the value, or else the default.
func (in input) text() string {
	if in.value != "" {
		return in.value
	}
	return in.fallback
}

// fixed returns the value that every client uses: the value, else the default, with the values of
// its variables. It reports false if the user has to enter something.
func (in input) fixed() (string, bool) { return replaceVariables(in.text(), in.fixedVariable) }

// fixedVariable returns the value of a variable, if every client uses the same.
func (in input) fixedVariable(name string) (string, bool) {
	value, ok := in.variables[name].fixed()
	return value, ok && value != ""
}

// errReference refuses what a client would replace by a variable that the user has for something
// else, so that the publisher would get its value.
var (
	errReference = errors.New("a value contains a \"$\" or \"{\", which a client would replace by a variable of the user")
	errNoEvents  = errors.New("the client has no remotes with server-sent events")
)

// placeholderRoom is as long as the greatest part of a placeholder that is not the name of the
// value.
var placeholderRoom = strings.Repeat(" ", registry.MaxName+len("${input:-}"))

var errLong = errors.New("a value is too long")

// checkReferences returns errReference if one of the values or their names has a reference to a
// variable of the user, which begins with one of the marks, and errLong if one is too long after its
// variables were replaced.
func checkReferences(marks string, inputs ...input) error {
	for _, in := range inputs {
		replaced, ok := replaceVariables(in.text(), func(name string) (string, bool) {
			return in.variables[name].text() + placeholderRoom + name, true
		})
		switch {
		case !ok:
			return errLong
		case strings.ContainsAny(replaced+in.name, marks):
			return errReference
		}
	}
	return nil
}

// check returns an error if a client cannot use the remote, or would replace a part of it.
func (r remote) check(p Program) error {
	if r.transport == SSE && p.noEvents {
		return errNoEvents
	}
	return checkReferences(p.marks(), append([]input{r.url}, r.headers...)...)
}

// checkReferences returns errReference if the command or an environment variable has a reference.
func (p pkg) checkReferences(marks string) error {
	inputs := append([]input{{value: p.identifier}, {value: p.version}}, p.environment...)
	for _, a := range slices.Concat(p.runtimeArguments, p.packageArguments) {
		inputs = append(inputs, a.input)
	}
	return checkReferences(marks, inputs...)
}

// filled returns the value with placeholders for what the user has to enter.
func (in input) filled(fill filler) string {
	if in.text() == "" {
		return fill(cmp.Or(in.name, in.hint, "argument"), in)
	}
	value, _ := replaceVariables(in.text(), func(name string) (string, bool) {
		if value, ok := in.fixedVariable(name); ok {
			return value, true
		}
		about := in.variables[name]
		about.secret = about.secret || in.secret
		about.required = about.required || in.required
		return fill(name, about), true
	})
	return value
}

// maxValue is the greatest length of a value after its variables were replaced, in bytes. A
// document of the greatest size could otherwise have one of many gigabytes.
const maxValue = 64 << 10

// replaceVariables replaces each variable in braces. It reports false if value does not know one,
// and if the result is longer than maxValue. Braces that are not closed are text.
func replaceVariables(text string, value func(name string) (string, bool)) (string, bool) {
	var out strings.Builder
	for {
		if out.Len()+len(text) > maxValue {
			return "", false
		}
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

// usableRemotes returns the remotes with a URL and a known transport, streamable HTTP first.
func (s server) usableRemotes() []remote {
	var all []remote
	for _, transport := range []string{StreamableHTTP, SSE} {
		for _, r := range s.remotes {
			if r.transport == transport && r.url.value != "" {
				all = append(all, r)
			}
		}
	}
	return all
}

// errNotLocal refuses a package that a client cannot talk to after it has started it.
var errNotLocal = errors.New("a package does not use stdio, and clients start only packages that do")

// localCommand returns the command of a package that clients can use; fill is as in command, and
// marks are those of the client.
func (p pkg) localCommand(fill filler, marks string) ([]string, error) {
	if p.transport != "" && p.transport != "stdio" {
		return nil, errNotLocal
	}
	if err := p.checkReferences(marks); err != nil {
		return nil, err
	}
	return p.command(fill)
}

// lastPart returns the part of a server's name after the slash.
func lastPart(name registry.Name) string {
	_, last, _ := strings.Cut(name.String(), "/")
	return last
}
