package companies

import (
	"net/http"
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
			"an error":             {func(v url.Values) { v.Del("code"); v.Set("error", "access_denied") }, 403, "access_denied"},
			"an error with markup": {func(v url.Values) { v.Set("error", "<script>") }, 403, "has refused"},
			"no code":              {func(v url.Values) { v.Del("code") }, 400, "no code"},
			"another issuer":       {func(v url.Values) { v.Set("iss", "https://elsewhere.example") }, 400, "not one of"},
			"its issuer":           {func(v url.Values) { v.Set("iss", s.provider.URL) }, 200, "Ada"},
		} {
			s.provider.Behave(oidcissuer.Behaviour{Claims: object{"sub": "u1", "email": "ada@acme.example", "name": "Ada"}, Answer: test.change})
			b := s.newBrowser(t).signIn()
			if b.status != test.status || test.status != 200 && !strings.Contains(b.body, test.text) {
				t.Errorf("%s: status %d, want %d with %q: %s", name, b.status, test.status, test.text, pageText(b.body))
			}
		}
	})
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

// TestRefusedTokens tries everything that may be wrong with an ID token.
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
		stranger, weak := oidcissuer.NewKey(t, jose.ES256), s.provider.AddKey(t, jose.RS512)
		type attempt struct {
			behave oidcissuer.Behaviour
			reason string // empty for a token that is accepted
		}
		all := map[string]attempt{
			"a good token":                     {oidcissuer.Behaviour{}, ""},
			"another issuer":                   {claim("iss", "https://elsewhere.example"), "issuer"},
			"an issuer with a slash":           {claim("iss", s.provider.URL+"/"), "issuer"},
			"another audience":                 {claim("aud", "other"), "audience"},
			"two audiences without azp":        {claim("aud", []string{"tollgate", "other"}), "authorized_party"},
			"azp of another client":            {claim("azp", "other"), "authorized_party"},
			"no audience":                      {claim("aud", nil), "audience"},
			"expired":                          {claim("exp", now.Add(-time.Minute-5*time.Second).Unix()), "expired"},
			"expired within a minute":          {claim("exp", now.Add(-30*time.Second).Unix()), ""},
			"no end":                           {claim("exp", nil), "expired"},
			"an end that is a text":            {claim("exp", "tomorrow"), "expired"},
			"not valid yet":                    {claim("nbf", now.Add(2*time.Minute).Unix()), "not_before"},
			"valid within a minute":            {claim("nbf", now.Add(30*time.Second).Unix()), ""},
			"issued in the future":             {claim("iat", now.Add(2*time.Minute).Unix()), "issued_at"},
			"no time of issue":                 {claim("iat", nil), "issued_at"},
			"another nonce":                    {claim("nonce", "other"), "nonce"},
			"no nonce":                         {claim("nonce", nil), "nonce"},
			"no subject":                       {claim("sub", nil), "subject"},
			"a subject that is a number":       {claim("sub", 7), "subject"},
			"a long subject":                   {claim("sub", strings.Repeat("s", 256)), "subject"},
			"a long token":                     {claim("padding", strings.Repeat("x", 16<<10)), "malformed"},
			"the key of a stranger":            {signed(func(c map[string]any) string { return stranger.Sign(t, c) }), "signature"},
			"RS512":                            {signed(func(c map[string]any) string { return weak.Sign(t, c) }), "signature"},
			"no signature":                     {signed(func(map[string]any) string { return "eyJhbGciOiJub25lIn0.e30." }), "signature"},
			"no JWT":                           {signed(func(map[string]any) string { return "token" }), "malformed"},
			"no token":                         {signed(func(map[string]any) string { return "" }), "missing"},
			"a symmetric key from the key set": {signed(func(c map[string]any) string { return signByPublicKey(t, s, c) }), "signature"},
			"two audiences with azp": {oidcissuer.Behaviour{Token: func(c map[string]any) {
				c["aud"], c["azp"] = []string{"tollgate", "other"}, "tollgate"
			}}, ""},
			"a subject with a NUL": {claim("sub", "u\x00"), "subject"},
			"a long sid":           {claim("sid", strings.Repeat("s", 256)), "subject"},
		}
		for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES384, jose.EdDSA} {
			key := s.provider.AddKey(t, algorithm)
			all[string(algorithm)] = attempt{signed(func(c map[string]any) string { return key.Sign(t, c) }), ""}
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

// signByPublicKey signs claims with HS256 and the public key as a secret.
func signByPublicKey(t *testing.T, s *site, claims map[string]any) string {
	t.Helper()
	text, err := s.provider.Key().Public().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return oidcissuer.SignWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: text}, []byte(`{"sub":"u1"}`))
}

// TestExchange checks what a provider that refuses, fails or hangs leads to.
func TestExchange(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	for name, test := range map[string]struct{ response, status int }{
		"refused": {400, 400}, "unauthorised": {401, 400}, "failed": {500, 503}, "gateway": {502, 503},
	} {
		s.provider.Behave(oidcissuer.Behaviour{Exchange: func(w http.ResponseWriter, _ url.Values) bool {
			http.Error(w, "the secret text of the provider", test.response)
			return true
		}})
		b := s.newBrowser(t).signIn()
		if b.status != test.status || strings.Contains(b.body, "secret text") {
			t.Errorf("%s: status %d, want %d: %s", name, b.status, test.status, pageText(b.body))
		}
	}
	s.provider.Behave(oidcissuer.Behaviour{Exchange: func(w http.ResponseWriter, _ url.Values) bool {
		_, _ = w.Write([]byte("{")) // the client may be gone
		return true
	}})
	s.newBrowser(t).signIn().want(400)
	if s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"] == "" {
		t.Error("the provider has no last problem")
	}
}

// TestAway checks that the readiness and the metrics say which provider did not work when it was last
// needed, and that other ways to sign in go on.
func TestAway(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.provider.SignIn("u1", "ada@acme.example")
	for range 2 {
		s.newBrowser(t).signIn().want(200)
		s.wantUp(t, true)
		s.provider.Behave(oidcissuer.Behaviour{Exchange: func(w http.ResponseWriter, _ url.Values) bool {
			http.Error(w, "", http.StatusBadGateway)
			return true
		}})
		s.newBrowser(t).signIn().want(503)
		s.wantUp(t, false)
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, s.operator.Bearer()...).WantStatus(t, 200)
		s.provider.SignIn("u1", "ada@acme.example")
	}
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
