package registry

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// sendIf does what send does, with more headers.
func (r *registry) sendIf(t *testing.T, method, path string, body any, header ...string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, r.s.API+"/v0.1"+path, body, append(r.writer.Bearer(), header...)...)
}

// readTag returns the ETag of a read in a content coding. The tag must be strong.
func (r *registry) readTag(t *testing.T, path, coding string) string {
	t.Helper()
	tag := apiclient.Call(t, "HEAD", r.s.API+"/v0.1"+path, nil, "Accept-Encoding", coding).WantStatus(t,
		http.StatusOK).Header.Get("ETag")
	if len(tag) < 3 || tag[0] != '"' {
		t.Fatalf("the ETag of %s is %q", path, tag)
	}
	return tag
}

// checkPreconditions checks that a write changes nothing when its If-Match or If-None-Match
// condition is false (RFC 9110, 13.1.1 and 13.1.2), and that every response has the tag of the next
// read.
func checkPreconditions(t *testing.T, r *registry) {
	const name = "com.example.if/server"
	path := fixture.ServerPath(name, "1.0.0")
	titled := func(title string) map[string]any {
		doc := fixture.WithProperty(fixture.NewServerDocument(name, "1.0.0"), "title", title)
		// long enough to be compressed
		return fixture.WithProperty(doc, "_meta", map[string]any{"com.example/text": strings.Repeat("text ", 1000)})
	}
	// wantTag checks that the tag of a write equals the tag of the next read, in each content
	// coding.
	wantTag := func(a apiclient.Response, status string) string {
		t.Helper()
		got := a.WantStatus(t, http.StatusOK).Header.Get("ETag")
		reads := []string{path + "?include_deleted=true"}
		if status != "deleted" {
			reads = append(reads, path, fixture.ServerPath(name, "latest"))
		}
		for _, read := range reads {
			if want := r.readTag(t, read, "identity"); got != want {
				t.Errorf("a write answers the tag %s, and %s has %s", got, read, want)
			}
		}
		return got
	}
	first := wantTag(r.sendIf(t, "POST", "/publish", fixture.NewServerDocument(name, "1.0.0"), "If-None-Match",
		"*"), "active")
	wantFault(t, r.sendIf(t, "POST", "/publish", fixture.NewServerDocument(name, "1.0.0"), "If-None-Match", "*"),
		http.StatusPreconditionFailed, "precondition")
	second := wantTag(r.sendIf(t, "PUT", path, titled("Second"), "If-Match", first), "active")
	deprecated := object{"status": "deprecated"}
	for _, header := range [][]string{{"If-Match", first}, {"If-Match", "W/" + second}, {"If-None-Match", "*"}} {
		for method, c := range map[string]struct {
			path string
			body any
		}{
			"PUT": {path, titled("Lost")}, "DELETE": {path, nil}, "PATCH": {path + "/status", deprecated},
		} {
			wantFault(t, r.sendIf(t, method, c.path, c.body, header...), http.StatusPreconditionFailed, "precondition")
		}
		wantFault(t, r.sendIf(t, "PATCH", fixture.ServerPath(name)+"/status", deprecated, header...),
			http.StatusPreconditionFailed, "precondition")
	}
	if got := decodeRecord(t, r.get(t, path)); got.Server["title"] != "Second" || got.Official().Status != "active" {
		t.Errorf("a refused write left %+v", got)
	}
	// A missing version comes before the condition; the rules for documents come after it.
	wantFault(t, r.sendIf(t, "DELETE", fixture.ServerPath(name, "9.0.0"), nil, "If-Match", first), http.StatusNotFound)
	wantFault(t, r.sendIf(t, "PUT", path, titled(""), "If-Match", first), http.StatusPreconditionFailed)
	wantFault(t, r.sendIf(t, "PUT", path, titled(""), "If-Match", second), http.StatusUnprocessableEntity, "title")

	gzipped := r.readTag(t, path, "gzip")
	if gzipped == second {
		t.Errorf("both codings have the tag %s", second)
	}
	third := wantTag(r.sendIf(t, "PUT", path, titled("Third"), "If-Match", `"x" , `+gzipped+`,"y"`), "active")
	fourth := wantTag(r.sendIf(t, "PATCH", path+"/status", map[string]string{"status": "deprecated"}, "If-Match",
		third), "deprecated")
	wantTag(r.sendIf(t, "PUT", path, titled("Fifth"), "If-Match", "*"), "deprecated")
	wantFault(t, r.sendIf(t, "DELETE", path, nil, "If-Match", fourth), http.StatusPreconditionFailed)
	latest := r.readTag(t, fixture.ServerPath(name, "latest"), "identity")
	wantTag(r.sendIf(t, "DELETE", path, nil, "If-Match", latest), "deleted")

	// For all versions, the tag is the tag of their list.
	r.publish(t, name, "2.0.0")
	list := fixture.ServerPath(name) + "/versions"
	stale := r.readTag(t, list, "identity")
	r.write(t, "PUT", fixture.ServerPath(name, "2.0.0"), fixture.NewServerDocument(name, "2.0.0"))
	wantFault(t, r.sendIf(t, "PATCH", fixture.ServerPath(name)+"/status", deprecated, "If-Match", stale),
		http.StatusPreconditionFailed)
	r.sendIf(t, "PATCH", fixture.ServerPath(name)+"/status", deprecated, "If-Match", r.readTag(t, list, "gzip")).
		WantStatus(t, http.StatusOK)
}

// checkPreconditionsAtOnce checks that exactly one of many callers that read the same state
// succeeds.
func checkPreconditionsAtOnce(t *testing.T, r *registry) {
	const name, callers, version = "com.example.if.once/server", 8, "1.0.0"
	wantOneWinner := func(what string, write func(i int) apiclient.Response) {
		t.Helper()
		var all sync.WaitGroup
		var won, lost atomic.Int32
		for i := range callers {
			all.Go(func() {
				switch a := write(i); a.Status {
				case http.StatusOK:
					won.Add(1)
				case http.StatusPreconditionFailed:
					lost.Add(1)
				default:
					t.Errorf("%s: %d %s", what, a.Status, a.Body)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != callers-1 {
			t.Errorf("%s: %d of %d callers won, %d lost", what, won.Load(), callers, lost.Load())
		}
	}
	wantOneWinner("publish", func(int) apiclient.Response {
		return r.sendIf(t, "POST", "/publish", fixture.NewServerDocument(name, version), "If-None-Match", "*")
	})
	tag := r.readTag(t, fixture.ServerPath(name, version), "identity")
	wantOneWinner("replace", func(i int) apiclient.Response {
		return r.sendIf(t, "PUT", fixture.ServerPath(name, version),
			fixture.WithProperty(fixture.NewServerDocument(name, version), "title", fmt.Sprint("By ", i)),
			"If-Match", tag)
	})
	tag = r.readTag(t, fixture.ServerPath(name, version), "identity")
	wantOneWinner("status", func(i int) apiclient.Response {
		return r.sendIf(t, "PATCH", fixture.ServerPath(name, version)+"/status", map[string]string{
			"status": "deprecated", "statusMessage": fmt.Sprint("by ", i),
		}, "If-Match", tag)
	})
}
