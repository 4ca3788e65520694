package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// fullDocument returns a document with every documented property.
func fullDocument(t *testing.T, name string) map[string]any {
	t.Helper()
	var doc map[string]any
	text := strings.ReplaceAll(full, "NAME", name)
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "HOST", strings.ReplaceAll(name, "/", "."))),
		&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

const full = `{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "NAME", "description": "Says what the weather will be", "title": "Weather", "version": "1.2.3",
  "websiteUrl": "https://weather.example/docs?a=b#c",
  "repository": {"url": "https://github.com/example/weather", "source": "github", "id": "R_1", "subfolder": "servers/weather"},
  "icons": [{"src": "https://weather.example/icon.png", "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark"}],
  "packages": [
    {"registryType": "npm", "registryBaseUrl": "https://packages.example", "identifier": "@example/weather", "version": "1.2.3",
     "fileSha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "runtimeHint": "npx",
     "transport": {"type": "streamable-http", "url": "http://127.0.0.1:{--port}/{path}?key={KEY}", "headers": [{"name": "X-Key", "value": "{key}", "variables": {"key": {"isSecret": true}}}]},
     "runtimeArguments": [{"type": "named", "name": "-y", "isRepeated": false}],
     "packageArguments": [
       {"type": "positional", "valueHint": "path", "description": "Where", "isRequired": true, "format": "filepath", "default": "/mcp", "placeholder": "/mcp", "isRepeated": true},
       {"type": "named", "name": "--port", "format": "number", "default": "8080"},
       {"type": "named", "name": "--level", "value": "{level}", "variables": {"level": {"choices": ["low", "high"], "default": "low", "isSecret": false}}}],
     "environmentVariables": [{"name": "KEY", "isSecret": true, "format": "string"}, {"name": "DEBUG", "format": "boolean", "value": "false"}]},
    {"registryType": "mcpb", "identifier": "https://weather.example/w.mcpb", "fileSha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "transport": {"type": "stdio"}}],
  "remotes": [
    {"type": "streamable-http", "url": "https://HOST/{tenant}/mcp", "headers": [{"name": "Authorization", "isRequired": true}], "variables": {"tenant": {"description": "Yours", "default": "a"}}},
    {"type": "sse", "url": "https://HOST/sse"}],
  "_meta": {"com.example/publisher-provided": {"build": 7, "deep": [{"a": null}]}, "org.example/other": "kept"}
}`

// gone is the value that removes a property.
type gone struct{}

// setProperty sets the value at a path, for example packages.0.version.
func setProperty(doc map[string]any, path string, value any) {
	parts := strings.Split(path, ".")
	var at any = doc
	for _, part := range parts[:len(parts)-1] {
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			i, _ := strconv.Atoi(part) // a test with a wrong path fails below
			at = v[i]
		}
	}
	last := parts[len(parts)-1]
	switch v := at.(type) {
	case map[string]any:
		if v[last] = value; value == (gone{}) {
			delete(v, last)
		}
	case []any:
		i, _ := strconv.Atoi(last) // likewise
		v[i] = value
	}
}

// variant is a full document with one change. Keys with dots are quoted in the path.
type variant struct {
	path  string
	value any
	wrong string // JSON path of the error; empty for a valid document
}

type object = map[string]any

