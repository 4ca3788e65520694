package review_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/test/must"
)

// approvedDocument has every property that a document may have.
const approvedDocument = `{
	"$schema": "https://static.example/schemas/2025-10-17/server.schema.json",
	"name": "com.acme/tools", "title": "Tools", "description": "Tools of Acme, see https://docs.acme.example/tools", "version": "1.0.0",
	"websiteUrl": "https://acme.example/tools",
	"repository": {"url": "https://github.com/acme/tools", "source": "github", "id": "7", "subfolder": "servers/tools"},
	"icons": [{"src": "https://cdn.acme.example/icon.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}],
	"packages": [
		{"registryType": "npm", "registryBaseUrl": "https://npm.acme.example", "identifier": "good-pkg", "version": "1.0.0", "runtimeHint": "npx",
			"runtimeArguments": [{"type": "named", "name": "--package", "value": "good-pkg@1.0.0", "description": "What is run"}, {"type": "positional", "value": "serve"}],
			"packageArguments": [{"type": "positional", "valueHint": "root", "default": "/srv", "choices": ["/srv", "/opt"],
				"variables": {"description": {"description": "A folder", "default": "x"}}}],
			"environmentVariables": [{"name": "ACME_KEY", "description": "The key", "isSecret": true, "isRequired": true, "format": "string"}],
			"transport": {"type": "stdio"}},
		{"registryType": "oci", "identifier": "ghcr.io/acme/tools:1.0.0", "transport": {"type": "streamable-http", "url": "http://localhost:{port}/mcp",
			"headers": [{"name": "X-Acme", "value": "{key}", "variables": {"key": {"isSecret": true}}}]},
			"runtimeArguments": [{"type": "named", "name": "-p", "value": "8080:8080"}]},
		{"registryType": "mcpb", "identifier": "https://github.com/acme/tools/releases/download/v1.0.0/tools-1.0.0.mcpb",
			"fileSha256": "0000000000000000000000000000000000000000000000000000000000000000", "transport": {"type": "stdio"}}
	],
	"remotes": [
		{"type": "streamable-http", "url": "https://mcp.acme.example/{tenant}/mcp", "headers": [{"name": "Authorization", "isSecret": true}],
			"variables": {"tenant": {"description": "Your tenant", "choices": ["a", "b"]}}},
		{"type": "sse", "url": "https://mcp.acme.example/sse"}
	],
	"_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"tool": "acme-ci", "args": ["--safe"]}}
}`

