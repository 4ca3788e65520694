package console

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

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
		b.open(login.Path(), http.StatusOK)
		b.press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		b.wantText("Sign in the tollgate command on this machine?", "Only if you started tollgate login yourself",
			"act as ada@example.com", "once you have verified yourself there with a code")
		b.press(approve, http.StatusOK)
		b.wantText("Go back to the terminal.")
		used := b.page.url.Query().Get("code")
		if out, _ := login.End(t, 0); !strings.Contains(out, ada.Email) || !strings.Contains(out, "UNVERIFIED") {
			t.Errorf("the command printed %s", out)
		}
		ada.Run(t, 0, "", "whoami")
		b.page.url = nil
		b.open("/console/account", http.StatusOK)
		b.wantText("tollgate-cli on Linux")

		b.open("/console/step-up", http.StatusOK)
		b.verify(e, ada.Person, http.StatusOK)
		login = ada.OpenLogin(t) // there, again
		b.open(login.Path(), http.StatusOK)
		b.wantNoText("once you have verified")
		b.press(approve, http.StatusOK)
		if out, _ := login.End(t, 0); !strings.Contains(out, "FULL_TRUST") {
			t.Errorf("from a session at FULL_TRUST the command printed %s", out)
		}
		if c := ada.Credentials(t); len(c.DeviceTokens) != 1 {
			t.Errorf("the machine has %d tokens of devices", len(c.DeviceTokens))
		}

		login = ada.OpenLogin(t)
		b.page.url = nil
		b.open(login.Path(), http.StatusOK)
		b.press("Refuse", http.StatusOK)
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
	b.page.url = nil
	b.open(login.Path(), http.StatusOK)
	b.wantText("on another machine?", "do not give it to anybody", "once you have verified")
	b.press(approve, http.StatusOK)
	if got := b.page.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("the page with the code has Cache-Control %s", got)
	}
	code := codeOnPage.FindStringSubmatch(b.page.body)
	if code == nil {
		t.Fatalf("no code: %s", b.text())
	}
	fmt.Fprintf(login.Stdin, "  %s \n", code[1])
	if out, _ := login.End(t, 0); strings.Contains(out, "FULL_TRUST") || !strings.Contains(out, ada.Email) {
		t.Errorf("with a copied code the command printed %s", out)
	}
	ada.Run(t, 0, "", "whoami")

	login = ada.OpenLogin(t, "--no-browser")
	b.open(login.Path(), http.StatusOK)
	b.press("Refuse", http.StatusOK)
	b.wantText("The command is not signed in")
	login.End(t, 3)

	login = ada.OpenLogin(t, "--no-browser", "--email", "eve@example.com")
	b.open(login.Path(), http.StatusOK)
	b.press(approve, http.StatusOK)
	fmt.Fprintln(login.Stdin, codeOnPage.FindStringSubmatch(b.page.body)[1])
	if _, stderr := login.End(t, 1); !strings.Contains(stderr, "ada@example.com is signed in in the browser") {
		t.Errorf("of another person: %s", stderr)
	}
}

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

// request returns the address of the page with a request, of which some parameters are changed.
func request(changes ...string) string {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"redirect_uri": {"http://127.0.0.1:1/callback"}, "state": {"some-state"},
	}
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return "/console/sign-in/command?" + q.Encode()
}

// newCode approves a request in a browser, and returns the code that the command gets.
func (b *browser) newCode() string {
	b.t.Helper()
	b.open(request(), http.StatusOK)
	if got := b.page.header.Get("Content-Security-Policy"); !strings.Contains(got, "form-action 'self' http://127.0.0.1:1;") {
		b.t.Errorf("the page has the policy %s", got)
	}
	q := b.redirected(b.submission(approve))
	if q.Get("state") != "some-state" || q.Get("code") == "" {
		b.t.Fatalf("the command gets %v", q)
	}
	return q.Get("code")
}