// newVariants returns, for each documented property except the name, the values just inside and
// just outside its rules. Other tests cover the name.
func newVariants() []variant {
	x := strings.Repeat
	const pkg, rt, arg, port, level, env, tr, icon, repo, remote = "packages.0.", "packages[0].", "packages.0.packageArguments.0.",
		"packages.0.packageArguments.1.", "packages.0.packageArguments.2.", "packages.0.environmentVariables.0.", "packages.0.transport.",
		"icons.0.", "repository.", "remotes.0."
	all := []variant{
		{"unknown", 1, "unknown"}, {"Title", "x", "Title"}, {"status", "active", "status"}, {"unknown", nil, "unknown"},
		{"description", gone{}, "description"}, {"description", nil, "description"}, {"description", "", "description"},
		{"description", 5, "description"},
		{"description", x("ü", 101), "description"}, {"description", x("ü", 100), ""}, {"description", "x", ""},
		{"title", "", "title"}, {"title", x("t", 101), "title"}, {"title", []any{}, "title"}, {
			"title", x("😀", 100), "",
		}, {"title", "t", ""}, {"title", gone{}, ""}, {"title", nil, ""},
		{"websiteUrl", "", "websiteUrl"}, {"websiteUrl", "weather.example", "websiteUrl"}, {
			"websiteUrl", "/docs", "websiteUrl",
		}, {"websiteUrl", "ftp://weather.example", "websiteUrl"},
		{"websiteUrl", "https://", "websiteUrl"}, {"websiteUrl", "https://a b", "websiteUrl"}, {
			"websiteUrl", "javascript:alert(1)", "websiteUrl",
		}, {"websiteUrl", true, "websiteUrl"},
		{"websiteUrl", "HTTP://Weather.Example", ""}, {"websiteUrl", gone{}, ""},
		{"$schema", "", "$schema"}, {"$schema", "server.schema.json", "$schema"}, {"$schema", 1, "$schema"}, {
			"$schema", "urn:example:schema", "",
		}, {"$schema", gone{}, ""},

		{"repository", gone{}, ""}, {"repository", nil, ""}, {"repository", object{}, "repository.url"}, {
			"repository", "https://github.com/a/b", "repository",
		},
		{repo + "url", gone{}, "repository.url"}, {repo + "source", gone{}, "repository.source"}, {
			repo + "source", nil, "repository.source",
		}, {repo + "id", 7, "repository.id"}, {repo + "id", gone{}, ""},
		{repo + "url", "github.com/a/b", "repository.url"}, {repo + "url", "git@github.com:a/b", "repository.url"}, {
			repo + "url", "ssh://git@github.com/a/b", "repository.url",
		},
		{repo + "url", "https://github.com/a", "repository.url"}, {
			repo + "url", "https://github.com/a/b/tree/main", "repository.url",
		}, {repo + "url", "https://git.corp.example/a/b", ""},
		{"repository", object{"url": "https://gitlab.com/a", "source": "gitlab"}, "repository.url"}, {
			"repository", object{"url": "https://gitlab.com/a/b/-/tree/main", "source": "gitlab"}, "repository.url",
		},
		{"repository", object{"url": "https://gitlab.corp.example/a/b/c/d", "source": "gitlab"}, ""}, {
			"repository", object{"url": "http://forge.example/a", "source": "forge"}, "",
		},
		{
			"repository", object{"url": "https://github.com/a/b", "source": "github", "branch": "main"},
			"repository.branch",
		},
		{repo + "subfolder", "/a", "repository.subfolder"}, {repo + "subfolder", "a//b", "repository.subfolder"}, {
			repo + "subfolder", "a/../b", "repository.subfolder",
		},
		{repo + "subfolder", "./a", "repository.subfolder"}, {repo + "subfolder", "a/", "repository.subfolder"}, {
			repo + "subfolder", `a\b`, "repository.subfolder",
		},
		{repo + "subfolder", "", "repository.subfolder"}, {repo + "subfolder", "a/..b/.c", ""}, {
			repo + "subfolder", gone{}, "",
		},

		{"icons", object{}, "icons"}, {"icons", []any{}, ""}, {icon + "src", gone{}, "icons[0].src"}, {
			icon + "src", "http://weather.example/i.png", "icons[0].src",
		},
		{icon + "src", "data:image/png;base64,AA", "icons[0].src"}, {
			icon + "src", "https://weather.example/" + x("i", 232), "icons[0].src",
		}, {icon + "src", "https://weather.example/" + x("i", 231), ""},
		{icon + "mimeType", "image/gif", "icons[0].mimeType"}, {icon + "mimeType", "image/jpg", ""}, {
			icon + "mimeType", "image/jpeg", "",
		}, {icon + "mimeType", "image/svg+xml", ""}, {icon + "mimeType", "image/webp", ""},
		{icon + "sizes.0", "48", "icons[0].sizes[0]"}, {icon + "sizes.0", "48X48", "icons[0].sizes[0]"}, {
			icon + "sizes.1", "Any", "icons[0].sizes[1]",
		}, {icon + "sizes", "any", "icons[0].sizes"}, {icon + "sizes", gone{}, ""},
		{icon + "theme", "blue", "icons[0].theme"}, {icon + "theme", "light", ""}, {icon + "theme", gone{}, ""}, {
			icon + "size", "any", "icons[0].size",
		},

		{"packages", object{}, "packages"}, {"packages", []any{nil}, "packages[0]"}, {"packages", []any{}, ""}, {
			"packages", gone{}, "",
		},
		{pkg + "registryType", gone{}, rt + "registryType"}, {pkg + "registryType", 1, rt + "registryType"}, {
			pkg + "registryType", "cargo", "",
		},
		{pkg + "registryBaseUrl", "packages.example", rt + "registryBaseUrl"}, {
			pkg + "registryBaseUrl", "", rt + "registryBaseUrl",
		}, {pkg + "registryBaseUrl", gone{}, ""},
		{pkg + "identifier", gone{}, rt + "identifier"}, {pkg + "identifier", "", rt + "identifier"}, {
			pkg + "version", gone{}, "",
		},
		{pkg + "version", "", rt + "version"}, {pkg + "version", 1, rt + "version"}, {
			pkg + "fileSha256", x("A", 64), rt + "fileSha256",
		}, {pkg + "fileSha256", x("a", 63), rt + "fileSha256"}, {pkg + "fileSha256", x("a", 65), rt + "fileSha256"},
		{pkg + "fileSha256", x("g", 64), rt + "fileSha256"}, {pkg + "fileSha256", gone{}, ""}, {
			"packages.1.fileSha256", gone{}, "packages[1].fileSha256",
		}, {"packages.1.fileSha256", nil, "packages[1].fileSha256"},
		{pkg + "runtimeHint", 1, rt + "runtimeHint"}, {pkg + "runtimeHint", gone{}, ""}, {
			pkg + "registry_type", "npm", rt + "registry_type",
		},
		{pkg + "transport", gone{}, rt + "transport"}, {pkg + "transport", "stdio", rt + "transport"}, {
			pkg + "runtimeArguments", object{}, rt + "runtimeArguments",
		}, {pkg + "environmentVariables", nil, rt + "transport.url"},

		{arg + "description", 1, rt + "packageArguments[0].description"}, {
			arg + "isRequired", "yes", rt + "packageArguments[0].isRequired",
		}, {arg + "isSecret", 1, rt + "packageArguments[0].isSecret"},
		{arg + "format", "integer", rt + "packageArguments[0].format"}, {
			arg + "value", 5, rt + "packageArguments[0].value",
		}, {arg + "default", 5, rt + "packageArguments[0].default"}, {
			arg + "placeholder", false, rt + "packageArguments[0].placeholder",
		},
		{arg + "choices", "a", rt + "packageArguments[0].choices"}, {
			arg + "choices", []any{"a", 1}, rt + "packageArguments[0].choices[1]",
		}, {arg + "isRepeated", "no", rt + "packageArguments[0].isRepeated"},
		{arg + "type", gone{}, rt + "packageArguments[0].type"}, {
			arg + "type", "flag", rt + "packageArguments[0].type",
		}, {arg + "valueHint", 1, rt + "packageArguments[0].valueHint"}, {
			arg + "hint", "x", rt + "packageArguments[0].hint",
		},
		{pkg + "packageArguments.0", object{"type": "positional"}, rt + "packageArguments[0]"}, {
			arg + "name", "kept", "",
		}, {port + "valueHint", "kept", ""},
		{
			arg + "variables", object{"a": object{"variables": object{}}},
			rt + "packageArguments[0].variables.a.variables",
		}, {arg + "variables", []any{}, rt + "packageArguments[0].variables"},
		{port + "name", gone{}, rt + "packageArguments[1].name"}, {
			level + "name", "--level <l>", rt + "packageArguments[2].name",
		}, {level + "name", "$level", rt + "packageArguments[2].name"}, {level + "name", "level", ""},
		{port + "default", "many", rt + "packageArguments[1].default"}, {port + "default", "-0.5", ""}, {
			port + "value", "x", rt + "packageArguments[1].value",
		}, {port + "value", "{x}", ""},
		{level + "choices", []any{"low"}, ""}, {level + "default", "mid", ""}, {
			level + "variables.level.default", "mid", rt + "packageArguments[2].variables.level.default",
		},
		{level + "variables.level.choices", []any{"mid", "low"}, ""}, {
			"packages.0.environmentVariables.1.value", "no", rt + "environmentVariables[1].value",
		}, {"packages.0.environmentVariables.1.value", "True", rt + "environmentVariables[1].value"},
		{env + "name", gone{}, rt + "environmentVariables[0].name"}, {
			env + "type", "named", rt + "environmentVariables[0].type",
		}, {env + "choices", []any{"a", "b"}, ""},

		{tr + "type", gone{}, rt + "transport.type"}, {tr + "type", "http", rt + "transport.type"}, {
			tr + "type", "stdio", rt + "transport.url",
		}, {tr + "type", "sse", ""},
		{tr + "url", gone{}, rt + "transport.url"}, {tr + "url", "", rt + "transport.url"}, {
			tr + "url", "ftp://a", rt + "transport.url",
		}, {tr + "url", "{none}/mcp", rt + "transport.url"}, {tr + "url", "{path}/mcp", ""},
		{tr + "url", "http://{port}", rt + "transport.url"}, {tr + "url", "http://[{KEY}", rt + "transport.url"}, {
			tr + "url", "localhost:{--port}", rt + "transport.url",
		}, {tr + "headers.0.name", gone{}, rt + "transport.headers[0].name"},
		{tr + "variables", object{}, rt + "transport.variables"}, {
			"packages.1.transport.url", "https://a.example", "packages[1].transport.url",
		},

		{"remotes", []any{}, ""}, {"remotes", gone{}, ""}, {remote + "type", "stdio", "remotes[0].type"}, {
			remote + "type", gone{}, "remotes[0].type",
		}, {remote + "url", gone{}, "remotes[0].url"},
		{remote + "url", "ws://a.example", "remotes[0].url"}, {
			remote + "url", "https://a.example/{none}", "remotes[0].url",
		}, {remote + "url", "https://", "remotes[0].url"}, {remote + "variables", gone{}, "remotes[0].url"},
		{remote + "variables.tenant", "x", "remotes[0].variables.tenant"}, {
			remote + "headers", object{}, "remotes[0].headers",
		}, {remote + "headers.0.isRequired", 1, "remotes[0].headers[0].isRequired"}, {
			remote + "name", "x", "remotes[0].name",
		},

		{"_meta", []any{}, "_meta"}, {"_meta", gone{}, ""}, {"_meta", object{"plain": 1}, "_meta.plain"}, {
			"_meta", object{"com.example/a/b": 1}, `_meta["com.example/a/b"]`,
		}, {"_meta", object{"/a": 1}, `_meta["/a"]`},
		{"_meta", object{fixture.OfficialKey: object{}}, `_meta["` + fixture.OfficialKey + `"]`}, {
			"_meta", object{"a.b/publisher-provided": 1, "c.d/publisher-provided": 2},
			`_meta["c.d/publisher-provided"]`,
		},
		{"_meta", object{"a.b/publisher-provided": object{"a": x("x", 4096-8)}}, ""}, {
			"_meta", object{"a.b/publisher-provided": object{"a": x("x", 4096-7)}}, `_meta["a.b/publisher-provided"]`,
		},
		{"_meta", object{"a.b/c": x("x", 16384-12)}, ""}, {"_meta", object{"a.b/c": x("x", 16384-11)}, "_meta"},
	}
	for _, v := range []string{
		"latest", "^1.2.3", "~1.2.3", ">=1.2.3", "<=1.2.3", ">1.2.3", "<1.2.3", "=1.2.3", ">= 1.2.3", "^v1", "1.x",
		"1.X", "1.*", "1.2.x", "1.2.*", "1.x.x", "x.1", "*", "x", "X",
		"1.0.0 - 2.0.0", "1.0.0 || 2.0.0", "1.0.0||2.0.0", ">=1.0.0 <2.0.0", ">=1 <2 =3",
	} {
		all = append(all, variant{"version", v, "version"}, variant{pkg + "version", v, rt + "version"})
	}
	for _, v := range []string{
		"Latest", "1.0.0-2.0.0", "1.0.0-x", "1.2.3.x", "2021-03-15", "v1", "1", "release x", "1.0.0+exp.sha.5114f85",
		"x1", strings.Repeat("9", 255), "~draft",
	} {
		all = append(all, variant{"version", v, ""}, variant{pkg + "version", v, ""})
	}
	for _, spoil := range []func(string) string{
		func(s string) string { return s + "\n" }, func(s string) string { return " " + s }, func(s string) string {
			return s + "\u00a0"
		},
		func(s string) string { return s[:1] + "\u200b" + s[1:] }, func(s string) string { return s + "\u0085" },
		func(s string) string { return "\ufeff" + s },
	} {
		all = append(all, variant{"version", spoil("1.0.0"), "version"}, variant{
			pkg + "version", spoil("1.0.0"), rt + "version",
		},
			variant{pkg + "identifier", spoil("@weather/server"), rt + "identifier"}, variant{
				pkg + "registryType", spoil("npm"), rt + "registryType",
			},
			variant{remote + "url", spoil("https://weather.example/mcp"), "remotes[0].url"}, variant{
				env + "name", spoil("KEY"), rt + "environmentVariables[0].name",
			})
	}
	return append(all, variant{"version", gone{}, "version"}, variant{"version", "", "version"}, variant{
		"version", 1, "version",
	},
		variant{"version", strings.Repeat("ü", 256), "version"}, variant{"version", strings.Repeat("ü", 255), ""},
		variant{pkg + "version", strings.Repeat("9", 256), ""})
}

