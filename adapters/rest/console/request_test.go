package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
	source := newSource(t)
	e, s := start(t)
	e.WantAuditEvents(t)
	e.RunCommand(t, "", "mirror", "add", "public", source.URL, "--include", "com.nothing/*")
	ada, bea := e.NewPerson(t, "ada@example.com", "review *"), e.NewPerson(t, "bea@example.com", "review *")
	e.RunCommand(t, "", "review", "rule", "add", "--pattern", "*", "--when", "any")
	b := signedIn(t, s, ada)
	b.Follow("Request a server", http.StatusOK)
	const reason = "We draw <i>maps</i>."
	request := func(status int, server string) {
		t.Helper()
		b.Press("Request it", status, "serverName", server, "reason", reason)
	}
	request(http.StatusForbidden, "com.vendor/maps")
	b.verify(e, ada, http.StatusOK)
	for server, want := range map[string]string{
		"com.vendor/huge": "larger than 1048576 bytes", "com.vendor/slow": "takes longer than 10s",
		"com.vendor/html": "not the JSON of a server", "com.vendor/other": "is the document of another server",
		"com.vendor/inside": "is not public", "com.vendor/none": "404 Not Found", "com.vendor/broken": "escription",
		source.URL + "/": "is not public", "http://[::1]:1/a": "is not public", "ftp://example.com/a": "must begin with https:// or http://",
	} {
		request(http.StatusUnprocessableEntity, server)
		b.WantText(want).WantFields("serverName", server, "reason", reason)
	}
	request(http.StatusOK, "com.vendor/maps")
	b.WantPath("/console/own?done=requested")
	b.WantText("The request waits for review.", "Waiting", "com.vendor/maps 1.0.0")
	wantVersion(t, s, "com.vendor/maps", "latest", http.StatusNotFound)
	b.Follow("com.vendor/maps", http.StatusOK).WantText("somebody else decides about it")
	b.Open("/console/request", http.StatusOK)
	request(http.StatusUnprocessableEntity, "com.vendor/maps")
	b.WantText("waits for review already")

	r := signedIn(t, s, bea)
	r.Follow("Inbox 1 waiting", http.StatusOK)
	r.Follow("com.vendor/maps", http.StatusOK)
	r.WantText("Submitted by ada@example.com", "Requested because "+reason, "Document from "+source.URL)
	r.Press("Approve", http.StatusForbidden, "comment", "Fine.")
	r.verify(e, bea, http.StatusOK)
	r.Press("Approve", http.StatusOK)
	wantVersion(t, s, "com.vendor/maps", "latest", http.StatusOK)
	b.Open("/console/own", http.StatusOK)
	b.WantText("Decided", "com.vendor/maps 1.0.0 Approved by bea@example.com", "Fine.")
}
