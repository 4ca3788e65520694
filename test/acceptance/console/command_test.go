package console

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const approve = "Sign in the command"

var codeOnPage = regexp.MustCompile(`<code>([^<]+)</code>`)

// TestCommandLogin signs the command in by a browser that uses another instance: with a loopback
// address, by a copied code, and refused.
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
		b.WantText("Sign in the tollgate command on this machine?", "Only if you started tollgate login yourself",
			"act as ada@example.com", "once you have verified yourself there with a code")
		b.Press(approve, http.StatusOK).WantText("Go back to the terminal.")
		used := b.Page.URL.Query().Get("code")
		if out, _ := login.End(t, 0); !strings.Contains(out, ada.Email) || !strings.Contains(out, "UNVERIFIED") {
			t.Errorf("the command printed %s", out)
		}
		ada.Run(t, 0, "", "whoami")
		b.Page.URL = nil
		b.Open("/console/account", http.StatusOK).WantText("tollgate-cli on Linux")

		b.Open("/console/step-up", http.StatusOK)
		b.Verify(e, ada.Email, http.StatusOK)
		login = ada.OpenLogin(t) // there, again
		b.Open(login.Path(), http.StatusOK).WantNoText("once you have verified")
		b.Press(approve, http.StatusOK)
		if out, _ := login.End(t, 0); !strings.Contains(out, "FULL_TRUST") {
			t.Errorf("from a session at FULL_TRUST the command printed %s", out)
		}
		if c := ada.Credentials(t); len(c.DeviceTokens) != 1 {
			t.Errorf("the machine has %d tokens of devices", len(c.DeviceTokens))
		}

		login = ada.OpenLogin(t)
		b.Page.URL = nil
		b.Open(login.Path(), http.StatusOK)
		b.Press("Refuse", http.StatusOK)
		if _, stderr := login.End(t, 3); !strings.Contains(stderr, "refused in the browser") {
			t.Errorf("refused: %s", stderr)
		}
		checkCopied(t, e, s, b)
		for _, instance := range []*fixture.Service{s, other} {
			if strings.Contains(instance.Process.Log(), used) {
				t.Error("a code is in the log")
			}
		}
	})
}

// checkCopied signs the command in on another machine. Although the browser is at FULL_TRUST, the
// command is not: whoever reads the code may have begun the sign-in.
func checkCopied(t *testing.T, e *fixture.Environment, s *fixture.Service, b *browser) {
	t.Helper()
	ada := fixture.NewPublisher(t, &fixture.Person{Email: "ada@example.com"})
	login := ada.OpenLogin(t, "--url", s.API, "--no-browser", "--email", " Ada@example.com")
	b.Page.URL = nil
	b.Open(login.Path(), http.StatusOK)
	b.WantText("on another machine?", "do not give it to anybody", "once you have verified")
	b.Press(approve, http.StatusOK)
	if got := b.Page.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("the page with the code has Cache-Control %s", got)
	}
	code := codeOnPage.FindStringSubmatch(b.Page.Body)
	if code == nil {
		t.Fatalf("no code: %s", b.Text())
	}
	fmt.Fprintf(login.Stdin, "  %s \n", code[1])
	if out, _ := login.End(t, 0); strings.Contains(out, "FULL_TRUST") || !strings.Contains(out, ada.Email) {
		t.Errorf("with a copied code the command printed %s", out)
	}
	ada.Run(t, 0, "", "whoami")

	login = ada.OpenLogin(t, "--no-browser")
	b.Open(login.Path(), http.StatusOK)
	b.Press("Refuse", http.StatusOK).WantText("The command is not signed in")
	login.End(t, 3)

	login = ada.OpenLogin(t, "--no-browser", "--email", "eve@example.com")
	b.Open(login.Path(), http.StatusOK)
	b.Press(approve, http.StatusOK)
	fmt.Fprintln(login.Stdin, codeOnPage.FindStringSubmatch(b.Page.Body)[1])
	if _, stderr := login.End(t, 1); !strings.Contains(stderr, "ada@example.com is signed in in the browser") {
		t.Errorf("of another person: %s", stderr)
	}
}