// redirected sends a request, and returns the parameters with which its answer leads to the command.
func (b *browser) redirected(r *http.Request) url.Values {
	b.t.Helper()
	once := &http.Client{Jar: b.client.Jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := once.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = response.Body.Close()
	to, err := response.Location()
	if err != nil || to.Host != "127.0.0.1:1" || response.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("status %d, location %v, error %v", response.StatusCode, to, err)
	}
	return to.Query()
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
		b.signIn(e.NewPerson(t, "ada@example.com"))
		body := func(code string, changes ...any) map[string]any {
			all := map[string]any{
				"code": code, "codeVerifier": verifier, "redirectUri": "http://127.0.0.1:1/callback",
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
		code := b.newCode()
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

		expired := b.newCode()
		past := "0"
		if e.Shared {
			past = "now() - interval '1 second'"
		}
		if _, err := e.OpenDatabase(t).ExecContext(t.Context(),
			"UPDATE links SET expires_at = "+past+" WHERE purpose = 'command'"); err != nil {
			t.Fatal(err)
		}
		apiclient.WantAuthError(t, exchange(body(expired)).WantStatus(t, 401), "invalid_credentials")

		late := b.newCode()
		b.open("/console/account", http.StatusOK)
		b.press("Sign out", http.StatusOK)
		apiclient.WantAuthError(t, exchange(body(late)).WantStatus(t, 401), "invalid_credentials")
	})
}

// TestCommandRequests checks which requests the page refuses, and who may approve one.
func TestCommandRequests(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(e.Environ, fixture.RiskPolicy("relaxed"))
	s := e.Start(t, "AUTH_RATE_LIMIT=20")
	b := newBrowser(t, s)
	b.signIn(e.NewPerson(t, "ada@example.com"))
	for name, address := range map[string]string{
		"a name":            request("redirect_uri", "http://localhost:1/callback"),
		"another machine":   request("redirect_uri", "http://192.0.2.1:1/callback"),
		"a name like it":    request("redirect_uri", "http://127.0.0.1.example.com:1/"),
		"with a user":       request("redirect_uri", "http://127.0.0.1:1@example.com/"),
		"with a backslash":  request("redirect_uri", `http://example.com\@127.0.0.1:1/`),
		"without a port":    request("redirect_uri", "http://127.0.0.1/callback"),
		"the port 0":        request("redirect_uri", "http://127.0.0.1:0/callback"),
		"https":             request("redirect_uri", "https://127.0.0.1:1/callback"),
		"a scheme":          request("redirect_uri", "javascript:alert(1)"),
		"with a query":      request("redirect_uri", "http://127.0.0.1:1/callback?x=y"),
		"with a fragment":   request("redirect_uri", "http://127.0.0.1:1/callback#x"),
		"long":              request("redirect_uri", "http://127.0.0.1:1/"+strings.Repeat("x", 100)),
		"a plain challenge": request("code_challenge_method", "plain"),
		"no method":         request("code_challenge_method", ""),
		"no challenge":      request("code_challenge", ""),
		"a long challenge":  request("code_challenge", strings.Repeat("x", 44)),
		"no state":          request("state", ""),
		"markup in state":   request("state", "<script>"),
	} {
		if b.open(address, http.StatusBadRequest); b.page.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, b.page.status)
		}
	}
	b.open(request("redirect_uri", "http://[::1]:1/callback"), http.StatusOK)
	b.open(request("redirect_uri", "http://127.0.0.1:1"), http.StatusOK)

	b.open(request(), http.StatusOK)
	foreign := b.submission(approve)
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	foreign.Header.Set("Origin", "https://evil.example")
	b.send(foreign, http.StatusForbidden)
	b.open(request(), http.StatusOK)
	if q := b.redirected(b.submission("Refuse")); q.Get("error") != "access_denied" || q.Get("state") != "some-state" || q.Has("code") {
		t.Errorf("refused, the command gets %v", q)
	}
	changed := b.submission(approve, "redirect_uri", "http://192.0.2.1:1/callback")
	b.send(changed, http.StatusUnprocessableEntity)

	b.open(request(), http.StatusOK)
	late := b.submission(approve)
	b.press("Sign out", http.StatusOK)
	b.send(late, http.StatusOK)
	b.wantText("Sign in", "Your session has ended")

	b.signIn(&fixture.Person{Email: "ada@example.com"})
	b.open(request(), http.StatusOK)
	for range 20 {
		b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, err := b.client.Do(b.submission(approve))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("codes are not limited")
}
