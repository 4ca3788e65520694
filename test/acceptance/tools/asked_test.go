package tools

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestAsked checks questions by hand: who may ask, what comes of it, also for a version that waits for
// review, and that a version that is deleted gets no list.
func TestAsked(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s, r := openSite(t, e, byHand...), newToolServer(t, "a")
		s.publishAt(t, server, "1.0.0", r.url)
		ask := func(version string, body any, status int, header ...string) string {
			t.Helper()
			return string(s.call(t, "POST", askPath(version), body, header...).WantStatus(t, status).Body)
		}
		thief := e.NewPerson(t, "thief@example.com", "review com.example/*")
		thief.Login(t, s.Service)
		narrow := func(who *fixture.Person, scope string) []string {
			var made struct{ Token string }
			s.call(t, "POST", "/admin/v1/me/tokens", map[string]any{"name": scope, "scopes": []string{scope}}, who.Bearer()...).
				WantStatus(t, http.StatusCreated).Decode(t, &made)
			return []string{"Authorization", "Bearer " + made.Token}
		}
		ask("1.0.0", nil, http.StatusUnauthorized)
		for what, header := range map[string][]string{
			"a publisher": s.ada.Bearer(), "a stolen password": thief.Bearer(), "a token to read": narrow(s.rita, "registry:read"),
			"a token to publish": narrow(s.rita, "registry:publish"), "a token to review, of no one who may": narrow(s.ada, "registry:review"),
		} {
			if a := s.call(t, "POST", askPath("1.0.0"), nil, header...); a.Status != http.StatusForbidden {
				t.Errorf("%s: %d %s", what, a.Status, a.Body)
			}
		}
		if r.count() != 0 {
			t.Error("a caller who may not ask has made the service ask")
		}
		rita := s.rita.Bearer()
		ask("9.0.0", nil, http.StatusNotFound, rita...)
		ask("latest", nil, http.StatusNotFound, rita...)
		ask("1.0.0", map[string]any{"remote": "https://evil.example/mcp"}, http.StatusBadRequest, rita...)
		ask("1.0.0", map[string]any{"remote": 7}, http.StatusBadRequest, rita...)
		if a := s.call(t, "POST", askPath("1.0.0"), `{}`, append(rita, "Content-Type", "text/plain")...); a.Status != http.StatusUnsupportedMediaType {
			t.Errorf("a text gets %d", a.Status)
		}
		if body := ask("1.0.0", nil, http.StatusOK, rita...); !strings.Contains(body, `"source":"asked"`) || !strings.Contains(body, `"by":"tools"`) {
			t.Errorf("the answer is %s", body)
		}
		s.awaits(t, "1.0.0", "approved a")
		r.shows("b")
		ask("1.0.0", map[string]any{"remote": r.url}, http.StatusOK, narrow(s.rita, "registry:review")...)
		s.awaits(t, "1.0.0", "approved a, changed b")
		s.call(t, "DELETE", "/v0.1"+fixture.ServerPath(server, "1.0.0"), nil, s.ada.Bearer()...).WantStatus(t, http.StatusOK)
		ask("1.0.0", nil, http.StatusNotFound, rita...)
		if acts := s.actsOf(t, "tools_ask"); len(acts) != 9 || acts[0]["reason"] == nil {
			t.Errorf("the audit log has %d refusals: %v", len(acts), acts)
		}
	})
}

// TestAskedBeforeApproval checks that a version that waits for review can be asked.
func TestAskedBeforeApproval(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, r := openSite(t, e, append(byHand, "REGISTRY_REVIEW=on")...), newToolServer(t, "a")
		s.publishAt(t, server, "1.0.0", r.url)
		a := s.call(t, "POST", askPath("1.0.0"), nil, s.rita.Bearer()...).WantStatus(t, http.StatusOK)
		if !strings.Contains(string(a.Body), `"state":"pending"`) {
			t.Errorf("the answer is %s", a.Body)
		}
		s.call(t, "GET", toolsPath("1.0.0"), nil).WantStatus(t, http.StatusNotFound)
	})
}

