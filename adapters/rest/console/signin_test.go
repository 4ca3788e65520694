package console

import (
	"bufio"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// TestRoot checks that browsers are led to the console, and that nothing changes for other clients.
func TestRoot(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		b := newBrowser(t, s)
		b.open("/", http.StatusOK)
		b.wantPath("/console/")
		b.wantText("Nothing is published yet.")
		a := apiclient.Call(t, "GET", s.API+"/", nil).WantStatus(t, http.StatusNotFound)
		if got := string(a.Body); got != `{"error":"no such path; the API is described at /docs"}` {
			t.Errorf("an API client gets %s", got)
		}
		b.open("/console", http.StatusOK)
		b.wantPath("/console/")
		b.open("/console/nothing", http.StatusNotFound)
		b.wantText("Not found", "All servers", "Sign in")
		b.signIn(e.NewPerson(t, "ada@example.com"))
		b.open("/console/nothing", http.StatusNotFound)
		b.wantText("Not found", "My servers", "ada@example.com")
	})
}

// TestConsoleOff checks that the pages can be switched off, and run without sign-in.
func TestConsoleOff(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	off := newBrowser(t, e.Start(t, "CONSOLE=off"))
	off.open("/", http.StatusNotFound)
	off.open("/console/", http.StatusNotFound)
	process, err := instance.Start(filepath.Join(fixture.BinDir, "tollgate"), e.Environ, "serve", "--only",
		"registry,console")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	alone := newBrowser(t, &fixture.Service{T: t, API: "http://" + process.API})
	alone.open("/console/", http.StatusOK)
	alone.wantNoText("Sign in", "Publish")
	alone.open("/console/connect", http.StatusOK)
	alone.open("/console/sign-in", http.StatusNotFound)
	if _, stderr, code := e.TryCommand(t, "", "serve", "--only", "console"); code == 0 ||
		!strings.Contains(stderr, "--only: the part console needs the part registry") {
		t.Errorf("the console without the registry: %d, %s", code, stderr)
	}
}

// TestSignIn checks the way in and out: wrong passwords, the page to come back to, the cookies.
func TestSignIn(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com")
		b := newBrowser(t, s)
		b.open("/console/account?done=session", http.StatusOK)
		b.wantPath("/console/sign-in?next=" + url.QueryEscape("/console/account?done=session"))
		b.press("Sign in", http.StatusUnprocessableEntity, "email", "ada@example.com", "password", "wrong")
		b.wantText("E-mail address or password is wrong.")
		if b.field("email") != "ada@example.com" || b.field("password") != "" {
			t.Errorf("the form has the e-mail address %q and the password %q", b.field("email"), b.field("password"))
		}
		b.press("Sign in", http.StatusUnprocessableEntity, "email", "nobody@example.com", "password", "wrong")
		b.wantText("E-mail address or password is wrong.")
		b.press("Sign in", http.StatusUnprocessableEntity, "email", "nonsense", "password", "x")
		b.wantText("E-mail address must be an e-mail address.")
		b.press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		b.wantPath("/console/account?done=session")
		b.wantText("ada@example.com", "not verified on this device yet", "Not verified.",
			"New device: no code was entered on it yet.")
		checkCookie(t, b)

		before := b.client.Jar.Cookies(b.page.url)
		b.press("Sign out", http.StatusOK)
		b.wantText("Sign in")
		if left := b.client.Jar.Cookies(b.page.url); len(left) != 0 {
			t.Errorf("cookies after the sign-out: %v", left)
		}
		b.client.Jar.SetCookies(b.page.url, before)
		b.open("/console/account", http.StatusOK)
		b.wantPath("/console/sign-in?next=%2Fconsole%2Faccount")
	})
}

// TestHighRisk checks that a session at HIGH_RISK can only sign out, and that the page says so.
func TestHighRisk(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewPerson(t, "ada@example.com", "publish *", "operate *")
		ada.Login(t, s)
		ada.Login(t, s)
		b := newBrowser(t, s)
		b.open("/console/sign-in", http.StatusOK)
		b.press("Sign in", http.StatusUnprocessableEntity, "email", ada.Email, "password", "wrong")
		b.press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		b.wantNoText("My servers", "Operator")
		b.wantText("This sign-in looks risky, so it may do nothing. Sign out, and sign in from a device that you have used before.")
		for _, page := range []string{
			"/console/account", "/console/account/log", "/console/publish", "/console/own", "/console/reviews",
			"/console/operator", "/console/operator/people",
		} {
			b.open(page, http.StatusForbidden)
			b.wantNoText("Send a code")
		}
		b.open("/console/", http.StatusOK)
		b.press("Sign out", http.StatusOK)
		b.wantText("Sign in")
	})
}

