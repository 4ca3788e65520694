package companies

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestSignIn walks through the life of a person: made, known again, linked, with grants by groups.
func TestSignIn(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.newBrowser(t).open("/console/sign-in").want(200, "Sign in with", "Acme", "/console/sign-in/company/acme?return=")
		s.provider.SignIn("u1", "Ada@Acme.example", "name", "Ada")
		ada := s.newBrowser(t)
		ada.signIn().want(200, "ada@acme.example", "My account", "Ada")
		if ada.path != "/console/account" {
			t.Errorf("the sign-in leads to %s", ada.path)
		}
		s.provider.SignIn("u1", "other@elsewhere.example")
		s.newBrowser(t).signIn().want(200, "ada@acme.example")
		if got := s.want(t, 200, "GET", "/admin/v1/people?q=elsewhere", nil)["people"].([]any); len(got) != 0 {
			t.Errorf("the changed address made %v", got)
		}
		e.NewPerson(t, "bert@acme.example")
		s.provider.SignIn("u2", "bert@acme.example", "email_verified", true)
		s.newBrowser(t).signIn().want(200, "bert@acme.example")
		s.wantEvents(t, "link", "create")
	})
}

// wantEvents fails the test unless there are events of accounts with the actions.
func (s *site) wantEvents(t *testing.T, actions ...string) {
	t.Helper()
	found := s.events(t, "ACCOUNT_CHANGE")
	for _, action := range actions {
		if !slices.ContainsFunc(found, func(d object) bool { return d["action"] == action }) {
			t.Errorf("there is no event %s: %v", action, found)
		}
	}
}

// TestRefusedAnswers tries everything that may be wrong with the answer that a browser brings.
func TestRefusedAnswers(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.provider.SignIn("u1", "ada@acme.example")
		callback := func(b *browser) string {
			return b.location(b.begin("/console/sign-in/company/acme"), 302)
		}
		victim, attacker := s.newBrowser(t), s.newBrowser(t)
		foreign := callback(attacker)
		victim.open(foreign).want(400, "not begun in this browser") // login CSRF
		victim.begin("/console/sign-in/company/acme")
		victim.open(foreign).want(400, "not begun in this browser") // nonce of another browser
		attacker.open(foreign).want(200)
		attacker.open(foreign).want(400, "complete already") // replay
		mine := callback(victim)
		victim.open(strings.Replace(mine, "state=", "state=x", 1)).want(400)
		victim.open(strings.Replace(mine, "code=", "code=x", 1)).want(400, "refuses the code")
		victim.open(mine).want(400, "complete already")
		s.want(t, 201, "PUT", providers+"/other", s.settings("domains", []string{}))
		mixed := callback(victim)
		victim.open(strings.Replace(mixed, "/acme/", "/other/", 1)).want(400) // mix-up
		victim.open(mixed).want(200)

		for name, test := range map[string]struct {
			change func(url.Values)
			status int
			text   string
		}{
			"an error":                 {set("code", "", "error", "access_denied"), 403, "access_denied"},
			"an error with a code":     {set("error", "access_denied"), 403, "access_denied"},
			"an error with markup":     {set("error", "<script>"), 403, "has refused"},
			"an error without a state": {set("error", "access_denied", "state", ""), 400, "not begun in this browser"},
			"an error of another one":  {set("error", "x", "iss", "https://elsewhere.example"), 400, "not one of"},
			"no code":                  {set("code", ""), 400, "no code"},
			"a code with a NUL":        {set("code", "\x00"), 400, "refuses the code"},
			"another issuer":           {set("iss", "https://elsewhere.example"), 400, "not one of"},
			"its issuer":               {set("iss", s.provider.URL), 200, "Ada"},
		} {
			s.provider.Behave(oidcissuer.Behaviour{Claims: object{"sub": "u1", "email": "ada@acme.example", "name": "Ada"}, Answer: test.change})
			b := s.newBrowser(t).signIn()
			if b.status != test.status || test.status != 200 && !strings.Contains(b.body, test.text) {
				t.Errorf("%s: status %d, want %d with %q: %s", name, b.status, test.status, test.text, pageText(b.body))
			}
		}
	})
}

