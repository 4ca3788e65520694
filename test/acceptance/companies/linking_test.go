package companies

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// signInVerified signs the operator in at FULL_TRUST.
func (s *site) signInVerified(t *testing.T, b *browser) *browser {
	t.Helper()
	b.post("/console/sign-in", "email", s.operator.Email, "password", fixture.Password)
	b.open("/console/step-up").post("/console/step-up/send", "step-up.method", "EMAIL_OTP")
	s.verify(t, b)
	return b
}

// unlinkIn unlinks the identity of the operator in a browser.
func (s *site) unlinkIn(t *testing.T, b *browser) *browser {
	t.Helper()
	id := s.identities(t)[0].(object)["id"].(string)
	return b.post("/console/account/identities/" + id + "/unlink")
}

// identities returns the identities of the operator.
func (s *site) identities(t *testing.T) []any {
	t.Helper()
	return s.want(t, 200, "GET", "/auth/identities", nil)["identities"].([]any)
}

// openFrom opens an address as a browser does that a page elsewhere leads there.
func (b *browser) openFrom(site, path string) *browser {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", b.api+path, nil)
	must.Succeed(b.t, err)
	r.Header.Set("Sec-Fetch-Site", site)
	return b.send(r)
}

// TestForcedLink lets a page of another site try to link the identity of the attacker, whom the victim's
// browser signs in at the provider, to the account of an operator (N1).
func TestForcedLink(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.provider.SignIn("mallory", "mallory@acme.example")
		victim := s.signInVerified(t, s.newBrowser(t))
		for _, from := range []string{"cross-site", "same-site"} {
			victim.postAs(from, s.API+"/console/account/companies/acme/link", nil).want(403, "another site")
			victim.openFrom(from, "/console/sign-in/company/acme?link=1&return=/console/own").want(200, "Sign in with <bdi>Acme", "/console/own")
		}
		victim.openFrom("cross-site", "/console/account/companies/acme/link").want(200, "My account")

		// An answer of the provider that the victim's browser has not begun, or that another person has begun.
		answer := func(b *browser) string {
			b.post("/console/account/companies/acme/link").want(200, "Go on")
			before, _, _ := strings.Cut(b.body, `">Go on</a>`)
			return b.location(strings.ReplaceAll(before[strings.LastIndex(before, `href="`)+6:], "&amp;", "&"), 302)
		}
		e.NewPerson(t, "bert@example.com")
		bert := s.newBrowser(t)
		bert.post("/console/sign-in", "email", "bert@example.com", "password", fixture.Password)
		bert.open("/console/step-up").post("/console/step-up/send", "step-up.method", "EMAIL_OTP")
		s.verify(t, bert, "bert@example.com")
		victim.open(answer(bert)).want(400, "not begun in this browser")

		// A tab in which another person signs in meanwhile gets neither the question nor the identity.
		tab := s.newBrowser(t)
		tab.client.Jar = victim.client.Jar
		tab.askLink("acme").want(200, "Link this company sign-in?", "mallory@acme.example", s.operator.Email)
		state := hidden(tab, "state")
		if len(s.identities(t)) != 0 {
			t.Fatal("an identity is linked before the answer to the question")
		}
		victim.postAs("cross-site", s.API+linkPath, url.Values{"state": {state}}).want(403, "another site")
		bert.post(linkPath, "state", state).want(400)
		victim.post("/console/sign-out")
		s.signInVerified(t, victim)
		tab.post(linkPath, "state", state).want(400, "begin again")
		if got := s.identities(t); len(got) != 0 {
			t.Errorf("the identities are %v", got)
		}

		// The person's own answer links it, once.
		s.provider.SignIn("olga", "olga@acme.example")
		victim.askLink("acme").want(200)
		state, cookies := hidden(victim, "state"), victim.client.Jar.Cookies(mustParse(t, s.API))
		victim.post(linkPath, "state", state).want(200, "is linked")
		s.unlinkIn(t, victim)
		victim.client.Jar.SetCookies(mustParse(t, s.API), cookies)
		s.signInVerified(t, victim)
		victim.post(linkPath, "state", state).want(400, "begin again")
		if got := s.identities(t); len(got) != 0 {
			t.Errorf("a question was answered twice: %v", got)
		}
		events := s.events(t, "ACCOUNT_CHANGE")
		for _, event := range events {
			if event["action"] == "link" && (event["sessionId"] == nil || event["ipAddress"] != "127.0.0.1") {
				t.Errorf("the event is %v", event)
			}
		}
		for _, notice := range []string{"A company sign-in was linked", "A company sign-in was unlinked"} {
			s.AwaitLog(notice)
		}
	})
}

// TestStaleLink checks that an old session does not link an identity without a code, neither at the
// beginning nor for an old question.
func TestStaleLink(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.provider.SignIn("olga", "olga@acme.example")
		b := s.signInVerified(t, s.newBrowser(t))
		b.askLink("acme").want(200)
		age(t, s, "sessions", "created_at", 1)
		age(t, s, "sessions", "reauthenticated_at", 1)
		b.post(linkPath, "state", hidden(b, "state")).want(403, "Verify that it is you")
		b.post("/console/account/companies/acme/link").want(403, "Verify that it is you", "too old")
		b.post("/console/step-up/send", "step-up.method", "EMAIL_OTP")
		s.verify(t, b)
		b.link("acme").want(200, "is linked", "Acme")
	})
}

