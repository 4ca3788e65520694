package consolebrowser

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

const publicURL = "https://registry.example.com"

// TestWeek plays a week of five people: an employee who needs two servers, of which one is not listed
// yet, a publisher, a CI job that a policy lets publish, a reviewer and an operator, with and without
// JavaScript.
func TestWeek(t *testing.T) {
	t.Parallel()
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprintf("JavaScript=%t", scripts), func(t *testing.T) {
			t.Parallel()
			fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) { playWeek(t, e, scripts) })
		})
	}
}

// week is the service of a week, and the people who use it.
type week struct {
	t                   *testing.T
	s                   *fixture.Service
	issuer              *oidcissuer.Issuer
	notices             string // the file of what people are told
	eve, ada, bea, olga *person
}

// newRegistry returns another registry, which has one server.
func newRegistry(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/v0.1/servers/{name}/versions/latest", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") != "com.vendor/maps" {
			http.NotFound(w, r)
			return
		}
		doc := fixture.NewServerDocument("com.vendor/maps", "2.0.0")
		doc["description"] = "Draws maps of every place"
		if err := json.NewEncoder(w).Encode(map[string]any{"server": doc}); err != nil {
			t.Error(err)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func playWeek(t *testing.T, e *fixture.Environment, scripts bool) {
	t.Helper()
	skipInShort(t, e, scripts)
	w := &week{t: t, issuer: oidcissuer.Start(t), notices: filepath.Join(e.Dir, "notices.jsonl")}
	e.RunCommand(t, "", "mirror", "add", "public", newRegistry(t).URL, "--include", "com.nothing/*")
	w.s = e.Start(t, append(append(fixture.RegistrySettings(), fixture.RelaxedRiskSettings...), "REGISTRY_REVIEW=on",
		"GITHUB_OIDC_ISSUER="+w.issuer.URL, "PUBLIC_URL="+publicURL, "NOTICE_LOG_FILE="+w.notices)...)
	open := func(email string, grants ...string) *person {
		e.NewPerson(t, email, grants...)
		p := newPerson(t, e, w.s)
		if !scripts {
			p.tab.DisableScripts(t)
		}
		p.signIn(email)
		p.press("Verify with a code")
		p.verify(email)
		return p
	}
	w.eve = open("eve@example.com")
	w.ada = open("ada@example.com", "publish com.example/*", "edit com.example/*")
	w.bea = open("bea@example.com", "review *")
	w.olga = open("olga@example.com", "operate *")
	w.monday()
	w.tuesday()
	w.wednesday()
	w.thursday()
	w.friday()
	for _, p := range []*person{w.eve, w.ada, w.bea, w.olga} {
		p.wantNoComplaints()
	}
}

// monday: the employee finds no server for maps and requests one. The publisher allows the release branch of a repository to publish, sees that its main branch
// was refused, and allows that one too.
func (w *week) monday() {
	w.eve.open("/console/?q=maps")
	w.eve.click("request one")
	w.eve.set("serverName", "com.vendor/map")
	w.eve.set("reason", "We draw maps.")
	w.eve.click("Request it")
	w.eve.wantText("404 Not Found")
	w.eve.set("serverName", "com.vendor/maps")
	w.eve.click("Request it")
	w.eve.wantText("The request waits for review.", "Waiting", "com.vendor/maps")
	w.ada.open("/console/own")
	w.ada.click("let a CI job publish")
	w.ada.click("GitHub Actions")
	w.ada.set("claims.repository", "acme/tools")
	w.ada.set("claims.ref", "refs/heads/release")
	w.ada.set("pattern", "com.example/*")
	w.ada.click("Allow it")
	w.ada.wantText("It is allowed.", "ref: refs/heads/release")
	w.proveJob().WantStatus(w.t, http.StatusUnauthorized)
	w.ada.open("/console/own/trusted")
	w.ada.wantText("Refused", "repo:acme/tools:ref:refs/heads/main")
	w.ada.click("Allow this one: repo:acme/tools:ref:refs/heads/main")
	w.ada.wantText("Check that it is yours.", "repository_owner: acme")
	w.ada.click("Allow it")
	w.ada.wantText("It is allowed.", "repository_id: 1001")
	w.publishFromJob(fixture.NewServerDocument("com.example/weather", "1.0.0")).WantStatus(w.t, http.StatusOK)
	w.ada.open("/console/own/trusted")
	w.ada.wantText("repository_owner_id: 42")
}

// proveJob sends the proof of a job of GitHub Actions.
func (w *week) proveJob() apiclient.Response {
	w.t.Helper()
	claims := w.issuer.NewClaims(publicURL, time.Now())
	maps.Copy(claims, map[string]any{
		"sub": "repo:acme/tools:ref:refs/heads/main", "ref": "refs/heads/main", "repository": "acme/tools",
		"repository_id": "1001", "repository_owner": "acme", "repository_owner_id": "42",
	})
	return apiclient.Call(w.t, "POST", w.s.API+"/v0/auth/github-oidc", map[string]string{
		"oidc_token": w.issuer.Sign(w.t, claims),
	})
}

// publishFromJob publishes a version as a job of GitHub Actions does.
func (w *week) publishFromJob(doc map[string]any) apiclient.Response {
	w.t.Helper()
	var proof struct {
		Token string `json:"registry_token"`
	}
	w.proveJob().WantStatus(w.t, http.StatusOK).Decode(w.t, &proof)
	return apiclient.Call(w.t, "POST", w.s.API+"/v0/publish", doc, "Authorization", "Bearer "+proof.Token)
}

// tuesday: the reviewer approves the request, of which the employee is told, and rejects the document; the publisher mends the document and submits it again.
func (w *week) tuesday() {
	const why = "Say who answers for it."
	w.bea.open("/console/reviews")
	w.bea.click("com.vendor/maps")
	w.bea.wantText("Submitted by eve@example.com", "We draw maps.")
	w.bea.set("comment", "For everybody.")
	w.bea.click("Approve")
	w.bea.wantText("Approved. The document is listed now.")
	w.wantNotice("eve@example.com", "approved", "com.vendor/maps", "For everybody.", publicURL+"/console/reviews/")
	w.bea.open("/console/reviews")
	w.bea.click("com.example/weather")
	w.bea.wantText("What it brings", "com.example.weather")
	w.bea.set("comment", why)
	w.bea.click("Reject")
	w.bea.wantText("Rejected. The submitter is told why.")
	w.wantNotice("ada@example.com", "rejected", "com.example/weather", why)
	w.ada.open("/console/own")
	w.ada.wantText("Rejected", why)
	w.ada.click("Publish com.example/weather 1.0.0 again")
	text := chromium.Evaluate[string](w.t, w.ada.tab, `document.querySelector("textarea").value`)
	w.ada.set("document", strings.Replace(text, "Answers what the weather will be", "Weather, by the tools team", 1))
	w.ada.click("Check only")
	w.ada.wantText("Nothing that was checked prevents the publication.")
	w.ada.click("Publish")
	w.ada.wantText("The document waits for review.")
}

// wednesday: the reviewer approves, and the employee finds the server and connects an editor.
func (w *week) wednesday() {
	w.bea.open("/console/reviews")
	w.bea.click("com.example/weather")
	w.bea.click("Approve")
	w.bea.wantText("Approved. The document is listed now.")
	w.eve.open("/console/")
	w.eve.set("q", "tools team")
	w.eve.click("Search")
	w.eve.click("com.example/weather")
	w.eve.wantText("Install", "https://com.example.weather/mcp")
	w.eve.open("/console/connect")
	w.eve.set("client", "cursor")
	w.eve.click("Show")
	w.eve.wantText("The address of this registry:", publicURL, ".cursor/mcp.json")
	w.eve.set("client", "claude")
	w.eve.click("Show")
	w.eve.wantText("For administrators", publicURL+"/registries/all/allowlist/claude.json")
	w.eve.click("all servers")
	w.eve.wantText("com.vendor/maps", "com.example/weather")
}

// wantNotice waits until a person is told of something in one notice that has all the texts.
func (w *week) wantNotice(email string, texts ...string) {
	w.t.Helper()
	await.Until(w.t, "the notice of "+email, func() bool {
		content, err := os.ReadFile(w.notices)
		if err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			lacks := func(text string) bool { return !strings.Contains(line, text) }
			if !slices.ContainsFunc(append(texts, email), lacks) {
				return true
			}
		}
		return false
	})
}