// answers returns a handler that answers initialize, and tools/list with a result.
func answers(result string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id := "1"
		if _, rest, ok := strings.Cut(string(body), `"id":`); ok {
			id = rest[:strings.IndexAny(rest, ",}")]
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(string(body), `"initialize"`):
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},`+
				`"serverInfo":{"name":"w","version":"1"}}}`, id)
		case strings.Contains(string(body), "tools/list"):
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
		case strings.Contains(string(body), `"id":`):
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}
}

// TestBadServers checks that each bad server is an error that names the server and what is wrong, and never
// a list, and that the memory that it costs is bounded.
func TestBadServers(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, r, elsewhere := openSite(t, e, byHand...), newToolServer(t, "a"), newToolServer(t, "evil")
		s.publishAt(t, server, "1.0.0", r.url)
		long := strings.Repeat("x", 70<<10)
		for what, c := range map[string]struct {
			handler http.HandlerFunc
			says    string
		}{
			"endless pages":        {answers(`{"tools":[],"nextCursor":"again"}`), "more than 20 pages"},
			"a huge schema":        {answers(`{"tools":[{"name":"a","inputSchema":{"type":"object","title":"` + long + `"}}]}`), "65536"},
			"a huge answer":        {answers(`{"tools":[{"name":"a","description":"` + strings.Repeat(long, 70) + `"}]}`), "more than 4 MiB"},
			"a control character":  {answers(`{"tools":[{"name":"a\u0000b"}]}`), "control characters"},
			"two tools of a name":  {answers(`{"tools":[{"name":"a"},{"name":"a"}]}`), `two tools have the name "a"`},
			"another content type": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "connect"},
			"a redirect":           {http.RedirectHandler(elsewhere.url, http.StatusTemporaryRedirect).ServeHTTP, "leads to another host"},
			"an error of its own":  {answers(`{"tools":[],"x":` + "\u202e"), r.url},
		} {
			r.breaks(c.handler)
			a := s.call(t, "POST", askPath("1.0.0"), nil, s.rita.Bearer()...)
			if a.Status != http.StatusBadGateway || !strings.Contains(string(a.Body), strings.ReplaceAll(c.says, `"`, `\"`)) ||
				!strings.Contains(string(a.Body), r.url) || len(a.Body) > 1000 {
				t.Errorf("%s: %d %.600s", what, a.Status, a.Body)
			}
			if got := s.shown(t, "1.0.0"); got != "error could not be asked" {
				t.Errorf("%s: everybody reads %s", what, got)
			}
		}
		if elsewhere.count() > 0 {
			t.Error("the service followed a redirect to another host")
		}
	})
}

// TestInnerNetworks checks that no remote makes the service connect to an address that is not public: by
// number, by name, and by a redirect.
func TestInnerNetworks(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, r := openSite(t, e, watching[:1]...), newToolServer(t, "a")
		for i, url := range []string{r.url, strings.Replace(r.url, "127.0.0.1", "localhost", 1), "https://169.254.169.254/latest/meta-data"} {
			version := fmt.Sprintf("%d.0.0", i+1)
			s.publishAt(t, server, version, url)
			await.Until(t, "an error", func() bool { return s.shown(t, version) == "error could not be asked" })
			if got := s.shown(t, version, s.rita.Bearer()...); got != "error "+url+": its address is neither public nor in TOOLS_NETWORKS" {
				t.Errorf("%s: a reviewer reads %s", url, got)
			}
		}
		if r.count() > 0 {
			t.Error("the service has connected")
		}
	})
}

