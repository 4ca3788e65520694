package companies

import (
	"bufio"
	"bytes"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// startStepUps starts a site with a person who has an identity at acme, and whose sessions begin at
// UNVERIFIED.
func startStepUps(t *testing.T, e *fixture.Environment, environ ...string) (*site, *fixture.Person) {
	t.Helper()
	s := &site{e: e, provider: oidcissuer.StartProvider(t)}
	s.Service = e.Start(t, append(fixture.RegistrySettings(), environ...)...)
	s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *")
	s.want(t, 201, "PUT", providers+"/acme", s.settings("secondFactor", object{"acr": []string{"gold", "platinum"}, "amr": []string{"mfa"}}))
	ada := e.NewPerson(t, "ada@acme.example")
	s.provider.SignIn("u1", "ada@acme.example")
	s.newBrowser(t).signIn().want(200)
	ada.Login(t, s.Service)
	return s, ada
}

// verified returns the claims of a person who has just signed in with a second factor.
func verified(subject string, changes ...any) oidcissuer.Behaviour {
	claims := object{"sub": subject, "acr": "gold", "auth_time": time.Now().Unix()}
	for i := 0; i < len(changes); i += 2 {
		if claims[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(claims, changes[i].(string))
		}
	}
	return oidcissuer.Behaviour{Claims: claims}
}

// stepUp requests a step-up at the company, and returns the challenge.
func (s *site) stepUp(t *testing.T, p *fixture.Person) (challenge object) {
	t.Helper()
	p.PostJSON(t, s.Service, "/auth/step-up/initiate", object{"method": "COMPANY"}).WantStatus(t, 200).Decode(t, &challenge)
	return challenge
}

// wantTrust fails the test unless the session of a person has a trust level.
func (s *site) wantTrust(t *testing.T, p *fixture.Person, level string) {
	t.Helper()
	var session object
	apiclient.Call(t, "GET", s.API+"/auth/session", nil, p.Bearer()...).WantStatus(t, 200).Decode(t, &session)
	if session["trustLevel"] != level {
		t.Errorf("the session is at %v, want %s", session["trustLevel"], level)
	}
}

// TestStepUpAtCompany raises a session, whose person opens the address in any browser, once.
func TestStepUpAtCompany(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s, ada := startStepUps(t, e)
		s.wantTrust(t, ada, "UNVERIFIED")
		challenge := s.stepUp(t, ada)
		address := challenge["url"].(string)
		if challenge["method"] != "COMPANY" || challenge["attemptsRemaining"] != 3.0 || !strings.Contains(address, "code=") {
			t.Errorf("the challenge is %v", challenge)
		}
		b := s.newBrowser(t)
		begun, err := url.Parse(b.location(address, 303))
		must.Succeed(t, err)
		q := begun.Query()
		if q.Get("max_age") != "0" || q.Get("acr_values") != "gold platinum" || q.Get("login_hint") != "ada@acme.example" {
			t.Errorf("the request of the provider is %s", begun)
		}
		s.provider.Behave(verified("u1"))
		callback := b.location(begun.String(), 302)
		s.newBrowser(t).open(callback).want(400, "not begun in this browser") // of another browser
		b.open(callback).want(200, "You are verified")
		s.wantTrust(t, ada, "FULL_TRUST")
		b.open(callback).want(400, "complete already") // replay
		b.open(address).want(400, "used or too old")
		if b.isSignedIn() {
			t.Error("the browser is signed in")
		}
	})
}