func (v variant) String() string { return fmt.Sprintf("%s = %.60v", v.path, v.value) }

// checkBadDocuments checks that publish returns 422 with the field for every value outside the
// rules, and that validate reports the same field.
func checkBadDocuments(t *testing.T, r *registry) {
	const name = "com.example.bad/server"
	for _, v := range newVariants() {
		if v.wrong == "" {
			continue
		}
		doc := fullDocument(t, name)
		setProperty(doc, v.path, v.value)
		t.Run(v.String(), func(t *testing.T) {
			wantFault(t, r.send(t, "POST", "/publish", doc), http.StatusUnprocessableEntity, v.wrong)
			if got := r.validate(t, doc); got.Valid || !got.hasIssue(v.wrong, "error") {
				t.Errorf("validate says %+v", got)
			}
		})
	}
	for name, wrong := range map[any]bool{
		"ab": true, "a/": true, "/b": true, "a/b": false, "no-slash": true, "a/b/c": true, "a_b/c": true, "a b/c": true,
		"a/b c": true, "ü/b": true, "a/ü": true, "a/b*": true, 7: true, nil: true, "": true,
		"com.Example.names-1/A._-b": false, "com.example.names/" + strings.Repeat("n", 182): false,
		"com.example.names/" + strings.Repeat("n", 183): true,
		".a/-b": false, "a/.": false,
	} {
		doc := fixture.NewServerDocument("com.example.names/x", "1.0.0")
		doc["name"], doc["remotes"] = name, []any{}
		a := r.send(t, "POST", "/publish", doc)
		if !wrong {
			decodeRecord(t, a)
			continue
		}
		wantFault(t, a, http.StatusUnprocessableEntity, "name")
	}
	r.get(t, fixture.ServerPath(name)+"/versions").WantStatus(t, http.StatusNotFound)
	several := fullDocument(t, name)
	setProperty(several, "title", "")
	setProperty(several, "packages.0.version", "latest")
	setProperty(several, "icons.0.theme", "x")
	wantFault(t, r.send(t, "POST", "/publish", several), http.StatusUnprocessableEntity, "title", "packages[0].version",
		"icons[0].theme")
	twice := `{"name":"com.example.bad/server","name":"com.example.bad/server","version":"1.0.0","description":"x"}`
	wantFault(t, r.send(t, "POST", "/publish", twice), http.StatusUnprocessableEntity, "name")
}