// TestFlood checks that a remote is asked once at a time, and few by hand at once, and that a remote that
// does not answer is a 504.
func TestFlood(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, release := openSite(t, e, byHand...), make(chan struct{})
		hung := func(_ http.ResponseWriter, q *http.Request) {
			select {
			case <-q.Context().Done():
			case <-release:
			}
		}
		statuses := make(chan int, 4)
		for i := range 4 {
			name, r := fmt.Sprintf("com.example/slow%d", i), newToolServer(t, "a")
			r.breaks(hung)
			s.publishAt(t, name, "1.0.0", r.url)
			path := "/v0.1/x/dev.tollgate" + fixture.ServerPath(name, "1.0.0") + "/tools/ask"
			go func() { statuses <- s.call(t, "POST", path, nil, s.rita.Bearer()...).Status }()
			await.Until(t, "a question", func() bool { return r.count() > 0 })
			if i == 0 {
				a := s.call(t, "POST", path, nil, s.rita.Bearer()...).WantStatus(t, http.StatusConflict)
				if !strings.Contains(string(a.Body), "is being asked") || r.count() > 1 {
					t.Errorf("a second question gets %s", a.Body)
				}
			}
		}
		s.publishAt(t, server, "1.0.0", newToolServer(t, "a").url)
		a := s.call(t, "POST", askPath("1.0.0"), nil, s.rita.Bearer()...).WantStatus(t, http.StatusTooManyRequests)
		if a.Header.Get("Retry-After") == "" {
			t.Errorf("the fifth question gets %v", a.Header)
		}
		if status := <-statuses; status != http.StatusGatewayTimeout {
			t.Errorf("a remote that does not answer is %d", status)
		}
		close(release)
		for range 3 {
			<-statuses
		}
		s.call(t, "POST", askPath("1.0.0"), nil, s.rita.Bearer()...).WantStatus(t, http.StatusOK)
	})
}

// TestHeaders checks that the headers of a tool source go to its remote of its server only: neither to
// another server with the same URL, nor to another URL of a rogue version, nor after a redirect, and that no
// one reads them again, also if the remote repeats them.
func TestHeaders(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s, r, rogue := openSite(t, e, byHand...), newToolServer(t, "a"), newToolServer(t, "evil")
		olga := e.NewWriter(t, s.Service, "olga@example.com", "operate")
		put := func(name string, body map[string]any, status int) string {
			t.Helper()
			return string(s.call(t, "PUT", "/admin/v1/tool-sources/"+name, body, olga.Bearer()...).WantStatus(t, status).Body)
		}
		source := map[string]any{"server": server, "remote": r.url, "headers": map[string]any{"X-Api-Key": "sesame"}}
		if body := put("weather", source, http.StatusCreated); strings.Contains(body, "sesame") || !strings.Contains(body, `"headerNames":["X-Api-Key"]`) {
			t.Errorf("the answer is %s", body)
		}
		put("again", source, http.StatusConflict)
		s.publishAt(t, server, "1.0.0", r.url)
		ask := func(name, version string, status int) string {
			t.Helper()
			path := "/v0.1/x/dev.tollgate" + fixture.ServerPath(name, version) + "/tools/ask"
			return string(s.call(t, "POST", path, nil, s.rita.Bearer()...).WantStatus(t, status).Body)
		}
		ask(server, "1.0.0", http.StatusOK)
		if got := strings.ReplaceAll(r.seen(), "sesame", ""); strings.TrimSpace(got) != "" {
			t.Errorf("requests have other headers: %q", got)
		}
		s.publishAt(t, "com.example/thief", "1.0.0", r.url)
		ask("com.example/thief", "1.0.0", http.StatusOK)
		s.publishAt(t, server, "2.0.0", strings.Replace(r.url, "/mcp", "/other", 1))
		ask(server, "2.0.0", http.StatusOK)
		s.publishAt(t, server, "3.0.0", rogue.url)
		ask(server, "3.0.0", http.StatusOK)
		if got := r.seen() + rogue.seen(); strings.Contains(got, "sesame") {
			t.Errorf("others get the headers: %q", got)
		}
		r.breaks(http.RedirectHandler(rogue.url, http.StatusTemporaryRedirect).ServeHTTP)
		ask(server, "1.0.0", http.StatusBadGateway)
		r.breaks(func(w http.ResponseWriter, q *http.Request) {
			http.Error(w, "you sent "+q.Header.Get("X-Api-Key"), http.StatusBadRequest)
		})
		if body := ask(server, "1.0.0", http.StatusBadGateway); strings.Contains(body, "sesame") || rogue.seen() != "" {
			t.Errorf("the error is %s", body)
		}
		r.breaks(nil)
		_ = r.seen()
		delete(source, "headers")
		put("weather", source, http.StatusOK) // keeps them
		ask(server, "1.0.0", http.StatusOK)
		if !strings.Contains(r.seen(), "sesame") {
			t.Error("the headers are not kept")
		}
		source["remote"] = rogue.url
		if body := put("weather", source, http.StatusBadRequest); !strings.Contains(body, "headers") {
			t.Errorf("another remote gets %s", body)
		}
		for _, path := range []string{"/admin/v1/tool-sources", "/admin/v1/state", "/admin/v1/audit-events"} {
			if a := s.call(t, "GET", path, nil, olga.Bearer()...); strings.Contains(string(a.Body), "sesame") {
				t.Errorf("%s shows the headers: %s", path, a.Body)
			}
		}
	})
}