// TestRefusedStepUp tries answers that do not raise a session: each takes an attempt away.
func TestRefusedStepUp(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, ada := startStepUps(t, e)
		e.NewPerson(t, "bert@acme.example")
		s.provider.SignIn("u2", "bert@acme.example")
		s.newBrowser(t).signIn().want(200)
		address := ""
		broken := verified("u1")
		broken.Token = func(c map[string]any) { c["nonce"] = "other" }
		for i, test := range []struct {
			name   string
			behave oidcissuer.Behaviour
			text   string
		}{
			{"another person", verified("u2"), "nother person"},
			{"an unknown person", verified("u3", "email", "ada@acme.example"), "nother person"},
			{"no second factor", verified("u1", "acr", "bronze"), "second factor"},
			{"no acr", verified("u1", "acr", nil), "second factor"},
			{"an old sign-in", verified("u1", "auth_time", time.Now().Add(-70*time.Second).Unix()), "sign in again"},
			{"no time", verified("u1", "auth_time", nil), "sign in again"},
			{"a time that is a text", verified("u1", "auth_time", "now"), "sign in again"},
			{"a token of another sign-in", broken, "another sign-in"},
		} {
			if i%3 == 0 { // a challenge has three attempts
				address = s.stepUp(t, ada)["url"].(string)
			}
			s.provider.Behave(test.behave)
			if b := s.newBrowser(t).open(address); b.status != 401 || !strings.Contains(b.body, test.text) {
				t.Errorf("%s: status %d, want 401 with %q: %s", test.name, b.status, test.text, pageText(b.body))
			}
			s.wantTrust(t, ada, "UNVERIFIED")
		}
		if d := s.events(t, "STEP_UP_ATTEMPT")[0]; d["method"] != "COMPANY" || d["reason"] != "invalid_otp" || d["problem"] != "nonce" {
			t.Errorf("the event is %v", d)
		}
		behave := verified("u1")
		behave.Answer = func(v url.Values) { v.Del("code"); v.Set("error", "login_required") }
		s.provider.Behave(behave)
		s.newBrowser(t).open(address).want(403, "login_required")
		s.provider.Behave(verified("u1", "acr", nil, "amr", []string{"pwd", "mfa"}, "auth_time", time.Now().Add(-50*time.Second).Unix()))
		s.newBrowser(t).open(address).want(200, "You are verified")
		s.wantTrust(t, ada, "FULL_TRUST")
	})
}

// TestStepUpAttempts checks that the last attempt of a challenge is the last one, that there are five
// challenges in an hour, and that the methods of other people are not offered.
func TestStepUpAttempts(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, ada := startStepUps(t, e)
		address := s.stepUp(t, ada)["url"].(string)
		late := s.newBrowser(t)
		s.provider.Behave(verified("u1"))
		callback := late.location(late.location(address, 303), 302) // begun before the attempts are used up
		s.provider.Behave(verified("u1", "acr", nil))
		for range 3 {
			s.newBrowser(t).open(address).want(401)
		}
		s.newBrowser(t).open(address).want(429)
		s.provider.Behave(verified("u1"))
		late.open(callback).want(429)
		s.wantTrust(t, ada, "UNVERIFIED")
		for range 4 {
			s.stepUp(t, ada)
		}
		a := ada.PostJSON(t, s.Service, "/auth/step-up/initiate", object{"method": "COMPANY"})
		apiclient.WantAuthError(t, a.WantStatus(t, 429), "rate_limit_exceeded")
		a = apiclient.Call(t, "POST", s.API+"/auth/step-up/initiate", object{"method": "COMPANY"}, s.operator.Bearer()...)
		apiclient.WantAuthError(t, a.WantStatus(t, 400), "validation_error")
		s.want(t, 200, "PUT", providers+"/acme", s.settings())
		a = ada.PostJSON(t, s.Service, "/auth/step-up/initiate", object{"method": "COMPANY"})
		apiclient.WantAuthError(t, a.WantStatus(t, 400), "validation_error")
		s.newBrowser(t).open(address).want(429)
	})
}

