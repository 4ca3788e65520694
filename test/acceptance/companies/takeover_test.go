package companies

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestTakeOvers tries each take-over of an account that was seen in other projects. The victim has an
// account and an identity; the attacker is known to the provider too. None leads into the account of the
// victim, and none puts the victim into that of the attacker.
func TestTakeOvers(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		const begin, victim, attacker = "/console/sign-in/company/acme", "victim@acme.example", "attacker@acme.example"
		e.NewPerson(t, "password@acme.example") // a person without an identity
		e.NewPerson(t, "victim@elsewhere.example")
		for subject, email := range map[string]string{"v": victim, "a": attacker} {
			s.provider.SignIn(subject, email)
			s.newBrowser(t).signIn().want(200, email)
		}
		callback := func(b *browser) string { return b.location(b.begin(begin+"?return=/console/account"), 302) }
		s.want(t, 201, "PUT", providers+"/other", s.settings("domains", []string{}))
		for _, test := range []struct {
			name    string
			subject string // that the provider signs in
			email   string
			claims  []any
			attempt func(b *browser)
			status  int
		}{
			{"an unverified e-mail address", "x", "password@acme.example", []any{"email_verified", false}, nil, 403},
			{"an address of a foreign domain", "x", "victim@elsewhere.example", []any{"email_verified", true}, nil, 403},
			{"a moved subject: the victim's address at a new subject", "x", victim, nil, nil, 403},
			{"a mix-up of providers", "v", victim, nil, func(b *browser) {
				b.open(strings.Replace(callback(b), "/acme/", "/other/", 1))
			}, 400},
			{"a replayed state", "v", victim, nil, func(b *browser) {
				used := callback(b)
				b.open(used).want(200)
				b.post("/console/sign-out")
				b.open(used)
			}, 400},
			{"a replayed code", "v", victim, nil, func(b *browser) {
				used := callback(s.newBrowser(t))
				b.open(replaceCode(t, callback(b), used))
			}, 400},
			{"login CSRF: the victim's browser gets the attacker's answer", "a", attacker, nil, func(b *browser) {
				b.begin(begin)
				b.open(callback(s.newBrowser(t)))
			}, 400},
			{"the nonce of another browser", "v", victim, []any{"nonce", "of another browser"}, nil, 401},
			{"a token of another client", "v", victim, []any{"aud", "another client"}, nil, 401},
		} {
			s.provider.SignIn(test.subject, test.email, test.claims...)
			b := s.newBrowser(t)
			if test.attempt == nil {
				b.signIn()
			} else {
				test.attempt(b)
			}
			if b.status != test.status {
				t.Errorf("%s: status %d, want %d: %s", test.name, b.status, test.status, pageText(b.body))
			}
			if b.isSignedIn() {
				t.Errorf("%s: the browser is signed in: %s", test.name, pageText(b.body))
			}
		}
	})
}

// replaceCode returns the address of a callback with the code of another one.
func replaceCode(t *testing.T, address, other string) string {
	t.Helper()
	u := mustParse(t, address)
	q := u.Query()
	q.Set("code", mustParse(t, other).Query().Get("code"))
	u.RawQuery = q.Encode()
	return u.String()
}

// TestCompanyCookieOverTLS checks that a company sign-in over TLS has cookies that only this host can set
// and that are sent over TLS alone, and that the callback takes the one of the sign-in away.
func TestCompanyCookieOverTLS(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e, "TRUSTED_PROXIES=127.0.0.1/32", "PUBLIC_URL=https://tools.example.com")
	s.provider.SignIn("u1", "ada@acme.example")
	send := func(path string, cookies ...*http.Cookie) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.API+path, nil)
		must.Succeed(t, err)
		r.Host = "tools.example.com"
		r.Header.Set("X-Forwarded-Proto", "https")
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		must.Succeed(t, err)
		if _ = response.Body.Close(); response.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s: status %d", path, response.StatusCode)
		}
		return response
	}
	named := func(r *http.Response, name string) *http.Cookie {
		for _, c := range r.Cookies() {
			if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("the cookie is %v", c)
			}
			if c.Name == name {
				return c
			}
		}
		t.Fatalf("there is no cookie %s: %v", name, r.Cookies())
		return nil
	}
	begun := send("/console/sign-in/company/acme?return=https://elsewhere.example/")
	state := named(begun, "__Host-tollgate_company")
	q := mustParse(t, begun.Header.Get("Location")).Query()
	if q.Get("code_challenge_method") != "S256" || len(q.Get("state")) != 43 || len(q.Get("nonce")) != 43 ||
		q.Get("response_type") != "code" || state.MaxAge != 600 || strings.Contains(state.Value, q.Get("state")) {
		t.Errorf("the request of the provider is %v, the cookie %v", q, state)
	}
	back := mustParse(t, s.newBrowser(t).location(begun.Header.Get("Location"), 302))
	if back.Scheme+"://"+back.Host != "https://tools.example.com" {
		t.Errorf("the provider leads to %s", back)
	}
	done := send(back.RequestURI(), state)
	if to := done.Header.Get("Location"); strings.Contains(to, "elsewhere") {
		t.Errorf("the sign-in leads to %s", to)
	}
	if c := named(done, "__Host-tollgate"); c.Value == "" {
		t.Error("the session has no cookie")
	}
	if c := named(done, "__Host-tollgate_company"); c.Value != "" || c.Expires.After(time.Now()) {
		t.Errorf("the cookie of the sign-in is %v", c)
	}
}

// TestNewPersonAtOnce signs a person in for the first time in several browsers at once: there is one
// account then, and each has a session.
func TestNewPersonAtOnce(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.provider.SignIn("u1", "ada@acme.example")
		pages := make([]*browser, 8)
		for i := range pages {
			pages[i] = s.newBrowser(t)
		}
		fixture.CallInParallel(t, len(pages), func(i int) (apiclient.Response, error) {
			pages[i].signIn()
			return apiclient.Response{}, nil
		})
		for _, b := range pages {
			b.want(200, "ada@acme.example")
		}
		if got := s.want(t, 200, "GET", "/admin/v1/people?q=ada", nil)["people"].([]any); len(got) != 1 {
			t.Errorf("there are %d accounts", len(got))
		}
	})
}

// TestLastOperatorByGroup checks that the last operator keeps the grant that a group gave, which is
// reported, and that the person whose account is linked gets a notice.
func TestLastOperatorByGroup(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true,
			"groupGrants", []object{{"group": "ops", "action": "operate", "resource": "*"}}))
		e.NewPerson(t, "bert@acme.example")
		s.provider.SignIn("u1", "bert@acme.example", "groups", "ops")
		s.newBrowser(t).signIn().want(200)
		s.AwaitLog("A company sign-in was linked")
		e.RunCommand(t, "", "grant", "remove", "--email", s.operator.Email, "--action", "operate")
		s.provider.SignIn("u1", "bert@acme.example", "groups", []string{})
		s.newBrowser(t).signIn().want(200)
		e.RunCommand(t, "", "grant", "add", "--email", s.operator.Email, "--action", "operate")
		wantGrants(t, s, "bert@acme.example", "operate * provider:acme")
		if d := s.events(t, "ACCOUNT_CHANGE"); !containsKept(d) {
			t.Errorf("the events do not report the grant that is kept: %v", d)
		}
		s.newBrowser(t).signIn().want(200)
		wantGrants(t, s, "bert@acme.example")
	})
}

func containsKept(events []object) bool {
	for _, d := range events {
		if d["action"] == "groups" && d["keptOperator"] == true {
			return true
		}
	}
	return false
}
