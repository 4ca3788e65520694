package registry

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
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

type object = map[string]any

// checkDocuments publishes a document with every property, and tries documents that break rules. The
// rules themselves are checked in core/registry.
func checkDocuments(t *testing.T, r *registry) {
	const name = "com.example.documents/server"
	doc := fullDocument(t, name)
	if got := r.validate(t, doc); !got.Valid || len(got.Issues) != 0 {
		t.Errorf("a document without fault is %+v", got)
	}
	published := r.write(t, "POST", "/publish", doc)
	read := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.2.3")))
	if !equalJSON(t, published.Server, doc) || !equalJSON(t, read, published) {
		t.Errorf("it reads back as %+v", read.Server)
	}
	r.write(t, "PUT", fixture.ServerPath(name, "1.2.3"), read.Server)
	// Numbers and the order of properties do not change.
	exact := `{"version":"1.0.0","name":"com.example.documents/exact","description":"\u0041 \"b\"",` +
		`"_meta":{"a.b/c":[1.0,12345678901234567890,1e3]}}`
	a := r.send(t, "POST", "/publish", exact).WantStatus(t, http.StatusOK)
	if !strings.Contains(string(a.Body), exact) {
		t.Errorf("answer is %s, want %s in it", a.Body, exact)
	}

	bad := fullDocument(t, "com.example.documents/bad")
	bad["title"], bad["version"] = "", "^1.0.0"
	bad["packages"].([]any)[0].(object)["version"] = "latest"
	wantFault(t, r.send(t, "POST", "/publish", bad), http.StatusUnprocessableEntity, "title", "version",
		"packages[0].version")
	got := r.validate(t, bad)
	if got.Valid || !got.hasIssue("title", "error") || !got.hasIssue("packages[0].version", "error") {
		t.Errorf("validate says %+v", got)
	}
	r.get(t, fixture.ServerPath("com.example.documents/bad")+"/versions").WantStatus(t, http.StatusNotFound)
	wantFault(t, r.send(t, "POST", "/publish", fixture.NewServerDocument("no-slash", "1.0.0")),
		http.StatusUnprocessableEntity, "name")
	delete(doc, "$schema") // which is no more than a warning
	if got := r.validate(t, doc); !got.Valid || !got.hasIssue("$schema", "warning") {
		t.Errorf("without a schema it is %+v", got)
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
	return v
}

// checkInvisible stores a version that looks like another one, as registries did before such
// versions were refused. It can be read and deleted, but not replaced.
func checkInvisible(t *testing.T, r *registry) {
	const name, version = "com.example.invisible/server", "1.0.0\u200b"
	text, err := json.Marshal(map[string]any{"server": fixture.NewServerDocument(name, version)})
	must.Succeed(t, err)
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