// set returns a change of parameters of an answer. One that is empty is left out.
func set(parameters ...string) func(url.Values) {
	return func(v url.Values) {
		for i := 0; i < len(parameters); i += 2 {
			if v.Set(parameters[i], parameters[i+1]); parameters[i+1] == "" {
				v.Del(parameters[i])
			}
		}
	}
}

// TestAnnouncedIssuer checks that an answer without iss is refused if the provider announces it.
func TestAnnouncedIssuer(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	good := oidcissuer.Behaviour{Claims: object{"sub": "u1", "email": "ada@acme.example"}, Announce: true}
	bad := good
	bad.Answer = func(v url.Values) { v.Del("iss") }
	s.provider.Behave(bad)
	s.newBrowser(t).signIn().want(400)
	s.provider.Behave(good)
	s.newBrowser(t).signIn().want(200)
}

// TestOldestSignInFallsOut checks that a browser has five sign-ins that have begun at most.
func TestOldestSignInFallsOut(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.provider.SignIn("u1", "ada@acme.example")
	b := s.newBrowser(t)
	var all []string
	for range 6 {
		all = append(all, b.location(b.begin("/console/sign-in/company/acme"), 302))
	}
	b.open(all[0]).want(400, "not begun in this browser")
	b.open(all[1]).want(200)
	b.open(all[5]).want(200)
}

// TestRefusedTokens tries ID tokens that are wrong: none signs in, and the event has the reason. Every
// defect is checked in core/auth/company and adapters/oidc.
func TestRefusedTokens(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		now := time.Now()
		claim := func(name string, value any) oidcissuer.Behaviour {
			return oidcissuer.Behaviour{Token: func(c map[string]any) {
				if c[name] = value; value == nil {
					delete(c, name)
				}
			}}
		}
		signed := func(sign func(map[string]any) string) oidcissuer.Behaviour { return oidcissuer.Behaviour{Sign: sign} }
		by := func(k oidcissuer.Key) oidcissuer.Behaviour {
			return signed(func(c map[string]any) string { return k.Sign(t, c) })
		}
		unsigned := func(map[string]any) string { return "eyJhbGciOiJub25lIn0.e30." }
		type attempt struct {
			behave oidcissuer.Behaviour
			reason string // empty for a token that is accepted
		}
		all := map[string]attempt{
			"a good token":          {oidcissuer.Behaviour{}, ""},
			"another issuer":        {claim("iss", "https://elsewhere.example"), "issuer"},
			"azp of another client": {claim("azp", "other"), "authorized_party"},
			"expired":               {claim("exp", now.Add(-time.Minute-5*time.Second).Unix()), "expired"},
			"another nonce":         {claim("nonce", "other"), "nonce"},
			"no subject":            {claim("sub", nil), "subject"},
			"a long token":          {claim("padding", strings.Repeat("x", 16<<10)), "malformed"},
			"the key of a stranger": {by(oidcissuer.NewKey(t, jose.ES256)), "signature"},
			"RS512":                 {by(s.provider.AddKey(t, jose.RS512)), "signature"},
			"no signature":          {signed(unsigned), "signature"},
			"no token":              {signed(func(map[string]any) string { return "" }), "missing"},
			"another algorithm":     {by(s.provider.AddKey(t, jose.EdDSA)), ""},
		}
		for name, test := range all {
			test.behave.Claims = object{"sub": "u1", "email": "ada@acme.example"}
			s.provider.Behave(test.behave)
			b := s.newBrowser(t).signIn()
			if test.reason == "" {
				b.want(200)
				continue
			}
			if b.want(401); strings.Contains(b.body, "ada@") {
				t.Errorf("%s: the page tells the address", name)
			}
			if d := s.events(t, "LOGIN_ATTEMPT")[0]; d["reason"] != test.reason || d["method"] != "company" || d["provider"] != "acme" {
				t.Errorf("%s: the event is %v, want the reason %s", name, d, test.reason)
			}
		}
	})
}