// TestConditionsOfSources checks that a tool source changes only if it is as its operator has read it, and that one
// from a file changes with the file alone; and so does a collection.
func TestConditionsOfSources(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e, byHand...)
		olga := e.NewWriter(t, s.Service, "olga@example.com", "operate *")
		call := func(method, path string, body any, status int, header ...string) {
			t.Helper()
			s.call(t, method, "/admin/v1"+path, body, append(olga.Bearer(), header...)...).WantStatus(t, status)
		}
		source := func(name string) map[string]any {
			return map[string]any{
				"name": name, "server": server, "remote": "https://" + name + ".example.com/mcp", "headers": map[string]any{"X-Api-Key": "secret"},
			}
		}
		call("POST", "/apply?owner=platform", map[string]any{
			"apiVersion": "tollgate.dev/v1", "kind": "State", "toolSources": []any{source("filed")},
		}, http.StatusOK)
		body := source("agent")
		delete(body, "name")
		call("PUT", "/tool-sources/agent", body, http.StatusCreated, "If-None-Match", "*")
		call("PUT", "/tool-sources/agent", body, http.StatusPreconditionFailed, "If-Match", `"0"`)
		call("DELETE", "/tool-sources/agent", nil, http.StatusPreconditionFailed, "If-Match", `"0"`)
		call("PUT", "/tool-sources/filed", body, http.StatusConflict)
		call("DELETE", "/tool-sources/filed", nil, http.StatusConflict)
		call("DELETE", "/tool-sources/agent", nil, http.StatusNoContent)
		call("DELETE", "/tool-sources/agent", nil, http.StatusNotFound)

		collection := map[string]any{"sentence": "For a start.", "servers": []string{server}}
		call("POST", "/apply?owner=platform", map[string]any{
			"apiVersion": "tollgate.dev/v1", "kind": "State",
			"collections": []any{map[string]any{"name": "filed", "sentence": "For a start.", "servers": []string{server}}},
		}, http.StatusOK)
		call("PUT", "/collections/start", collection, http.StatusCreated, "If-None-Match", "*")
		call("PUT", "/collections/start", collection, http.StatusOK)
		call("PUT", "/collections/start", collection, http.StatusPreconditionFailed, "If-Match", `"0"`)
		call("DELETE", "/collections/start", nil, http.StatusPreconditionFailed, "If-Match", `"0"`)
		call("PUT", "/collections/filed", collection, http.StatusConflict)
		call("DELETE", "/collections/filed", nil, http.StatusConflict)
		call("DELETE", "/collections/start", nil, http.StatusNoContent)
	})
}