// TestAddressAtTheStart checks that the log names the address of the console at a terminal, and
// only there.
func TestAddressAtTheStart(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	cmd := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), "serve")
	cmd.Env = e.Environ
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it is alive until now
		_ = cmd.Wait()         // it was killed
		terminal.Close()
	})
	lines := bufio.NewScanner(terminal)
	address := regexp.MustCompile(`http://localhost:\d+/console/`)
	found := ""
	for found == "" && lines.Scan() {
		if strings.Contains(lines.Text(), "tollgate is ready") {
			found = address.FindString(lines.Text())
			if found == "" {
				t.Fatalf("the log does not name the console: %s", lines.Text())
			}
		}
	}
	b := newBrowser(t, &fixture.Service{T: t, API: strings.TrimSuffix(found, "/console/")})
	b.open("/console/", http.StatusOK)
	s := e.Start(t, "DATA_DIR="+t.TempDir())
	s.Stop()
	if strings.Contains(s.Process.Log(), "console=") {
		t.Errorf("without a terminal the log names the console:\n%s", s.Process.Log())
	}
}

// checkCookie checks the session cookie of a browser, and that no page has its value or a token.
func checkCookie(t *testing.T, b *browser) {
	t.Helper()
	cookies := b.client.Jar.Cookies(b.page.url)
	if len(cookies) != 1 || cookies[0].Name != "tollgate" || len(cookies[0].Value) != 43 {
		t.Fatalf("the cookies are %v", cookies)
	}
	if strings.Contains(b.page.body, cookies[0].Value) || strings.Contains(b.page.body, "eyJ") {
		t.Error("the page has the value of the cookie, or a token")
	}
	if got := b.page.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q", got)
	}
}

// checkDeviceCookie checks that the browser has a device cookie, for the pages of the console
// alone.
func checkDeviceCookie(t *testing.T, b *browser) {
	t.Helper()
	for path, want := range map[string]bool{
		"/console/account": true, "/console": true, "/": false, "/auth/login": false,
	} {
		u := *b.page.url
		u.Path = path
		has := slices.ContainsFunc(b.client.Jar.Cookies(&u), func(c *http.Cookie) bool {
			return c.Name == "tollgate_device"
		})
		if has != want {
			t.Errorf("the browser sends the device cookie to %s: %t", path, has)
		}
	}
}

// TestNoOpenRedirect checks that a sign-in leads to pages of the console only.
func TestNoOpenRedirect(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	ada := e.NewPerson(t, "ada@example.com")
	for _, next := range []string{
		"https://evil.example/", "//evil.example/", `/\evil.example/`, "/console/../../evil", "/console//../x",
		"javascript:alert(1)", "/v0.1/servers",
		"/console/\n//evil.example", "http:/console/", "/console",
	} {
		b := newBrowser(t, s)
		b.open("/console/sign-in?next="+url.QueryEscape(next), http.StatusOK)
		b.press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		b.wantPath("/console/")
	}
}

// TestSecureCookie checks the cookies over TLS, and that there is no cookie over plain HTTP
// elsewhere.
func TestSecureCookie(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, "TRUSTED_PROXIES=127.0.0.1/32")
	ada := e.NewPerson(t, "ada@example.com")
	send := func(host, proto string) (*http.Response, string) {
		b := newBrowser(t, s)
		b.open("/console/sign-in", http.StatusOK)
		r := b.submission("Sign in", "email", ada.Email, "password", fixture.Password)
		r.Host = host
		r.Header.Set("Origin", proto+"://"+host)
		r.Header.Set("X-Forwarded-Proto", proto)
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response, strings.Join(response.Header.Values("Set-Cookie"), "\n")
	}
	response, cookie := send("tools.example.com", "https")
	if got := response.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("the response with the cookie has Cache-Control %q", got)
	}
	lower := strings.ToLower(cookie)
	if response.StatusCode != http.StatusSeeOther || !strings.HasPrefix(cookie, "__Host-tollgate=") {
		t.Fatalf("over TLS the status is %d and the cookie %s", response.StatusCode, cookie)
	}
	for _, flag := range []string{"path=/;", "secure", "httponly", "samesite=lax"} {
		if !strings.Contains(lower, flag) {
			t.Errorf("the cookie does not have %s: %s", flag, cookie)
		}
	}
	if strings.Contains(lower, "domain=") {
		t.Errorf("the cookie has a domain: %s", cookie)
	}
	if response, cookie := send("tools.example.com", "http"); response.StatusCode != http.StatusOK || cookie != "" {
		t.Errorf("over plain HTTP elsewhere the status is %d and the cookie %q", response.StatusCode, cookie)
	}
	for _, host := range []string{"localhost", "127.0.0.1:3000", "[::1]:3000"} {
		if _, cookie := send(host, "http"); !strings.HasPrefix(cookie, "tollgate=") ||
			strings.Contains(strings.ToLower(cookie), "secure") {
			t.Errorf("at %s the cookie is %s", host, cookie)
		}
	}
	for _, host := range []string{"localhost.evil.example", "127.0.0.1.example.com", "192.0.2.1"} {
		if _, cookie := send(host, "http"); cookie != "" {
			t.Errorf("at %s the cookie is %s", host, cookie)
		}
	}
}