// newCode approves a request in a browser, and returns the code that the command gets.
func newCode(b *browser) string {
	b.T.Helper()
	b.Open(webtest.CommandRequest(), http.StatusOK)
	if got := b.Page.Header.Get("Content-Security-Policy"); !strings.Contains(got, "form-action 'self' http://127.0.0.1:1;") {
		b.T.Errorf("the page has the policy %s", got)
	}
	q := b.Redirected(b.Submission(approve))
	if q.Get("state") != "some-state" || q.Get("code") == "" {
		b.T.Fatalf("the command gets %v", q)
	}
	return q.Get("code")
}

// TestCommandCodes checks what a code is good for.
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
		body := func(code string, changes ...any) map[string]any {
			all := map[string]any{
				"code": code, "codeVerifier": webtest.Verifier, "redirectUri": "http://127.0.0.1:1/callback",
				"deviceInfo": map[string]any{"userAgent": "tollgate-cli (Linux; amd64; 01)"},
			}
			for i := 0; i < len(changes); i += 2 {
				all[changes[i].(string)] = changes[i+1]
			}
			return all
		}
		exchange := func(in map[string]any) apiclient.Response {
			return apiclient.Call(t, "POST", other.API+"/auth/login/code", in)
		}
		code := newCode(b)
		for name, in := range map[string]map[string]any{
			"another verifier":     body(code, "codeVerifier", strings.Repeat("v", 43)),
			"another redirect":     body(code, "redirectUri", "http://127.0.0.1:2/callback"),
			"no redirect":          body(code, "redirectUri", nil),
			"another code":         body("x" + code),
			"of another session":   body(strings.Split(code, ".")[0] + ".b8a1ac7c-30bd-4e9c-9b4d-6d59bd9b5d2f"),
			"without its session":  body(strings.Split(code, ".")[0]),
			"an empty code":        body(" "),
			"a link of other kind": body("bm90LWEtY29kZS1vZi1hLWNvbW1hbmQtYXQtYWxsLi4"),
		} {
			a := exchange(in)
			if a.Status != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", name, a.Status, a.Body)
				continue
			}
			apiclient.WantAuthError(t, a, "invalid_credentials")
		}
		apiclient.WantAuthError(t, exchange(body(code, "codeVerifier", "short")).WantStatus(t, 400), "validation_error")
		apiclient.WantAuthError(t, exchange(body(code, "deviceInfo", 1)).WantStatus(t, 400), "invalid_input")
		apiclient.Call(t, "POST", other.API+"/auth/login/code", strings.Repeat("x", 1<<20)).WantStatus(t, 413)
		apiclient.Call(t, "POST", other.API+"/auth/login/code", "x", "Content-Type", "text/plain").WantStatus(t, 415)

		answers := fixture.CallInParallel(t, 8, func(i int) (apiclient.Response, error) {
			to := s
			if i%2 == 0 {
				to = other
			}
			return apiclient.TryCall("POST", to.API+"/auth/login/code", body(code))
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

		expired := newCode(b)
		past := "0"
		if e.Shared {
			past = "now() - interval '1 second'"
		}
		if _, err := e.OpenDatabase(t).ExecContext(t.Context(),
			"UPDATE links SET expires_at = "+past+" WHERE purpose = 'command'"); err != nil {
			t.Fatal(err)
		}
		apiclient.WantAuthError(t, exchange(body(expired)).WantStatus(t, 401), "invalid_credentials")

		late := newCode(b)
		b.Open("/console/account", http.StatusOK)
		b.Press("Sign out", http.StatusOK)
		apiclient.WantAuthError(t, exchange(body(late)).WantStatus(t, 401), "invalid_credentials")
	})
}