// thursday: the publisher deprecates the version, and the reviewer takes it away and gives it back.
func (w *week) thursday() {
	const message = "Use com.example/climate."
	w.ada.open("/console/own/com.example/weather?version=1.0.0")
	w.ada.set("status", "deprecated")
	w.ada.set("message", message)
	w.ada.click("Change the status")
	w.ada.wantText("The status is changed.")
	w.eve.open("/console/servers/com.example/weather")
	w.eve.wantText("Deprecated", message)
	w.bea.open("/console/servers/com.example/weather")
	w.bea.click("Put in quarantine")
	w.bea.set("reason", "It sends data elsewhere.")
	w.bea.click("Put in quarantine")
	w.bea.wantText("It is in quarantine, and listed nowhere.")
	w.eve.open("/console/?q=weather")
	w.eve.wantText("No server")
	w.bea.click("Release com.example/weather 1.0.0")
	w.bea.wantText("It is released, and listed as before.")
	w.eve.open("/console/?q=weather")
	w.eve.wantText("com.example/weather")
}

// friday: the operator looks the week up in the audit log.
func (w *week) friday() {
	w.olga.open("/console/operator/log?server=com.example/weather")
	w.olga.wantText("rejected com.example/weather 1.0.0", "approved com.example/weather 1.0.0",
		"deprecated com.example/weather 1.0.0", "It sends data elsewhere.")
	w.olga.open("/console/operator/log?server=com.vendor/maps")
	w.olga.wantText("eve@example.com", "approved com.vendor/maps 2.0.0")
}