// edited returns the approved document after replacements of texts, in pairs.
func edited(t *testing.T, pairs ...string) string {
	t.Helper()
	text := approvedDocument
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the document has no %s", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

func equalOrigins(t interface {
	Helper()
	Fatal(args ...any)
}, document, approved string,
) bool {
	t.Helper()
	read := func(text string) review.Origins {
		o, err := review.ReadOrigins([]byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		return o
	}
	return read(document).Equal(read(approved))
}

// TestOriginsOfNextVersions checks which next versions take code from the same places, and send
// data there (contract C-15).
func TestOriginsOfNextVersions(t *testing.T) {
	t.Parallel()
	const firstArgument = `"runtimeArguments": [`
	for name, c := range map[string]struct {
		edits []string
		want  bool
	}{
		"nothing":       {nil, true},
		"every version": {[]string{"1.0.0", "1.0.1"}, true},
		"the version alone": {[]string{`"version": "1.0.0",
	"websiteUrl"`, `"version": "1.0.1",
	"websiteUrl"`}, true},
		"a version with a v":       {[]string{`"version": "1.0.0"`, `"version": "v1.0.0"`}, true},
		"the title":                {[]string{`"Tools"`, `"Better tools"`}, true},
		"the description":          {[]string{`Tools of Acme`, `More tools of Acme`}, true},
		"the description of a key": {[]string{`"The key"`, `"The key of Acme"`}, true},
		"a newer schema":           {[]string{"2025-10-17", "2025-12-11"}, true},
		"a page of the website":    {[]string{"acme.example/tools\"", "acme.example/tools/v2\""}, true},
		"the path of an icon":      {[]string{"icon.png", "icon2.png"}, true},
		"the path of a remote":     {[]string{"/sse\"", "/v2?x=y#z\""}, true},
		"the hash of a file":       {[]string{strings.Repeat("0", 64), strings.Repeat("a", 64)}, true},
		"the host in capitals":     {[]string{"https://mcp.acme.example/sse", "HTTPS://MCP.acme.example/sse"}, true},
		"a null":                   {[]string{`"title": "Tools"`, `"title": "Tools", "websiteURL": null`}, true},
		"the digest of an image":   {[]string{"tools:1.0.0", "tools@sha256:" + strings.Repeat("a", 64)}, false},
		"no version of a package": {
			[]string{`"identifier": "good-pkg", "version": "1.0.0"`, `"identifier": "good-pkg"`}, false,
		},
		"the tag latest": {[]string{"ghcr.io/acme/tools:1.0.0", "ghcr.io/acme/tools:latest"}, false},
		"an npm alias as version": {
			[]string{
				`"identifier": "good-pkg", "version": "1.0.0"`,
				`"identifier": "good-pkg", "version": "npm:evil-pkg@1.0.0"`,
			}, false,
		},
		"a URL as version": {
			[]string{
				`"identifier": "good-pkg", "version": "1.0.0"`,
				`"identifier": "good-pkg", "version": "https://npm.acme.example/evil.tgz"`,
			}, false,
		},
		"a repository as version": {
			[]string{
				`"identifier": "good-pkg", "version": "1.0.0"`, `"identifier": "good-pkg", "version": "evil/pkg"`,
			}, false,
		},
		"another package":          {[]string{`"identifier": "good-pkg"`, `"identifier": "evil-pkg"`}, false},
		"another package registry": {[]string{"https://npm.acme.example", "https://npm.evil.example"}, false},
		"another registry type":    {[]string{`"registryType": "npm"`, `"registryType": "pypi"`}, false},
		"another image":            {[]string{"ghcr.io/acme/tools:1.0.0", "ghcr.io/evil/tools:1.0.0"}, false},
		"a port in place of a tag": {[]string{"ghcr.io/acme/tools:1.0.0", "ghcr.io:1.0.0/acme/tools"}, false},
		"another file":             {[]string{"acme/tools/releases", "evil/tools/releases"}, false},
		"the option --package": {
			[]string{
				firstArgument + `{"type": "named"`,
				firstArgument + `{"type": "named", "name": "--package", "value": "evil-pkg"}, {"type": "named"`,
			}, false,
		},
		"the package of an option":  {[]string{`"value": "good-pkg@1.0.0"`, `"value": "evil-pkg@1.0.0"`}, false},
		"a package in an argument":  {[]string{`"value": "serve"`, `"value": "evil-pkg@1.0.0"`}, false},
		"a version of nothing here": {[]string{`"value": "good-pkg@1.0.0"`, `"value": "good-pkg@2.0.0"`}, false},
		"a shell": {
			[]string{`"runtimeHint": "npx"`, `"runtimeHint": "bash"`, `"--package"`, `"-c"`}, false,
		},
		"a shell alone":             {[]string{`"runtimeHint": "npx"`, `"runtimeHint": "bash"`}, false},
		"no runtime hint":           {[]string{`"runtimeHint": "npx",`, ``}, false},
		"a published port":          {[]string{"8080:8080", "80:8080"}, false},
		"a package argument":        {[]string{`"default": "/srv"`, `"default": "/opt"`}, false},
		"a variable of an argument": {[]string{`"default": "x"`, `"default": "y"`}, false},
		"the transport of a package": {
			[]string{`"url": "http://localhost:{port}/mcp"`, `"url": "https://evil.example/mcp"`}, false,
		},
		"NODE_OPTIONS": {
			[]string{
				`"environmentVariables": [`,
				`"environmentVariables": [{"name": "NODE_OPTIONS", "value": "--require /tmp/x"}, `,
			}, false,
		},
		"another variable":        {[]string{"ACME_KEY", "NODE_OPTIONS"}, false},
		"the value of a variable": {[]string{`"name": "ACME_KEY",`, `"name": "ACME_KEY", "value": "x",`}, false},
		"a header of a package":   {[]string{"X-Acme", "Cookie"}, false},
		"a header of a remote":    {[]string{`"Authorization"`, `"Cookie"`}, false},
		"the website":             {[]string{"https://acme.example/tools", "https://evil.example/tools"}, false},
		"the website with a user": {
			[]string{"https://acme.example/tools", "https://acme.example@evil.example/tools"}, false,
		},
		"a script as website":       {[]string{"https://acme.example/tools", "javascript:alert(1)"}, false},
		"the host of an icon":       {[]string{"cdn.acme.example", "cdn.evil.example"}, false},
		"the host of the schema":    {[]string{"https://static.example", "https://evil.example"}, false},
		"a URL in the description":  {[]string{"docs.acme.example", "docs.evil.example"}, false},
		"a URL in the title":        {[]string{`"Tools"`, `"See https://evil.example"`}, false},
		"a URL in a path":           {[]string{"/sse\"", "/sse?to=https://evil.example\""}, false},
		"another repository":        {[]string{"github.com/acme/tools\"", "github.com/evil/tools\""}, false},
		"the id of the repository":  {[]string{`"id": "7"`, `"id": "8"`}, false},
		"the folder":                {[]string{"servers/tools", "servers/evil"}, false},
		"a remote without TLS":      {[]string{"https://mcp.acme.example/sse", "http://mcp.acme.example/sse"}, false},
		"another port":              {[]string{"mcp.acme.example/sse", "mcp.acme.example:8443/sse"}, false},
		"a longer host":             {[]string{"mcp.acme.example/sse", "mcp.acme.example.evil.example/sse"}, false},
		"a host after a user":       {[]string{"mcp.acme.example/sse", "mcp.acme.example@evil.example/sse"}, false},
		"a host after a backslash":  {[]string{"mcp.acme.example/sse", `evil.example\\@mcp.acme.example/sse`}, false},
		"a host after a tab":        {[]string{"mcp.acme.example/sse", `mcp.acme.example\t.evil.example/sse`}, false},
		"the kind of a remote":      {[]string{`"type": "sse"`, `"type": "streamable-http"`}, false},
		"the choices of a variable": {[]string{`"choices": ["a", "b"]`, `"choices": ["a", "c"]`}, false},
		"what others read in _meta": {[]string{"--safe", "--unsafe"}, false},
		"capitals of a property":    {[]string{`"runtimeHint"`, `"RuntimeHint"`}, false},
		"what stands for a version": {
			[]string{
				`"identifier": "good-pkg", "version": "1.0.0"`, `"identifier": "good-pkg", "version": "{version}"`,
			}, false,
		},
	} {
		if got := equalOrigins(t, edited(t, c.edits...), approvedDocument); got != c.want {
			t.Errorf("%s: the origins are equal: %v, want %v", name, got, c.want)
		}
	}
}

// TestOpenHost checks that a remote with a variable host never has the same origin: its values may
// be any.
func TestOpenHost(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://{region}.acme.example/mcp", "{base}/mcp", "https://user@acme.example/mcp", "/mcp", "",
	} {
		if document := `{"remotes":[{"url":"` + url + `"}]}`; equalOrigins(t, document, document) {
			t.Errorf("the remote %q has a fixed host", url)
		}
	}
}

// TestReadOriginsRefuses checks that what is not an object has no origins.
func TestReadOriginsRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `null`, `[]`, `"x"`, `{`} {
		if _, err := review.ReadOrigins([]byte(text)); err == nil {
			t.Errorf("ReadOrigins(%q) has no error", text)
		}
	}
}

