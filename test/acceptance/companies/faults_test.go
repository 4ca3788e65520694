package companies

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// wantOthersGoOn checks that a password, a session and the list of providers do not depend on a
// provider.
func (s *site) wantOthersGoOn(t *testing.T, signedIn *browser) {
	t.Helper()
	apiclient.Call(t, "POST", s.API+"/auth/login", object{
		"email": s.operator.Email, "password": fixture.Password, "deviceInfo": object{},
	}).WantStatus(t, 200)
	apiclient.Call(t, "GET", s.API+"/auth/providers", nil).WantStatus(t, 200)
	if signedIn != nil && !signedIn.isSignedIn() {
		t.Error("a session of the company has ended")
	}
}

// TestFaults lets a provider be away, lie and come back: nothing else stops, and the service says what
// is wrong.
func TestFaults(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.provider.SignIn("u1", "ada@acme.example")
	lying := s.provider.Discovery()
	lying["issuer"] = "https://elsewhere.example"
	for name, handler := range map[string]http.Handler{
		"away":           http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"out of order":   http.HandlerFunc(answerOutOfOrder),
		"another issuer": oidcissuer.Document(lying),
	} {
		s.provider.Respond(oidcissuer.DiscoveryPath, handler)
		s.newBrowser(t).signIn().want(503)
		s.wantUp(t, false)
		if got := s.want(t, 200, "POST", providers+"/acme/test", nil); got["ok"] != false {
			t.Errorf("%s: the test says %v", name, got)
		}
		s.wantUp(t, false)
		s.wantOthersGoOn(t, nil)
		s.provider.Recover()
		if got := s.want(t, 200, "POST", providers+"/acme/test", nil); got["ok"] != true {
			t.Errorf("%s: afterwards the test says %v", name, got)
		}
		s.wantUp(t, true)
		if got := s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"]; got != "" {
			t.Errorf("%s: the last problem is still %v", name, got)
		}
	}
	// a reading that has failed is repeated after a second
	b := s.newBrowser(t)
	await.Until(t, "the provider is used again", func() bool { return b.signIn().status == 200 })
	s.provider.Disconnect() // its documents are kept
	s.newBrowser(t).signIn().want(200)
	s.provider.Recover()
	s.provider.RotateKeys(t)
	s.newBrowser(t).signIn().want(200)
	s.wantUp(t, true)
	for response, status := range map[int]int{404: 400, 401: 503, 429: 503, 500: 503, 502: 503} {
		s.provider.Respond(oidcissuer.TokenPath, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the secret text of the provider", response)
		}))
		if b := s.newBrowser(t).signIn().want(status); strings.Contains(b.body, "secret text") {
			t.Errorf("the page has the answer of the provider: %s", pageText(b.body))
		}
		s.wantUp(t, status == 400)
		s.wantOthersGoOn(t, nil)
		s.provider.Respond(oidcissuer.TokenPath, nil)
		s.newBrowser(t).signIn().want(200)
		s.wantUp(t, true)
	}
	s.provider.Behave(oidcissuer.Behaviour{Claims: object{"sub": "u1"}, Token: func(c map[string]any) { c["nonce"] = "x" }})
	s.newBrowser(t).signIn().want(401)
	if got := s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"]; got == "" {
		t.Error("a refused token is no problem of the provider")
	}
	s.wantUp(t, true)
	s.want(t, 200, "PUT", providers+"/acme", s.settings("displayName", "Acme again"))
	if got := s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"]; got != "" {
		t.Errorf("after a change the last problem is still %v", got)
	}
}

// TestHungProvider lets each endpoint of a provider hang: the sign-in is given up after 10 s, and
// meanwhile everything else goes on. A slow answer is waited for.
func TestHungProvider(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.askForRefresh(t)
	good := oidcissuer.Behaviour{Claims: object{"sub": "u1", "email": "ada@acme.example"}, Refresh: "the refresh token"}
	s.provider.Behave(good)
	signedIn := s.newBrowser(t).signIn().want(200)
	slow, arrived := make(chan struct{}), make(chan struct{}, 1)
	s.provider.Respond(oidcissuer.TokenPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-slow
		s.provider.Respond(oidcissuer.TokenPath, nil)
		s.provider.ServeHTTP(w, r)
	}))
	var running sync.WaitGroup
	running.Go(func() { s.newBrowser(t).signIn().want(200) })
	await.Receive(t, "the request to the slow provider", arrived)
	s.wantOthersGoOn(t, signedIn)
	close(slow)
	running.Wait()

	s.provider.Respond(oidcissuer.TokenPath, s.provider.Hung())
	before := s.makeDue(t) // the check of the session hangs too
	other := oidcissuer.StartProvider(t)
	other.Hang()
	hung := s.settings("issuer", other.URL, "domains", []string{})
	s.want(t, 201, "PUT", providers+"/hung", hung)
	for _, path := range []string{"/console/sign-in/company/acme", "/console/sign-in/company/hung"} {
		running.Go(func() { s.newBrowser(t).open(path).want(503) })
	}
	s.wantOthersGoOn(t, signedIn)
	running.Wait()
	s.want(t, 204, "DELETE", providers+"/hung", nil)
	s.wantUp(t, false)
	s.wantOthersGoOn(t, signedIn)
	s.provider.Respond(oidcissuer.TokenPath, nil)
	await.Until(t, "the session is confirmed after the provider is back", func() bool {
		s.makeDue(t)
		for id, at := range s.readLogins(t) {
			if before[id] != at {
				return true
			}
		}
		return false
	})
	s.wantUp(t, true)
}

// TestRotatedRefreshToken checks that a check that fails after the provider has replaced the refresh
// token is tried again with the new one.
func TestRotatedRefreshToken(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.askForRefresh(t, "requiredGroups", []string{"staff"})
	s.provider.Behave(oidcissuer.Behaviour{
		Claims: object{"sub": "u1", "email": "ada@acme.example"}, Userinfo: object{"groups": []string{"staff"}},
		Refresh: "the first refresh token", Rotates: true,
	})
	b := s.newBrowser(t).signIn().want(200)
	s.provider.Respond(oidcissuer.UserinfoPath, http.HandlerFunc(answerOutOfOrder))
	s.makeDue(t)
	await.Until(t, "the check fails", func() bool {
		return strings.Contains(s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"].(string), "does not answer")
	})
	s.wantUp(t, false)
	s.provider.Respond(oidcissuer.UserinfoPath, nil)
	s.checkAgain(t)
	if !b.isSignedIn() {
		t.Error("the session has ended after a check without an answer")
	}
	s.wantUp(t, true)
}

func answerOutOfOrder(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "", http.StatusServiceUnavailable)
}