// TestUnlinkEndsSessions checks that the sessions of an identity end when it is unlinked, that its tokens
// are offered for removal, and that a logout token for it is answered as before (N5).
func TestUnlinkEndsSessions(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		owner := s.signInVerified(t, s.newBrowser(t))
		s.provider.SignIn("mallory", "mallory@acme.example")
		owner.link("acme").want(200)
		thief := s.newBrowser(t).signIn()
		thief.want(200, s.operator.Email)
		made := s.want(t, 201, "POST", "/admin/v1/me/tokens", object{"name": "old", "scopes": []string{"registry:read"}})
		s.unlinkIn(t, owner).want(200, "is unlinked", "Remove all of these", "old")
		since := hidden(owner, "since")
		if thief.isSignedIn() || !owner.isSignedIn() {
			t.Errorf("signed in: thief %v, owner %v", thief.isSignedIn(), owner.isSignedIn())
		}
		owner.post("/console/account/tokens/remove", "since", since).want(200, "are removed")
		apiclient.Call(t, "GET", s.API+"/admin/v1/me", nil, "Authorization", "Bearer "+made["token"].(string)).WantStatus(t, 401)

		// The session of the identity itself ends too.
		owner.link("acme").want(200)
		self := s.newBrowser(t).signIn()
		self.open("/console/step-up").post("/console/step-up/send", "step-up.method", "EMAIL_OTP")
		s.verify(t, self)
		s.unlinkIn(t, self).want(200, "Sign in")
		if self.isSignedIn() {
			t.Error("a session goes on without its identity")
		}
	})
}

// TestLinkInChromium links an identity through the pages of the console in a browser, whose policies hold
// for the form, the link to the provider and its answer, after a page of another site has tried to.
func TestLinkInChromium(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e)
	console := strings.Replace(s.API, "127.0.0.1", "localhost", 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		target := console + "/console/account/companies/acme/link"
		if r.URL.Path == "/get" {
			target = console + "/console/sign-in/company/acme?link=1"
		}
		_, _ = fmt.Fprintf(w, `<form method="%s" action="%s"></form><script>document.forms[0].submit()</script>`, r.URL.Path[1:], target)
	}))
	t.Cleanup(elsewhere.Close)
	tab := chromium.Open(t)
	shows := func(text string) {
		t.Helper()
		await.Until(t, text, func() bool {
			shown, err := chromedp.Run(tab.Context, chromedp.Evaluate[bool](fmt.Sprintf(
				`document.readyState === "complete" && document.body.textContent.includes(%q)`, text)))
			return err == nil && shown
		})
	}
	press := func(text string) {
		t.Helper()
		shows(text)
		tab.Run(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`void [...document.querySelectorAll("main a, main button")].find(a => a.textContent.trim().startsWith(%q)).click()`, text)))
	}
	fill := func(script string) { t.Helper(); tab.Run(t, chromedp.Evaluate[chromedp.Void]("void ("+script+")")) }
	tab.Run(t, chromedp.Navigate(console+"/console/sign-in?next="+url.QueryEscape("/console/step-up?next=/console/account")))
	fill(fmt.Sprintf(`email.value = %q, password.value = %q, password.form.requestSubmit()`, s.operator.Email, fixture.Password))
	shows("Send a code to o")
	press("Send a code to o")
	shows("Enter the code")
	fill(fmt.Sprintf(`document.querySelector("[name='step-up.code']").value = %q, document.querySelector("[name='step-up.code']").form.requestSubmit()`,
		e.LastCode(t, s.operator.Email)))
	shows("It may do everything")
	s.provider.SignIn("mallory", "mallory@acme.example")
	for method, answer := range map[string]string{"post": "another site", "get": "With a password"} {
		tab.Run(t, chromedp.Navigate(strings.Replace(elsewhere.URL, "localhost", "127.0.0.1", 1)+"/"+method))
		shows(answer)
	}
	if got := s.identities(t); len(got) != 0 {
		t.Fatalf("another site has linked %v", got)
	}
	tab.Run(t, chromedp.Navigate(console+"/console/account"))
	press("Link Acme")
	shows("Go on at your company")
	press("Go on")
	shows("Link this company sign-in?")
	shows("mallory@acme.example")
	press("Link to " + s.operator.Email)
	shows("The company sign-in is linked.")
}

// TestTwoLinksAtOnce answers two questions of one person at once: one of the identities is linked.
func TestTwoLinksAtOnce(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		b := s.signInVerified(t, s.newBrowser(t))
		for round := range 4 {
			var states []string
			for _, name := range []string{"a", "b"} {
				s.provider.SignIn(fmt.Sprint(name, round), name+"@acme.example")
				b.askLink("acme").want(200)
				states = append(states, hidden(b, "state"))
			}
			var running sync.WaitGroup
			for _, state := range states {
				tab := *b
				running.Go(func() { tab.post(linkPath, "state", state) })
			}
			running.Wait()
			if got := s.identities(t); len(got) != 1 {
				t.Fatalf("round %d: the identities are %v", round, got)
			}
			s.unlinkIn(t, b)
		}
	})
}
