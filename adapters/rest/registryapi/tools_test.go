package registryapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const toolsOfOne = "/x/dev.tollgate/servers/com.example%2Fserver/versions/1.0.0/tools"

// storedList returns the list of a part of a document.
func storedList(t *testing.T, r registry.Record, at tools.Place, s tools.State, tool string) tools.Stored {
	t.Helper()
	part, err := tools.FindPart(r.Document, at)
	must.Succeed(t, err)
	l, err := tools.Parse([]byte(`{"instructions":"i","prompts":[{"name":"p","description":"d"}],"tools":[` + tool + `]}`))
	must.Succeed(t, err)
	return tools.Stored{
		Name: r.Name, Version: r.Version, Part: part.Key, Source: tools.Recorded, State: s, At: now, By: tools.Sender{Key: "ada"}, List: l,
	}
}

// TestToolsAreData checks that get_server has the approved tools alone, as what publishers wrote.
func TestToolsAreData(t *testing.T) {
	t.Parallel()
	r := record(t, "com.example/server", "1.0.0")
	r.Document = []byte(`{"name":"com.example/server","version":"1.0.0","remotes":[{"type":"sse","url":"https://a.example/sse"}]}`)
	servers := newServers(t, r)
	lists, at := fakedb.NewToolLists(servers.db), tools.Place{Remote: "https://a.example/sse"}
	must.Succeed(t, servers.db.Atomically(t.Context(), func(ctx context.Context) error {
		approved := storedList(t, r, at, tools.Approved, `{"name":"read_\u202ewiki","description":"Reads\nthe wiki"}`)
		return errors.Join(lists.Put(ctx, approved), lists.Put(ctx, storedList(t, r, at, tools.Differs, `{"name":"evil"}`)))
	}))
	reads := newReads(servers, nil)
	reads.Tools = newTools(servers.db)
	s, err := connectMCP(t, serveAs(t, anybody{}, withMCP(), reads)+"/mcp", "")
	must.Succeed(t, err)
	texts, failed := callTool(t, s, "get_server", map[string]any{"name": "com.example/server"})
	if n := len(texts); failed || texts[n-1] != "read_wiki: Reads the wiki" || strings.Contains(strings.Join(texts, ""), "evil") {
		t.Errorf("get_server answers %q", texts)
	}
}

// TestReadTools checks the lists of a version, as they are read in the registry and in a view: in the
// order of the document, the approved one first, each tool with its mark.
func TestReadTools(t *testing.T) {
	r := record(t, "com.example/server", "1.0.0")
	r.Latest = true
	r.Document = []byte(`{"name":"com.example/server","version":"1.0.0","remotes":[{"type":"sse","url":"https://a.example/sse"}],` +
		`"packages":[{"registryType":"npm","identifier":"x"}]}`)
	servers := newServers(t, r)
	lists := fakedb.NewToolLists(servers.db)
	for _, l := range []tools.Stored{
		storedList(t, r, tools.Place{}, tools.Pending, ""),
		storedList(t, r, tools.Place{Remote: "https://a.example/sse"}, tools.Differs, `{"name":"b"}`),
		storedList(t, r, tools.Place{Remote: "https://a.example/sse"}, tools.Approved, `{"name":"a","title":"<b>","annotations":{"readOnlyHint":true}}`),
	} {
		must.Succeed(t, lists.Put(t.Context(), l))
	}
	reads := newReads(servers, newViews(t))
	reads.Tools = newTools(servers.db)
	url := serveReads(t, registryapi.Config{Log: discardLog()}, reads, nil, discardLog())
	for _, path := range []string{
		"/v0.1" + toolsOfOne, "/v0" + toolsOfOne, "/registries/team/v0.1" + toolsOfOne, "/registries/inner/t/secret/v0" + toolsOfOne,
		"/v0.1" + strings.Replace(toolsOfOne, "1.0.0", "latest", 1),
	} {
		a := call(t, "GET", url+path, "")
		compareGolden(t, "tools.golden.json", a.body)
		tag := a.header.Get("ETag")
		if again := call(t, "GET", url+path, "", "If-None-Match", tag); tag == "" || again.status != 304 || again.body != "" {
			t.Errorf("%s: the tag %q gets %d", path, tag, again.status)
		}
	}
	for path, status := range map[string]int{
		"/v0.1" + strings.Replace(toolsOfOne, "1.0.0", "2.0.0", 1): 404, "/v0.1" + strings.Replace(toolsOfOne, "com.example", "com.other", 1): 404,
		"/registries/inner/v0.1" + toolsOfOne: 401, "/registries/none/v0.1" + toolsOfOne: 404, "/v0.1" + toolsOfOne + "/": 200,
		"/v0.1" + toolsOfOne + "?include_deleted=x": 400,
	} {
		if a := call(t, "GET", url+path, ""); a.status != status {
			t.Errorf("%s is %d %s, want %d", path, a.status, a.body, status)
		}
	}
}

