package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// newSource returns a registry that has a server, and others that misbehave.
func newSource(t *testing.T) *httptest.Server {
	t.Helper()
	const document = `{"name":"com.vendor/maps","description":"Maps","version":"1.0.0","title":"<b>Maps</b>"}`
	bodies := map[string]string{
		"com.vendor/maps": `{"server":` + document + `,"_meta":{}}`, "com.vendor/other": document, "com.vendor/html": "<html>",
		"com.vendor/broken": `{"name":"com.vendor/broken","version":"1.0.0"}`,
		"com.vendor/huge":   `{"name":"com.vendor/huge","description":"` + strings.Repeat("a", 2<<20) + `"}`,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v0.1/servers/{name}/versions/latest", func(w http.ResponseWriter, r *http.Request) {
		switch name := r.PathValue("name"); name {
		case "com.vendor/inside":
			http.Redirect(w, r, "/v0.1/servers/com.vendor%2Fmaps/versions/latest", http.StatusFound)
		case "com.vendor/slow":
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "com.vendor/none":
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(bodies[name]))
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// TestRequest requests a server, also from sources that misbehave. A reviewer reads why, and
// decides; documents need no review here.
func TestRequest(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		source := newSource(t)
		e.RunCommand(t, "", "mirror", "add", "public", source.URL, "--include", "com.nothing/*")
		s := e.Start(t, fixture.RegistrySettings()...)
		ada, bea := e.NewPerson(t, "ada@example.com", "review *"), e.NewPerson(t, "bea@example.com", "review *")
		e.RunCommand(t, "", "review", "rule", "add", "--pattern", "*", "--when", "any")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.follow("Request", http.StatusOK)
		const reason = "We draw <i>maps</i>."
		request := func(status int, server string) {
			t.Helper()
			b.press("Request it", status, "serverName", server, "reason", reason)
		}
		request(http.StatusUnprocessableEntity, "maps")
		b.wantText("Server must be a name, such as io.github.acme/tools, or the address of a server.json.")
		b.press("Request it", http.StatusUnprocessableEntity, "serverName", "com.vendor/maps", "reason", strings.Repeat("é", 501))
		b.wantText("The reason must have at most 500 characters.")
		request(http.StatusForbidden, "com.vendor/maps")
		b.verify(e, ada, http.StatusOK)
		for server, want := range map[string]string{
			"com.vendor/huge": "larger than 1048576 bytes", "com.vendor/slow": "takes longer than 10s",
			"com.vendor/html": "not the JSON of a server", "com.vendor/other": "is the document of another server",
			"com.vendor/inside": "is not public", "com.vendor/none": "404 Not Found", "com.vendor/broken": "escription",
			source.URL + "/": "is not public", "http://[::1]:1/a": "is not public", "ftp://example.com/a": "must begin with https:// or http://",
		} {
			request(http.StatusUnprocessableEntity, server)
			b.wantText(want)
			if b.field("serverName") != server || b.field("reason") != reason {
				t.Errorf("the form has %q, %q", b.field("serverName"), b.field("reason"))
			}
		}
		request(http.StatusOK, "com.vendor/maps")
		b.wantPath("/console/own?done=requested")
		b.wantText("The request waits for review.", "Waiting", "com.vendor/maps 1.0.0")
		apiclient.Call(t, "GET", s.API+"/v0.1/servers/com.vendor%2Fmaps/versions/latest", nil).WantStatus(t, http.StatusNotFound)
		b.follow("com.vendor/maps", http.StatusOK)
		b.wantText("somebody else decides about it")
		b.open("/console/request", http.StatusOK)
		request(http.StatusUnprocessableEntity, "com.vendor/maps")
		b.wantText("waits for review already")

		r := newBrowser(t, s)
		r.signIn(bea)
		r.follow("Reviews 1 waiting", http.StatusOK)
		r.follow("com.vendor/maps", http.StatusOK)
		r.wantText("Submitted by ada@example.com", "Requested because "+reason, "Document from "+source.URL)
		r.press("Approve", http.StatusForbidden, "comment", "Fine.")
		r.verify(e, bea, http.StatusOK)
		r.press("Approve", http.StatusOK)
		apiclient.Call(t, "GET", s.API+"/v0.1/servers/com.vendor%2Fmaps/versions/latest", nil).WantStatus(t, http.StatusOK)
		b.open("/console/own", http.StatusOK)
		b.wantText("Decided", "com.vendor/maps 1.0.0 Approved by bea@example.com", "Fine.")
	})
}

// TestRequestIsRecorded requests a server, which is in the audit log.
func TestRequestIsRecorded(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		e.RunCommand(t, "", "mirror", "add", "public", newSource(t).URL, "--include", "com.nothing/*")
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewWriter(t, s, "ada@example.com")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.open("/console/request", http.StatusOK)
		b.press("Request it", http.StatusForbidden, "serverName", "com.vendor/maps", "reason", "We draw maps.")
		b.verify(e, ada, http.StatusOK)
		b.press("Request it", http.StatusOK)
	})
}
