package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// pages are the pages by who may open them.
var pages = map[string][]string{
	"everybody": {
		"", "connect", "sign-in", "forgot-password", "servers/com.example/weather", "servers/com.example/weather/versions/1.0.0",
	},
	"people": {
		"account", "account/log", "account/password", "account/authenticator", "account/passkeys", "account/tokens", "account/access",
		"home", "inbox", "publish", "rights", "rights?new=1", "own", "own/trusted/add/github", "own/com.example/weather/owner", "request", "reviews",
	},
	"reviewers": {"quarantine"},
	"verified":  {"own/trusted"},
	"operators": operatorPages,
}

// operatorPages are all pages of operators.
var operatorPages = []string{
	"operator", "operator/people", "operator/rights", "operator/rights.csv", "operator/requests", "operator/policies", "operator/views", "operator/collections", "operator/mirrors", "operator/webhooks",
	"operator/review-rules", "operator/service-accounts", "operator/providers", "operator/limits", "operator/risk", "operator/log",
	"operator/access", "operator/access/explain", "operator/state",
}

// TestPages opens each page as everybody who may, and as everybody who may not.
func TestPages(t *testing.T) {
	e, s := start(t)
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
	publishVersion(t, s, ada, "com.example/weather", "1.0.0")
	risky, unverified := newBrowser(t, s), newBrowser(t, s)
	signInAtRisk(t, e, s, risky)
	unverified.signIn(e.NewPerson(t, "uma@example.com", "operate *", "review *"))
	for viewer, c := range map[string]struct {
		b   *browser
		may []string
	}{
		"nobody":                 {newBrowser(t, s), []string{"everybody"}},
		"person":                 {newVerified(t, e, s, "eve@example.com", "publish *", "edit *"), []string{"everybody", "people", "verified"}},
		"reviewer":               {newVerified(t, e, s, "rey@example.com", "review *"), []string{"everybody", "people", "verified", "reviewers"}},
		"operator":               {newVerified(t, e, s, "olga@example.com", "operate *"), []string{"everybody", "people", "verified", "operators"}},
		"operator before a code": {unverified, []string{"everybody", "people", "reviewers"}},
		"person at risk":         {risky, []string{"everybody"}},
	} {
		for kind, paths := range pages {
			for _, path := range paths {
				c.b.openAs(viewer, "/console/"+path, slices.Contains(c.may, kind))
			}
		}
	}
	risky.Open("/console/", http.StatusOK).WantNoText("My servers", "Operate")
	risky.Press("Sign out", http.StatusOK).WantText("Sign in")
}

// openAs opens a page that a viewer may open or not.
func (b *browser) openAs(viewer, path string, may bool) {
	b.T.Helper()
	want, address := http.StatusOK, path
	switch {
	case may:
	case viewer == "nobody":
		address = "/console/sign-in?next=" + url.QueryEscape(path)
	case viewer == "operator before a code":
		address = "/console/step-up?next=" + url.QueryEscape(path)
	default:
		want = http.StatusForbidden
	}
	if got := b.Try(b.Request(http.MethodGet, path, nil, "")); got != want || b.Page.URL.RequestURI() != address {
		b.T.Errorf("%s gets %d of %s for %s, want %d of %s", viewer, got, b.Page.URL, path, want, address)
	}
	if viewer == "person at risk" && !may {
		b.WantNoText("Send a code")
	}
}

// signInAtRisk signs a person in whose session is at HIGH_RISK, which the page says.
func signInAtRisk(t *testing.T, e *fixture.Environment, s *fixture.Service, b *browser) {
	t.Helper()
	eva := e.NewPerson(t, "eva@example.com", "publish *", "operate *", "review *")
	eva.Login(t, s)
	eva.Login(t, s)
	b.Open("/console/sign-in", http.StatusOK)
	b.Press("Sign in", http.StatusUnprocessableEntity, "email", eva.Email, "password", "wrong")
	b.Press("Sign in", http.StatusOK, "email", eva.Email, "password", fixture.Password)
	b.WantText("This sign-in looks risky, so it may do nothing. Sign out, and sign in from a device that you have used before.")
}