// TestRecordTools checks what the handler passes on, and how it answers.
func TestRecordTools(t *testing.T) {
	r := record(t, "com.example/server", "1.0.0")
	var got struct {
		body   string
		who    authority.Caller
		target publishing.Target
	}
	outcome, refusal := publishing.RecordedTools{}, error(nil)
	serveTools := func(off bool) string {
		return serve(t, registryapi.Config{Log: discardLog(), WritesOff: off, RecordTools: func(
			_ context.Context, who authority.Caller, body []byte, target publishing.Target,
		) (publishing.RecordedTools, error) {
			got.body, got.who, got.target = string(body), who, target
			return outcome, refusal
		}}, newServers(t, r), &writerStub{})
	}
	url := serveTools(false)
	for _, prefix := range []string{"/v0.1", "/v0"} {
		for first, status := range map[bool]int{true: 201, false: 200} {
			outcome.First = first
			a := call(t, "PUT", url+prefix+toolsOfOne, `{"tools":[]}`, "Authorization", "Bearer the.token", "Content-Type", "application/json")
			a.expect(t, status, `{"lists":[]}`)
			holder, err := got.who.Person()
			if a.header.Get("Cache-Control") != "no-store" || got.body != `{"tools":[]}` || err != nil || holder != "the.token" ||
				got.target != (publishing.Target{Name: "com.example/server", Version: "1.0.0"}) {
				t.Errorf("%+v is passed on, and the answer has %v", got, a.header)
			}
		}
	}
	if a := call(t, "PUT", url+"/registries/team/v0.1"+toolsOfOne, `{}`); a.status != 405 {
		t.Errorf("in a view it is %d %s", a.status, a.body)
	}
	if a := call(t, "PUT", url+"/v0.1"+toolsOfOne, `{}`, "Content-Type", "text/plain"); a.status != 415 {
		t.Errorf("a form of another site is %d %s", a.status, a.body)
	}
	large := strings.Repeat(" ", rest.MaxListBody)
	outcome.First = false
	if a := call(t, "PUT", url+"/v0.1"+toolsOfOne, large, "Authorization", "Bearer the.token"); a.status != 200 || len(got.body) != len(large) {
		t.Errorf("the largest body is %d %s", a.status, a.body)
	}
	if a := call(t, "PUT", url+"/v0.1"+toolsOfOne, large+" "); a.status != 413 {
		t.Errorf("a larger body is %d %s", a.status, a.body)
	}
	if a := call(t, "PUT", url+"/v0.1"+onePath, large); a.status != 413 {
		t.Errorf("a document of that size is %d %s", a.status, a.body)
	}
	for kind, status := range map[fault.Kind]int{
		fault.Invalid: 400, fault.Unauthenticated: 401, fault.Forbidden: 403, fault.NotFound: 404, fault.Unavailable: 503,
	} {
		refusal = fault.New(kind, "a sentence")
		a := call(t, "PUT", url+"/v0.1"+toolsOfOne, `{}`)
		var said map[string]string
		if err := json.Unmarshal([]byte(a.body), &said); err != nil || a.status != status || said["error"] != "a sentence" {
			t.Errorf("%s is %d %s", kind, a.status, a.body)
		}
	}
	refusal = fault.New(fault.Unsupported, "off")
	off := serveTools(true)
	for _, body := range []string{`{}`, large + " "} {
		if a := call(t, "PUT", off+"/v0.1"+toolsOfOne, body); a.status != 501 {
			t.Errorf("without writes a body of %d bytes is %d %s", len(body), a.status, a.body)
		}
	}
}

// TestToolBodies checks that what the listener reads is what the model can read.
func TestToolBodies(t *testing.T) {
	if rest.MaxListBody != tools.MaxBody {
		t.Errorf("a body has at most %d bytes, and a list %d", rest.MaxListBody, tools.MaxBody)
	}
}
