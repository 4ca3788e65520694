package companies

import (
	"net/url"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCommandLogin signs the command in at a provider. Its session ends with the person's sign-in
// there (contract A-79).
func TestCommandLogin(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.provider.SignIn("u1", "ada@acme.example", "sid", "one")
		ada, b := fixture.NewPublisher(t, &fixture.Person{Email: "ada@acme.example"}), s.newBrowser(t)
		login := ada.OpenLogin(t, "--url", s.API)
		b.open("/console/sign-in/company/acme?return="+url.QueryEscape(login.Path())).
			want(200, "Sign in the tollgate command?", "ada@acme.example")
		page, err := url.Parse(login.Path())
		must.Succeed(t, err)
		b.post(page.Path, "code", page.Query().Get("code"), "as", "less").want(200, "Go back to the terminal.")
		login.End(t, 0)
		ada.Run(t, 0, "", "whoami")

		claims := s.provider.NewClaims(s.provider.ClientID, time.Now())
		claims["sid"], claims["events"] = "one", object{"http://schemas.openid.net/event/backchannel-logout": object{}}
		delete(claims, "sub")
		s.logOut(t, s.provider.Sign(t, claims)).WantStatus(t, 200)
		ada.Run(t, 3, "", "whoami")
		if b.isSignedIn() {
			t.Error("the browser is still signed in")
		}
	})
}