// checkGoodDocuments checks that every value just inside the rules is accepted, returned as it was
// sent, and accepted again.
func checkGoodDocuments(t *testing.T, r *registry) {
	for i, v := range newVariants() {
		if v.wrong != "" {
			continue
		}
		name := fmt.Sprintf("com.example.good/s%d", i)
		doc := fullDocument(t, name)
		setProperty(doc, v.path, v.value)
		t.Run(v.String(), func(t *testing.T) {
			if got := r.validate(t, doc); !got.Valid {
				t.Errorf("validate says %+v", got)
			}
			published := r.write(t, "POST", "/publish", doc)
			read := decodeRecord(t, r.get(t, fixture.ServerPath(name, doc["version"].(string))))
			if !equalJSON(t, published.Server, doc) || !equalJSON(t, read, published) {
				t.Errorf("it reads back as %+v", read.Server)
			}
			r.write(t, "PUT", fixture.ServerPath(name, doc["version"].(string)), read.Server)
		})
	}
	// Numbers and the order of properties do not change.
	exact := `{"version":"1.0.0","name":"com.example.good/exact","description":"\u0041 \"b\"","_meta":{"a.b/c":[1.0,12345678901234567890,1e3]}}`
	a := r.send(t, "POST", "/publish", exact).WantStatus(t, http.StatusOK)
	if !strings.Contains(string(a.Body), exact) {
		t.Errorf("answer is %s, want %s in it", a.Body, exact)
	}
}

