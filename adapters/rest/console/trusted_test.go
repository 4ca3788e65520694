package console

import (
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestTrustedPublishing allows jobs to publish, sees which were refused and allows one of them, and
// removes it. People see only what concerns the names that they may publish.
func TestTrustedPublishing(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		const origin = "https://registry.example.com"
		issuer := oidcissuer.Start(t)
		s := e.Start(t, append(fixture.RegistrySettings(), "PUBLIC_URL="+origin, "GITHUB_OIDC_ISSUER="+issuer.URL,
			"OIDC_ISSUERS="+issuer.URL)...)
		prove := func(path string, status int, changed map[string]any) {
			t.Helper()
			claims := issuer.NewClaims(origin, time.Now())
			maps.Copy(claims, changed)
			apiclient.Call(t, "POST", s.API+"/v0/auth/"+path, map[string]string{
				"oidc_token": issuer.Sign(t, claims),
			}).WantStatus(t, status)
		}
		job := map[string]any{
			"sub": "repo:acme/tools:environment:live", "repository": "acme/tools", "repository_id": "1001",
			"repository_owner": "acme", "repository_owner_id": "42", "environment": "live", "actor": "a person",
		}
		stranger := map[string]any{
			"sub": "repo:other/tools:ref:refs/heads/main", "repository": "other/tools", "repository_owner": "other",
		}
		open := func(email string, grants ...string) *browser {
			p := e.NewPerson(t, email, grants...)
			b := newBrowser(t, s)
			b.signIn(p)
			b.open("/console/own/trusted", http.StatusOK)
			b.wantPath("/console/step-up?next=%2Fconsole%2Fown%2Ftrusted")
			b.verify(e, p, http.StatusOK)
			return b
		}
		ada := open("ada@example.com", "publish com.example/*")
		cem := open("cem@example.com", "publish io.github.other/*")
		eve := open("eve@example.com")
		eve.wantText("you can allow nobody")

		ada.follow("GitHub Actions", http.StatusOK)
		ada.press("Allow it", http.StatusUnprocessableEntity, "claims.repository", "acme/*", "pattern", "com.example/*")
		ada.wantText(`Repository has a "*"`)
		ada.press("Allow it", http.StatusForbidden, "claims.repository", "acme/tools", "pattern", "com.other/*")
		ada.open("/console/own/trusted/add/github", http.StatusOK)
		ada.press("Allow it", http.StatusOK, "claims.repository", "acme/tools", "claims.ref", "refs/heads/release",
			"pattern", "com.example/*", "expiresAt", "2199-01-31")
		ada.wantText("It is allowed.", "repository: acme/tools", "ref: refs/heads/release", "com.example/*", "active",
			"never", "2199")
		ada.wantNoText("Refused")

		prove("github-oidc", http.StatusUnauthorized, job)
		prove("github-oidc", http.StatusUnauthorized, job)
		prove("github-oidc", http.StatusUnauthorized, stranger)
		prove("oidc", http.StatusUnauthorized, job)
		prove("github-oidc", http.StatusUnauthorized, map[string]any{"aud": "https://elsewhere.example", "sub": "repo:acme/x:y"})
		ada.open("/console/own/trusted", http.StatusOK)
		ada.wantText("Refused", "repo:acme/tools:environment:live")
		ada.wantNoText("repo:other", "repo:acme/x")
		cem.open("/console/own/trusted", http.StatusOK)
		cem.wantText("repo:other/tools:ref:refs/heads/main", "io.github.other/*")
		cem.wantNoText("repo:acme", "com.example")
		eve.open("/console/own/trusted", http.StatusOK)
		eve.wantNoText("Refused")

		allow := attribute(find(ada.page.root, func(n *html.Node) bool {
			return n.Data == "a" && textOf(n) == "Allow this one"
		}), "href")
		cem.open(allow, http.StatusNotFound)
		ada.open(allow, http.StatusOK)
		ada.wantText("Check that it is yours.", "repository_owner: acme", "repository_id: 1001")
		ada.wantNoText("a person")
		for name, want := range map[string]string{
			"claims.repository": "acme/tools", "claims.repository_id": "1001", "claims.environment": "live",
			"pattern": "com.example/*",
		} {
			if got := ada.field(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		ada.press("Allow it", http.StatusOK)
		prove("github-oidc", http.StatusOK, job)
		ada.open("/console/own/trusted", http.StatusOK)
		ada.wantText("repository_id: 1001", "repository_owner_id: 42")
		ada.wantNoText("Refused")
		ada.wantForeign("/console/own/trusted/add/github", url.Values{"pattern": {"com.example/*"}})
		ada.open("/console/own/trusted", http.StatusOK)
		ada.press("Remove the policy for com.example/*", http.StatusOK)
		ada.press("Remove the policy for com.example/*", http.StatusOK)
		ada.wantText("The policy is removed", "Nobody may publish for you yet.")
		prove("github-oidc", http.StatusUnauthorized, job)
	})
}