// wantUp checks what the readiness and the metrics say of the provider acme.
func (s *site) wantUp(t *testing.T, up bool) {
	t.Helper()
	status, state, value := "degraded", "down", 0.0
	if up {
		status, state, value = "ok", "ok", 1
	}
	var ready struct {
		Status       string
		Dependencies map[string]string
	}
	apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, 200).Decode(t, &ready)
	if ready.Status != status || ready.Dependencies["company_sign_in"] != state {
		t.Errorf("/ready says %+v, want %s and %s", ready, status, state)
	}
	shown := s.ReadMetrics("tollgate_provider_up")["tollgate_provider_up"].GetMetric()
	if len(shown) != 1 || shown[0].GetLabel()[0].GetValue() != "acme" || shown[0].GetGauge().GetValue() != value {
		t.Errorf("the metric is %v, want %v of acme", shown, value)
	}
}

// TestEnforcedDomain checks that a password of an enforced domain is refused, whether or not there is
// an account, and that other domains go on.
func TestEnforcedDomain(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		e.NewPerson(t, "ada@acme.example")
		s.wantCode(t, 409, "conflict", "PUT", providers+"/acme", s.settings("enforce", true))
		s.want(t, 200, "PUT", providers+"/acme?force=true", s.settings("enforce", true))
		for _, email := range []string{"ada@acme.example", "anyone@acme.example"} {
			a := apiclient.Call(t, "POST", s.API+"/auth/login", object{
				"email": email, "password": fixture.Password, "deviceInfo": object{},
			}).WantStatus(t, 403)
			if details := apiclient.WantAuthError(t, a, "company_sign_in_required"); details["provider"] != "acme" {
				t.Errorf("%s: the details are %v", email, details)
			}
		}
		s.newBrowser(t).post("/console/sign-in", "email", "ada@acme.example", "password", fixture.Password).
			want(422, "Sign in at your company: Acme", "/console/sign-in/company/acme?return=")
		s.wantLedToCompany(t)
		apiclient.Call(t, "POST", s.API+"/auth/login", object{
			"email": s.operator.Email, "password": fixture.Password, "deviceInfo": object{},
		}).WantStatus(t, 200)
		var offered object
		apiclient.Call(t, "GET", s.API+"/auth/providers?email=x@acme.example", nil).WantStatus(t, 200).Decode(t, &offered)
		if offered["password"] != false {
			t.Errorf("offered is %v", offered)
		}
		s.provider.SignIn("u1", "ada@acme.example")
		s.newBrowser(t).signIn().want(200)
		s.wantBrokenGlass(t, "ada@acme.example")
		admitted := s.newBrowser(t)
		admitted.api = strings.Replace(s.API, "127.0.0.1", "localhost", 1)
		admitted.post("/console/sign-in", "email", "ada@acme.example", "next", "/console/account").want(200, "Use my password all the same")
		admitted.post("/console/sign-in", "email", "ada@acme.example", "password", fixture.Password, "next", "/console/account").
			want(200, "My account")
		s.want(t, 200, "PUT", providers+"/acme", s.settings())
		s.linkOperator(t)
		s.want(t, 200, "PUT", providers+"/acme", s.settings("enforce", true))
	})
}

// wantLedToCompany checks that an e-mail address without a password leads to the company of its domain,
// whether or not there is an account, and that other ones do not.
func (s *site) wantLedToCompany(t *testing.T) {
	t.Helper()
	s.newBrowser(t).open("/console/sign-in").want(200, "Empty if your company signs you in.")
	var pages []string
	for _, email := range []string{"ada@acme.example", "anyone@acme.example"} {
		b := s.newBrowser(t).post("/console/sign-in", "email", email, "next", "/console/own")
		b.want(200, "/console/sign-in/company/acme?return=%2Fconsole%2Fown", "Use my password all the same", email)
		pages = append(pages, strings.ReplaceAll(b.body, email, ""))
	}
	if pages[0] != pages[1] {
		t.Error("the page tells whether there is an account")
	}
	s.newBrowser(t).post("/console/sign-in", "email", "ada@elsewhere.example").want(422, "Password must not be empty")
	s.newBrowser(t).post("/console/sign-in", "email", "acme.example").want(422, "must be an e-mail address")
}

