package console_test

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestTrustedPublishing allows jobs to publish, sees which were refused and allows one of them, and
// removes it. People see only what concerns the names that they may publish.
func TestTrustedPublishing(t *testing.T) {
	const origin = "https://registry.example.com"
	issuer := oidcissuer.Start(t)
	e, s := start(t, "PUBLIC_URL="+origin, "GITHUB_OIDC_ISSUER="+issuer.URL, "OIDC_ISSUERS="+issuer.URL)
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
		b := signedIn(t, s, p)
		b.Open("/console/own/trusted", http.StatusOK).WantPath("/console/step-up?next=%2Fconsole%2Fown%2Ftrusted")
		b.verify(e, p, http.StatusOK)
		return b
	}
	ada := open("ada@example.com", "publish com.example/*")
	cem := open("cem@example.com", "publish io.github.other/*")
	eve := open("eve@example.com")
	eve.WantText("you can allow nobody")

	ada.Follow("GitHub Actions", http.StatusOK)
	ada.Press("Allow it", http.StatusForbidden, "claims.repository", "acme/tools", "pattern", "com.other/*")
	ada.Open("/console/own/trusted/add/github", http.StatusOK)
	ada.Press("Allow it", http.StatusOK, "claims.repository", "acme/tools", "claims.ref", "refs/heads/release",
		"pattern", "com.example/*", "expiresAt", "2199-01-31")
	ada.WantText("It is allowed.", "repository: acme/tools", "ref: refs/heads/release", "com.example/*", "active",
		"never", "2199")
	ada.WantNoText("Refused")

	prove("github-oidc", http.StatusUnauthorized, job)
	prove("github-oidc", http.StatusUnauthorized, job)
	prove("github-oidc", http.StatusUnauthorized, stranger)
	prove("oidc", http.StatusUnauthorized, job)
	prove("github-oidc", http.StatusUnauthorized, map[string]any{"aud": "https://elsewhere.example", "sub": "repo:acme/x:y"})
	ada.Open("/console/own/trusted", http.StatusOK).WantText("Refused", "repo:acme/tools:environment:live")
	ada.WantNoText("repo:other", "repo:acme/x")
	cem.Open("/console/own/trusted", http.StatusOK)
	cem.WantText("repo:other/tools:ref:refs/heads/main", "io.github.other/*").WantNoText("repo:acme", "com.example")
	eve.Open("/console/own/trusted", http.StatusOK).WantNoText("Refused")

	allow := webtest.Attribute(webtest.Find(ada.Page.Root, func(n *html.Node) bool {
		return n.Data == "a" && webtest.TextOf(n) == "Allow this one"
	}), "href")
	cem.Open(allow, http.StatusNotFound)
	ada.Open(allow, http.StatusOK).WantText("Check that it is yours.", "repository_owner: acme", "repository_id: 1001")
	ada.WantNoText("a person")
	for name, want := range map[string]string{
		"claims.repository": "acme/tools", "claims.repository_id": "1001", "claims.environment": "live",
		"pattern": "com.example/*",
	} {
		if got := ada.Field(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	ada.Press("Allow it", http.StatusOK)
	prove("github-oidc", http.StatusOK, job)
	ada.Open("/console/own/trusted", http.StatusOK).WantText("repository_id: 1001", "repository_owner_id: 42")
	ada.WantNoText("Refused")
	ada.Press("Remove the policy for com.example/*", http.StatusOK)
	ada.Press("Remove the policy for com.example/*", http.StatusOK)
	ada.WantText("The policy is removed", "Nobody may publish for you yet.")
	prove("github-oidc", http.StatusUnauthorized, job)
}
