package companies

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestInstances checks what two instances do together: a sign-in begins at one and is complete at the
// other, one of them checks a session, and what ends a session or a token at one ends it at the other.
func TestInstances(t *testing.T) {
	const public = "http://localhost:1" // where a load balancer would be
	e := fixture.NewProduction(t)
	s := startSite(t, e, "PUBLIC_URL="+public)
	s.askForRefresh(t)
	other := e.Start(t, append(append(fixture.RegistrySettings(), fixture.RiskPolicy("relaxed")), "PUBLIC_URL="+public)...)
	bert := e.NewWriter(t, s.Service, "bert@acme.example")
	behave := oidcissuer.Behaviour{Claims: object{"sub": "u1", "email": "bert@acme.example", "sid": "one"}, Refresh: "the refresh token"}
	signIn := func() *browser {
		s.provider.Behave(behave)
		b := s.newBrowser(t)
		back := b.location(b.begin("/console/sign-in/company/acme?return=/console/account"), 302)
		if !strings.HasPrefix(back, public+"/console/") {
			t.Fatalf("the provider leads back to %s", back)
		}
		b.location(strings.Replace(back, public, other.API, 1), 303)
		b.wantSignedIn(true, s.API, other.API)
		b.location(strings.Replace(back, public, s.API, 1), 400) // the state was used at the other one
		return b
	}
	browsers := []*browser{signIn()}
	for range 7 {
		browsers = append(browsers, signIn())
	}
	for range 3 {
		before := s.provider.Calls(oidcissuer.TokenPath)
		s.checkAgain(t)
		if n := s.provider.Calls(oidcissuer.TokenPath) - before; n != len(browsers) {
			t.Errorf("two instances check %d sessions by %d requests", len(browsers), n)
		}
	}

	behave.Claims = object{"sub": "u1", "sid": "two"}
	last := signIn()
	claims := s.provider.NewClaims(s.provider.ClientID, time.Now())
	delete(claims, "sub")
	claims["sid"], claims["events"] = "one", object{"http://schemas.openid.net/event/backchannel-logout": object{}}
	s.logOut(t, s.provider.Sign(t, claims)).WantStatus(t, 200)
	withinSeconds(t, "the logout at one instance ends the sessions at the other", func() bool {
		return !browsers[0].signedInAt(other.API) && !browsers[7].signedInAt(other.API)
	})
	last.wantSignedIn(true, s.API, other.API)

	var made struct{ Token string }
	bert.PostJSON(t, s.Service, "/admin/v1/me/tokens", object{"name": "ci", "scopes": []string{"registry:read"}}).
		WantStatus(t, 201).Decode(t, &made)
	me := func(api string) int {
		return apiclient.Call(t, "GET", api+"/admin/v1/me", nil, "Authorization", "Bearer "+made.Token).Status
	}
	for _, api := range []string{s.API, other.API} {
		if got := me(api); got != 200 {
			t.Fatalf("the token has status %d", got)
		}
	}
	behave.Left = true
	s.provider.Behave(behave)
	s.makeDue(t)
	await.Until(t, "the session of a leaver ends", func() bool { return !last.signedInAt(s.API) })
	withinSeconds(t, "the session and the token of a leaver end at both instances", func() bool {
		return !last.signedInAt(other.API) && me(s.API) == 401 && me(other.API) == 401
	})
	apiclient.Call(t, "GET", s.API+"/auth/session", nil, bert.Bearer()...).WantStatus(t, 200) // it is not from the provider
}

// withinSeconds waits for what must be so within a second, of which a busy machine makes a few.
func withinSeconds(t *testing.T, what string, done func() bool) {
	t.Helper()
	began := time.Now()
	await.Until(t, what, done)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%s: only after %v", what, took)
	}
}

// signedInAt reports whether an instance knows the session of a browser.
func (b *browser) signedInAt(api string) bool {
	b.t.Helper()
	return !strings.HasPrefix(b.open(api+"/console/account").path, "/console/sign-in")
}

func (b *browser) wantSignedIn(want bool, apis ...string) {
	b.t.Helper()
	for _, api := range apis {
		if got := b.signedInAt(api); got != want {
			b.t.Errorf("at %s the session is known: %v, want %v", api, got, want)
		}
	}
}