// wantBrokenGlass checks that a command admits the password of a person all the same.
func (s *site) wantBrokenGlass(t *testing.T, email string) {
	t.Helper()
	for _, wrong := range []string{"4m", "25h"} {
		if _, stderr, code := s.e.TryCommand(t, "", "user", "break-glass", "--email", email, "--for", wrong); code == 0 {
			t.Errorf("--for %s is accepted: %s", wrong, stderr)
		}
	}
	if _, _, code := s.e.TryCommand(t, "", "user", "break-glass", "--email", email, "--server", s.API); code != 2 {
		t.Errorf("--server leads to exit code %d, want 2", code)
	}
	s.e.RunCommand(t, "", "user", "break-glass", "--email", email, "--for", "5m")
	s.AwaitLog("A password was admitted in place of the company sign-in")
	apiclient.Call(t, "POST", s.API+"/auth/login", object{
		"email": email, "password": fixture.Password, "deviceInfo": object{},
	}).WantStatus(t, 200)
	s.AwaitLog("A password was used in place of the company sign-in")
	apiclient.Call(t, "POST", s.API+"/auth/login", object{
		"email": email, "password": "Wrong-Horse-9-Battery", "deviceInfo": object{},
	}).WantStatus(t, 401)
	s.wantEvents(t, "break_glass")
}

// TestInvitationOfEnforcedDomain checks that an invitation begins no session of a person who signs in at the
// company only, also if it was made before that was so, and that the company accepts it. Who may operate is
// let in to link the company sign-in.
func TestInvitationOfEnforcedDomain(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		invite := func(email string, grants ...object) (link, code string) {
			made := s.want(t, 201, "POST", "/admin/v1/people", object{
				"email": email, "name": "Ivy", "grants": append([]object{}, grants...),
			})
			u := mustParse(t, made["invitation"].(object)["url"].(string))
			return u.RequestURI(), u.Query().Get("code")
		}
		link, code := invite("ivy@acme.example")
		s.newBrowser(t).open(link).want(200, "You are invited")
		s.want(t, 200, "PUT", providers+"/acme?force=true", s.settings("enforce", true))
		b := s.newBrowser(t).open(link).want(403, "Sign in at your company: Acme")
		b.post("/console/invitation", "code", code, "password", fixture.Password).want(403, "Sign in at your company: Acme")
		if b.isSignedIn() {
			t.Error("the invitation has begun a session")
		}
		s.provider.SignIn("u1", "ivy@acme.example")
		s.newBrowser(t).signIn().want(200, "ivy@acme.example")
		s.newBrowser(t).open(link).want(404)
		for email, grants := range map[string][]object{
			"otto@acme.example": {{"action": "operate", "resource": "*"}}, "elsa@elsewhere.example": nil,
		} {
			link, code := invite(email, grants...)
			s.newBrowser(t).open(link).post("/console/invitation", "code", code, "password", fixture.Password).want(200, "Welcome")
		}
	})
}

// TestPasswordsOff checks that no password is accepted with PASSWORD_SIGN_IN=off.
func TestPasswordsOff(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, append(fixture.RegistrySettings(), "PASSWORD_SIGN_IN=off")...)
	e.NewPerson(t, "ada@example.com")
	a := apiclient.Call(t, "POST", s.API+"/auth/login", object{
		"email": "ada@example.com", "password": fixture.Password, "deviceInfo": object{},
	}).WantStatus(t, 403)
	if details := apiclient.WantAuthError(t, a, "company_sign_in_required"); details["provider"] != nil {
		t.Errorf("the details are %v", details)
	}
	var offered object
	apiclient.Call(t, "GET", s.API+"/auth/providers", nil).WantStatus(t, 200).Decode(t, &offered)
	if offered["password"] != false {
		t.Errorf("offered is %v", offered)
	}
}