// verdict is the response of validate.
type verdict struct {
	Valid  bool `json:"valid"`
	Issues []struct {
		Type, Path, Message, Severity, Reference string
	} `json:"issues"`
}

// hasIssue reports whether there is an issue of a severity at a path.
func (v verdict) hasIssue(path, severity string) bool {
	for _, i := range v.Issues {
		if i.Path == path && i.Severity == severity && i.Message != "" && i.Reference != "" {
			return true
		}
	}
	return false
}

// validate sends a document to validate without a token.
func (r *registry) validate(t *testing.T, doc any) verdict {
	t.Helper()
	var v verdict
	apiclient.Call(t, "POST", r.s.API+"/v0.1/validate", doc).WantStatus(t, http.StatusOK).Decode(t, &v)
	if v.Issues == nil {
		t.Error("issues are no array")
	}
	for _, i := range v.Issues {
		switch i.Type {
		case "json", "schema", "semantic", "linter":
		default:
			t.Errorf("issue %+v has an unknown type", i)
		}
	}
	return v
}

// checkInvisible stores a version that looks like another one, as registries did before such
// versions were refused. It can be read and deleted, but not replaced.
func checkInvisible(t *testing.T, r *registry) {
	const name, version = "com.example.invisible/server", "1.0.0\u200b"
	text, err := json.Marshal(map[string]any{"server": fixture.NewServerDocument(name, version)})
	if err != nil {
		t.Fatal(err)
	}
	if out, _, _ := r.TryCommand(t, string(text), "registry", "import", "-"); !strings.Contains(out,
		"version must not have control or format characters") {
		t.Errorf("an import says %s", out)
	}
	if out, _, code := r.TryCommand(t, string(text), "registry", "import", "--lenient", "-"); code != 0 {
		t.Fatalf("exit %d of a lenient import: %s", code, out)
	}
	if got := decodeRecord(t, r.get(t, fixture.ServerPath(name, version))); got.Server["version"] != version {
		t.Errorf("the stored version is read as %v", got)
	}
	wantFault(t, r.send(t, "POST", "/publish", fixture.NewServerDocument(name, version)),
		http.StatusUnprocessableEntity, "version must not have")
	wantFault(t, r.send(t, "PUT", fixture.ServerPath(name, version), fixture.NewServerDocument(name, version)),
		http.StatusUnprocessableEntity, "version must not have")
	r.setStatus(t, name, version, "deprecated")
	if got := r.write(t, "DELETE", fixture.ServerPath(name, version), nil); got.Official().Status != "deleted" {
		t.Errorf("the stored version is deleted as %+v", got.Official())
	}
}