// TestSecondFactor checks the sign-in with an authenticator app.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com")
		app := e.EnrolAuthenticator(t, ada)
		b := newBrowser(t, s)
		b.open("/console/sign-in?next=/console/account", http.StatusOK)
		b.press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		b.wantText("Second factor")
		b.follow("Start again", http.StatusOK)
		b.wantPath("/console/sign-in?next=%2Fconsole%2Faccount")
		b.press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		b.press("Continue", http.StatusUnprocessableEntity, "code", "000000")
		b.wantText("There is a problem")
		b.press("Continue", http.StatusOK, "code", app.Code(t, 1))
		b.wantPath("/console/account")
		b.wantText("Authenticator app On")
		b.wantText("Full trust. It may do everything that you may do.")

		trusting := newBrowser(t, s)
		trusting.open("/console/sign-in?next=/console/account", http.StatusOK)
		trusting.press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		trusting.wantText("Trust this browser")
		trusting.press("Continue", http.StatusOK, "code", app.Recovery[0], "step-up.trust", "on")
		trusting.wantPath("/console/account")
		trusting.wantText("Trusted")
	})
}

// TestSessionsEndTogether checks that the cookie is the same session as that of the API: it ends
// with it, on each instance.
func TestSessionsEndTogether(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		one, other := e.Start(t), e.Start(t)
		ada := e.NewWriter(t, one, "ada@example.com")
		b, elsewhere := newBrowser(t, one), newBrowser(t, other)
		b.signIn(ada)
		elsewhere.client.Jar = b.client.Jar // cookies do not depend on the port
		elsewhere.open("/console/account", http.StatusOK)
		elsewhere.wantPath("/console/account")

		b.open("/console/step-up?next=/console/account", http.StatusOK)
		b.verify(e, ada, http.StatusOK)
		b.wantPath("/console/account")
		b.wantText("Full trust.", "Full trust A code was entered.")
		elsewhere.open("/console/account", http.StatusOK)
		elsewhere.wantText("Full trust.")

		var listed struct{ Sessions []struct{ ID string } }
		apiclient.Call(t, "GET", one.API+"/sessions", nil, ada.Bearer()...).WantStatus(t, http.StatusOK).
			Decode(t, &listed)
		own, _ := fixture.ReadSession(t, one, ada)
		for _, session := range listed.Sessions {
			if session.ID != own {
				apiclient.Call(t, "DELETE", one.API+"/sessions/"+session.ID, nil, ada.Bearer()...).WantStatus(t,
					http.StatusOK)
			}
		}
		b.open("/console/account", http.StatusOK)
		b.wantPath("/console/sign-in?next=%2Fconsole%2Faccount")
	})
}

// TestSessionEndsMeanwhile checks what happens to a form that is sent after the session has ended:
// it leads to the sign-in, which says so and leads back to the page of the form.
func TestSessionEndsMeanwhile(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewPerson(t, "ada@example.com", "publish *")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.open("/console/publish", http.StatusOK)
		publish := b.submission("Publish", "document", goodDocument)
		publish.Header.Set("Referer", b.base+"/console/publish")
		b.open("/console/step-up?next=/console/own", http.StatusOK)
		send := b.submission("Send a code to a…@example.com")
		old, other := b.cookie(), newBrowser(t, s)
		other.client.Jar.SetCookies(b.page.url, b.client.Jar.Cookies(b.page.url))
		other.open("/console/", http.StatusOK)
		other.press("Sign out", http.StatusOK)
		b.send(publish, http.StatusOK)
		b.wantPath("/console/sign-in?next=%2Fconsole%2Fpublish&ended=1")
		b.wantText("Your session has ended, and the form was not accepted.")
		if b.cookie() != old { // another tab may have a new one
			t.Error("a request with an old cookie removes the cookie")
		}
		b.send(send, http.StatusOK)
		b.wantPath("/console/sign-in?next=%2Fconsole%2Fown")
		b.open("/console/step-up?next=/console/own", http.StatusOK)
		b.wantPath("/console/sign-in?next=%2Fconsole%2Fown")
		b.press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
		b.wantPath("/console/own")
	})
}

