package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const approve = "Sign in the command"

// TestCommandLogin signs the command in by a browser that uses another instance.
func TestCommandLogin(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(e.Environ, fixture.RiskPolicy("relaxed"))
		s := e.Start(t)
		other := s
		if e.Shared {
			other = e.Start(t)
		}
		ada := fixture.NewPublisher(t, e.NewPerson(t, "ada@example.com"))
		b := newBrowser(t, other)

		login := ada.OpenLogin(t, "--url", s.API)
		b.Open(login.Path(), http.StatusOK)
		b.Press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		b.WantText("Sign in the tollgate command?", "Go on only if you started tollgate login yourself", ada.Email, "Verify yourself first")
		b.Press("Sign in with less", http.StatusOK).WantText("Go back to the terminal.")
		if out, _ := login.End(t, 0); !strings.Contains(out, ada.Email) || !strings.Contains(out, "UNVERIFIED") {
			t.Errorf("the command printed %s", out)
		}
		ada.Run(t, 0, "", "whoami")
		b.Page.URL = nil
		b.Open("/console/account", http.StatusOK).WantText("tollgate-cli on Linux")

		b.Open("/console/step-up", http.StatusOK)
		b.Verify(e, ada.Email, http.StatusOK)
		login = ada.OpenLogin(t, "--no-browser", "--email", " Ada@example.com") // there, again
		b.Open(login.Path(), http.StatusOK).WantNoText("Verify yourself first")
		b.Press(approve, http.StatusOK)
		if out, _ := login.End(t, 0); !strings.Contains(out, "FULL_TRUST") {
			t.Errorf("from a session at FULL_TRUST the command printed %s", out)
		}
		if c := ada.Credentials(t); len(c.DeviceTokens) != 1 {
			t.Errorf("the machine has %d tokens of devices", len(c.DeviceTokens))
		}

		login = ada.OpenLogin(t)
		b.Open(login.Path(), http.StatusOK)
		b.Press("Refuse", http.StatusOK).WantText("The command is not signed in")
		if _, stderr := login.End(t, 3); !strings.Contains(stderr, "refused in the browser") {
			t.Errorf("refused: %s", stderr)
		}
		login = ada.OpenLogin(t, "--no-browser", "--email", "eve@example.com")
		b.Open(login.Path(), http.StatusOK)
		b.Press(approve, http.StatusOK)
		if _, stderr := login.End(t, 1); !strings.Contains(stderr, "ada@example.com is signed in in the browser") {
			t.Errorf("of another person: %s", stderr)
		}
	})
}

// TestCommandCodes checks what the secret of a command is good for, on all instances.
func TestCommandCodes(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(e.Environ, fixture.RiskPolicy("relaxed"))
		s := e.Start(t)
		other := s
		if e.Shared {
			other = e.Start(t)
		}
		b := newBrowser(t, s)
		b.SignIn(e.NewPerson(t, "ada@example.com").Email, fixture.Password)
		c := fixture.BeginCommand(t, other.API)
		poll := func(code any) apiclient.Response {
			body := c.Body()
			body["deviceCode"] = code
			return apiclient.Call(t, "POST", other.API+"/auth/login/code", body)
		}
		apiclient.WantAuthError(t, c.Poll(t, s.API).WantStatus(t, 400), "authorization_pending")
		apiclient.WantAuthError(t, c.Poll(t, other.API).WantStatus(t, 400), "slow_down")
		for _, code := range []string{c.UserCode, "." + c.UserCode, "x" + c.DeviceCode, strings.Split(c.DeviceCode, ".")[0], " "} {
			apiclient.WantAuthError(t, poll(code).WantStatus(t, 401), "invalid_credentials")
		}
		for _, path := range []string{"/auth/login/code", "/auth/login/device"} {
			apiclient.WantAuthError(t, apiclient.Call(t, "POST", other.API+path, map[string]any{
				"deviceCode": "x", "deviceInfo": map[string]any{"userAgent": strings.Repeat("x", 513)},
			}).WantStatus(t, 400), "validation_error")
			apiclient.Call(t, "POST", other.API+path, strings.Repeat("x", 1<<20)).WantStatus(t, 413)
			apiclient.Call(t, "POST", other.API+path, "x", "Content-Type", "text/plain").WantStatus(t, 415)
		}
		refused := fixture.BeginCommand(t, s.API)
		b.Open(refused.Path(), http.StatusOK)
		b.Press("Refuse", http.StatusOK)
		apiclient.WantAuthError(t, refused.Poll(t, s.API).WantStatus(t, 403), "access_denied")
		approveCommand(b, c)
		answers := fixture.CallInParallel(t, 8, func(i int) (apiclient.Response, error) {
			to := s
			if i%2 == 0 {
				to = other
			}
			return apiclient.TryCall("POST", to.API+"/auth/login/code", c.Body())
		})
		var good []apiclient.Response
		for _, a := range answers {
			if a.Status == http.StatusOK {
				good = append(good, a)
			}
		}
		if len(good) != 1 {
			t.Fatalf("one code was accepted %d times", len(good))
		}
		var got struct{ AccessToken, Email, TrustLevel string }
		if good[0].Decode(t, &got); got.Email != "ada@example.com" || got.TrustLevel != "UNVERIFIED" {
			t.Errorf("the command gets %+v", got)
		}
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, "Authorization", "Bearer "+got.AccessToken).WantStatus(t, 200)

		expired := fixture.BeginCommand(t, s.API)
		approveCommand(b, expired)
		past := "0"
		if e.Shared {
			past = "now() - interval '1 second'"
		}
		if _, err := e.OpenDatabase(t).ExecContext(t.Context(),
			"UPDATE links SET expires_at = "+past+" WHERE purpose = 'command'"); err != nil {
			t.Fatal(err)
		}
		apiclient.WantAuthError(t, expired.Poll(t, s.API).WantStatus(t, 401), "invalid_credentials")

		late := fixture.BeginCommand(t, s.API)
		approveCommand(b, late)
		b.Open("/console/account", http.StatusOK)
		b.Press("Sign out", http.StatusOK)
		apiclient.WantAuthError(t, late.Poll(t, s.API).WantStatus(t, 401), "invalid_credentials")
		for _, instance := range []*fixture.Service{s, other} {
			if log := instance.Process.Log(); strings.Contains(log, c.DeviceCode[:43]) || strings.Contains(log, c.UserCode) {
				t.Error("a code is in the log")
			}
		}
	})
}

// approveCommand gives a command a session with less than full trust.
func approveCommand(b *browser, c fixture.Command) {
	b.T.Helper()
	b.Open(c.Path(), http.StatusOK)
	b.Press("Sign in with less", http.StatusOK)
}