// checkValidate checks that warnings do not make a document invalid.
func checkValidate(t *testing.T, r *registry) {
	const name = "com.example.validate/server"
	if got := r.validate(t, fullDocument(t, name)); !got.Valid || len(got.Issues) != 0 {
		t.Errorf("a document without fault is %+v", got)
	}
	for _, c := range []struct {
		path  string
		value any
		at    string
	}{
		{"$schema", gone{}, "$schema"}, {"$schema", "https://example.com/schema.json", "$schema"}, {
			"packages.0.runtimeHint", gone{}, "packages[0].runtimeArguments",
		},
		{"name", "a/server", "name"}, {"name", "com.example/-server", "name"}, {"name", "com.example./server", "name"},
		{"name", "com.example/server_", "name"},
	} {
		doc := fullDocument(t, name)
		setProperty(doc, c.path, c.value)
		if got := r.validate(t, doc); !got.Valid || !got.hasIssue(c.at, "warning") {
			t.Errorf("%s = %v is %+v, want a warning at %s", c.path, c.value, got, c.at)
		}
	}
	for _, body := range []string{"", "{", "[]", "7"} {
		apiclient.WantRegistryError(t,
			apiclient.Call(t, "POST", r.s.API+"/v0.1/validate", body).WantStatus(t, http.StatusBadRequest))
	}
	if got := r.list(t, "/servers?include_deleted=true&search="+name); len(got.Servers) != 0 {
		t.Errorf("validate stored %v", got.Names())
	}
}