// freePaths are the values that may change, as JSON pointers with "*" for an index or a name, and
// to what they may.
var freePaths = map[string]string{
	"/title":       "another text",
	"/description": "another text",
	"/version":     "9.9.9",

	"/$schema":     "https://static.example/another",
	"/websiteUrl":  "https://acme.example/another",
	"/icons/*/src": "https://cdn.acme.example/another",

	"/packages/*/version":    "9.9.9",
	"/packages/*/fileSha256": strings.Repeat("b", 64),

	"/packages/*/runtimeArguments/*/description":             "another text",
	"/packages/*/packageArguments/*/description":             "another text",
	"/packages/*/packageArguments/*/variables/*/description": "another text",
	"/packages/*/environmentVariables/*/description":         "another text",
	"/packages/*/transport/headers/*/description":            "another text",

	"/remotes/*/url":                     "https://mcp.acme.example/another",
	"/remotes/*/headers/*/description":   "another text",
	"/remotes/*/variables/*/description": "another text",
}

// place is a value in a document.
type place struct {
	pattern string // its JSON pointer with "*" for each index and each name of a variable
	get     func() any
	set     func(any)
	remove  func()
}

// placesOf returns all values in a document but the document itself.
func placesOf(at string, value any) (all []place) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range v {
				if !yield(name) {
					return
				}
			}
		}) {
			pattern := at + "/" + name
			if strings.HasSuffix(at, "/variables") {
				pattern = at + "/*"
			}
			all = append(all, place{
				pattern, func() any { return v[name] }, func(x any) { v[name] = x }, func() { delete(v, name) },
			})
			all = append(all, placesOf(pattern, v[name])...)
		}
	case []any:
		for i := range v {
			all = append(all, place{at + "/*", func() any { return v[i] }, func(x any) { v[i] = x }, nil})
			all = append(all, placesOf(at+"/*", v[i])...)
		}
	}
	return all
}