// TestStolenStepUp tries to raise a session without the person who has begun it: by the code in the
// address, by the address in the browser of another person, by that of another session, and by an
// address that a victim gets from elsewhere.
func TestStolenStepUp(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, ada := startStepUps(t, e, "TRUSTED_PROXIES=127.0.0.1/32")
		challenge := s.stepUp(t, ada)
		address := challenge["url"].(string)
		u, err := url.Parse(address)
		must.Succeed(t, err)
		a := apiclient.Call(t, "POST", s.API+"/auth/step-up/verify",
			object{"challengeId": challenge["challengeId"], "otp": u.Query().Get("code")})
		apiclient.WantAuthError(t, a.WantStatus(t, 401), "invalid_otp")
		apiclient.Call(t, "POST", s.API+"/auth/step-up/resend",
			object{"challengeId": challenge["challengeId"]}).WantStatus(t, 400)
		s.wantTrust(t, ada, "UNVERIFIED")

		bert := s.newBrowser(t)
		e.NewPerson(t, "bert@example.com")
		bert.api = "http://localhost:" + u.Port()
		bert.post("/console/sign-in", "email", "bert@example.com", "password", fixture.Password).want(200)
		s.provider.Behave(verified("u1"))
		bert.open(address).want(409, "signed in as another person")

		other := s.stepUp(t, ada)["url"].(string)
		swapped := strings.Replace(other, strings.Split(u.Path, "/")[4], strings.Split(mustParse(t, other).Path, "/")[4], 1)
		swapped = strings.Split(swapped, "?")[0] + "?" + u.RawQuery
		s.newBrowser(t).open(swapped).want(400, "wrong, used or too old")
		s.newBrowser(t).open(strings.Replace(address, "code=", "code=x", 1)).want(400)
		s.newBrowser(t).open(strings.Split(address, "?")[0]).want(400)

		victim := s.newBrowser(t)
		victim.from = "203.0.113.9"
		victim.open(address).want(200, "Did you begin this?", "127.0.0.1")
		s.wantTrust(t, ada, "UNVERIFIED")
		victim.open(address+"&go=1").want(200, "Did you begin this?")
		s.wantTrust(t, ada, "UNVERIFIED")
		form := url.Values{"code": {u.Query().Get("code")}}
		victim.postAs("cross-site", strings.Split(address, "?")[0], form).want(403, "another site")
		victim.postTo(strings.Split(address, "?")[0], form).want(200, "Go on")
		s.wantTrust(t, ada, "UNVERIFIED")
		victim.follow("Go on").want(200, "You are verified")
		s.wantTrust(t, ada, "FULL_TRUST")
	})
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	must.Succeed(t, err)
	return u
}

// TestExpiredStepUp checks that an address is good as long as its challenge, and no longer than the
// session.
func TestExpiredStepUp(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, ada := startStepUps(t, e)
		b := s.newBrowser(t)
		address := s.stepUp(t, ada)["url"].(string)
		s.provider.Behave(verified("u1"))
		callback := b.location(b.location(address, 303), 302)
		if _, err := e.OpenDatabase(t).ExecContext(t.Context(), "UPDATE challenges SET expires_at = created_at"); err != nil {
			t.Fatal(err)
		}
		b.open(callback).want(400)
		b.open(address).want(400, "wrong, used or too old")
		s.wantTrust(t, ada, "UNVERIFIED")
		ended := s.stepUp(t, ada)["url"].(string)
		e.RunCommand(t, "", "user", "disable", "--email", ada.Email)
		b.open(ended).want(400)
	})
}

// TestStepUpByCommand checks that the command prints the address, and goes on when the session is
// raised.
func TestStepUpByCommand(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, ada := startStepUps(t, e)
		s.provider.Behave(verified("u1"))
		command := exec.CommandContext(t.Context(), filepath.Join(fixture.BinDir, "tollgate"),
			"login", "--url", s.API, "--email", ada.Email, "--password-stdin", "--step-up", "company", "--output", "json")
		command.Env = append(slices.Clone(s.e.Environ), "TOLLGATE_CREDENTIALS="+filepath.Join(t.TempDir(), "credentials"))
		command.Stdin = strings.NewReader(fixture.Password + "\n")
		var out bytes.Buffer
		command.Stdout = &out
		notes, err := command.StderrPipe()
		if err == nil {
			err = command.Start()
		}
		must.Succeed(t, err)
		lines := bufio.NewScanner(notes)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "http") {
			t.Log(lines.Text())
		}
		s.newBrowser(t).open(lines.Text()).want(200, "You are verified")
		if err := command.Wait(); err != nil || !strings.Contains(out.String(), "FULL_TRUST") {
			t.Errorf("the command prints %s, error %v", &out, err)
		}
	})
}