// TestActAddresses opens the addresses of forms, as from the history of a browser: each leads to
// its page.
func TestActAddresses(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, fixture.RegistrySettings()...)
	b := newOperator(t, e, s)
	for address, page := range map[string]string{
		"/sign-out": "/", "/account/sessions/1/end": "/account", "/account/devices/1/revoke": "/account",
		"/account/devices/1/name":  "/account",
		"/account/devices/1/trust": "/account", "/account/authenticator/activate": "/account/authenticator",
		"/account/authenticator/disable": "/account/authenticator", "/account/authenticator/another": "/account/authenticator",
		"/account/authenticator/another/activate": "/account/authenticator", "/account/authenticator/codes": "/account/authenticator",
		"/account/authenticator/remove": "/account/authenticator",
		"/step-up/send":                 "/step-up", "/step-up/verify": "/step-up", "/step-up/resend": "/step-up",
		"/operator/people/bea%40example.com/lock": "/operator/people/bea%40example.com",
		"/operator/grants/remove":                 "/operator/grants",
		"/operator/policies/1/remove":             "/operator/policies", "/operator/views/x/remove": "/operator/views",
		"/operator/webhooks/1/remove":    "/operator/webhooks",
		"/operator/webhooks/1/redeliver": "/operator/webhooks",
	} {
		b.open("/console"+address, http.StatusOK)
		b.wantPath("/console" + page)
	}
	for _, form := range []string{
		"/account/sessions/1/end", "/account/devices/1/revoke", "/account/devices/1/name",
		"/operator/policies/1/remove",
	} {
		b.send(b.request(http.MethodPost, "/console"+form, nil, "application/x-www-form-urlencoded"),
			http.StatusNotFound)
	}
	b.open("/console/own/com.example/unknown/status", http.StatusNotFound)
	b.wantPath("/console/own/com.example/unknown")
	b.open("/console/reviews/00000000-0000-4000-8000-000000000000/decide", http.StatusNotFound)
	b.wantPath("/console/reviews/00000000-0000-4000-8000-000000000000")
	b.open("/console/quarantine/release", http.StatusForbidden)
	b.wantPath("/console/quarantine")
}

// TestCookieRotation checks that the cookie from before a step-up is dead after it.
func TestCookieRotation(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com")
		b, thief := newBrowser(t, s), newBrowser(t, s)
		b.signIn(ada)
		stolen := b.client.Jar.Cookies(b.page.url)
		b.open("/console/step-up", http.StatusOK)
		b.wantText("New device: no code was entered on it yet.")
		b.press("Send a code to a…@example.com", http.StatusOK)
		b.press("Verify", http.StatusUnprocessableEntity, "step-up.code", "00000x")
		b.wantText("The code is wrong.")
		gone := b.submission("Send a new code", "step-up.challenge", "00000000-0000-4000-8000-000000000000")
		b.send(gone, http.StatusUnprocessableEntity)
		b.wantText("This code cannot be used any more. Get a new one.")
		b.press("Send a code to a…@example.com", http.StatusOK)
		b.press("Send a new code", http.StatusOK)
		b.wantText("A new code was sent.")
		b.press("Verify", http.StatusOK, "step-up.code", e.LastCode(t, ada.Email))
		b.wantPath("/console/")
		checkDeviceCookie(t, b)
		thief.client.Jar.SetCookies(b.page.url, stolen)
		thief.open("/console/account", http.StatusOK)
		thief.wantText("E-mail address Password")
		// The browser is known from now on, and gets more trust.
		b.press("Sign out", http.StatusOK)
		b.signIn(ada)
		b.open("/console/account", http.StatusOK)
		b.wantText("Limited trust.", "This session may not change the registry yet.",
			"The device is verified, but not marked as trusted.")
	})
}