// TestAnyOtherChangeWaits checks that a document with any one change has other origins, unless the
// contract lists the change as free (contract C-15).
func TestAnyOtherChangeWaits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var document map[string]any
		must.Succeed(t, json.Unmarshal([]byte(approvedDocument), &document))
		at := rapid.SampledFrom(placesOf("", document)).Draw(t, "place")
		free, want := freePaths[at.pattern], false
		switch change := rapid.SampledFrom([]string{"text", "free text", "remove", "add", "type"}).Draw(t,
			"change"); change {
		case "text":
			s, ok := at.get().(string)
			if !ok || free != "" {
				return
			}
			more := rapid.SampledFrom([]string{"x", " ", ".example", "@1.0.0", "/x"}).Draw(t, "more")
			if at.pattern == "/packages/*/identifier" { // which may end with a version
				at.set(more + s)
			} else {
				at.set(s + more)
			}
		case "free text":
			if free == "" {
				return
			}
			at.set(free)
			want = true
		case "remove":
			if at.remove == nil {
				return
			}
			at.remove()
			// A description and a title may also be left out.
			want = strings.HasSuffix(at.pattern, "/description") || at.pattern == "/title"
		case "add":
			switch v := at.get().(type) {
			case map[string]any:
				v[rapid.SampledFrom([]string{"x", "value", "default", "Version"}).Draw(t, "name")] = "more"
			case []any:
				at.set(append(v, v[0]))
			default:
				return
			}
		case "type":
			at.set([]any{at.get()})
		}
		text, err := json.Marshal(document)
		must.Succeed(t, err)
		if got := equalOrigins(t, string(text), approvedDocument); got != want {
			t.Fatalf("%s: the origins are equal: %v, want %v: %s", at.pattern, got, want, text)
		}
	})
}

func FuzzReadOrigins(f *testing.F) {
	f.Add([]byte(approvedDocument))
	f.Add([]byte(`{"remotes":[{"url":"https://a/b"},3],"packages":{},"repository":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		origins, err := review.ReadOrigins(text)
		if err == nil && !origins.Equal(origins) && !strings.Contains(string(text), "remotes") {
			t.Error("only a remote without a fixed host is not among its own origins")
		}
	})
}
