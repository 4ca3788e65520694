package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRoot checks that browsers are led to the console, and that nothing changes for other clients.
func TestRoot(t *testing.T) {
	e, s := start(t)
	b := newBrowser(t, s)
	b.Open("/", http.StatusOK).WantPath("/console/").WantText("Nothing is published yet.")
	a := apiclient.Call(t, "GET", s.API+"/", nil).WantStatus(t, http.StatusNotFound)
	if got := string(a.Body); got != `{"error":"no such path; the API is described at /docs"}` {
		t.Errorf("an API client gets %s", got)
	}
	b.Open("/console", http.StatusOK).WantPath("/console/")
	b.Open("/console/nothing", http.StatusNotFound).WantText("Not found", "All servers", "Sign in")
	b.signIn(e.NewPerson(t, "ada@example.com"))
	b.Open("/console/nothing", http.StatusNotFound).WantText("Not found", "My servers", "ada@example.com")
}

// TestConsoleOff checks that the pages can be switched off.
func TestConsoleOff(t *testing.T) {
	_, s := start(t, "CONSOLE=off")
	b := newBrowser(t, s)
	b.Open("/", http.StatusNotFound)
	b.Open("/console/", http.StatusNotFound)
}

// TestSignIn checks the way in and out: wrong passwords, the page to come back to, the cookies.
func TestSignIn(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com")
	b := newBrowser(t, s)
	b.Open("/console/account?done=session", http.StatusOK)
	b.WantPath("/console/sign-in?next=" + url.QueryEscape("/console/account?done=session"))
	b.Press("Sign in", http.StatusUnprocessableEntity, "email", "ada@example.com", "password", "wrong")
	b.WantText("E-mail address or password is wrong.").WantFields("email", "ada@example.com", "password", "")
	b.Press("Sign in", http.StatusUnprocessableEntity, "email", "nobody@example.com", "password", "wrong")
	b.WantText("E-mail address or password is wrong.")
	b.Press("Sign in", http.StatusUnprocessableEntity, "email", "nonsense", "password", "x")
	b.WantText("E-mail address must be an e-mail address.")
	b.Press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
	b.WantPath("/console/account?done=session")
	b.WantText("ada@example.com", "not verified on this device yet", "Not verified.",
		"New device: no code was entered on it yet.")
	checkCookie(t, b)

	before := b.Client.Jar.Cookies(b.Page.URL)
	b.Press("Sign out", http.StatusOK).WantText("Sign in")
	if left := b.Client.Jar.Cookies(b.Page.URL); len(left) != 0 {
		t.Errorf("cookies after the sign-out: %v", left)
	}
	b.Client.Jar.SetCookies(b.Page.URL, before)
	b.Open("/console/account", http.StatusOK).WantPath("/console/sign-in?next=%2Fconsole%2Faccount")
}

// TestSignInsOfAnOffice: people behind one address sign in one after the other, and do not use up its limit. Wrong
// passwords do, and so does one account that signs in again and again. The page says until when, and operators see it.
func TestSignInsOfAnOffice(t *testing.T) {
	e, s := start(t, "AUTH_RATE_LIMIT=15", "RATE_LIMIT_WINDOW=720h")
	olga := newVerified(t, e, s, "olga@example.com", "operate *")
	olga.Open("/console/operator", http.StatusOK).WantNoText("AUTH_RATE_LIMIT")
	form := func(email, password string, status int) *browser {
		b := newBrowser(t, s)
		b.Open("/console/sign-in", http.StatusOK)
		b.Press("Sign in", status, "email", email, "password", password)
		return b
	}
	for i := range 8 {
		p := e.NewPerson(t, fmt.Sprintf("p%d@example.com", i))
		form(p.Email, fixture.Password, http.StatusOK)
		form(p.Email, fixture.Password, http.StatusOK)
	}
	for range 4 {
		form("p0@example.com", fixture.Password, http.StatusOK) // counts: a fifth of the limit is used up
	}
	for i := range 12 {
		form(fmt.Sprintf("p%d@example.com", i%8), "wrong", http.StatusUnprocessableEntity)
	}
	form("p1@example.com", fixture.Password, http.StatusTooManyRequests).
		WantText("Too many requests", "Try again in", "People behind one address")
	olga.Open("/console/operator", http.StatusOK).WantText("AUTH_RATE_LIMIT")
}

// checkCookie checks the session cookie of a browser, and that no page has its value or a token.
func checkCookie(t *testing.T, b *browser) {
	t.Helper()
	cookies := b.Client.Jar.Cookies(b.Page.URL)
	if len(cookies) != 1 || cookies[0].Name != "tollgate" || len(cookies[0].Value) != 43 {
		t.Fatalf("the cookies are %v", cookies)
	}
	if strings.Contains(b.Page.Body, cookies[0].Value) || strings.Contains(b.Page.Body, "eyJ") {
		t.Error("the page has the value of the cookie, or a token")
	}
	if got := b.Page.Header.Get("Cache-Control"); got != "no-store" {
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
		u := *b.Page.URL
		u.Path = path
		has := slices.ContainsFunc(b.Client.Jar.Cookies(&u), func(c *http.Cookie) bool {
			return c.Name == "tollgate_device"
		})
		if has != want {
			t.Errorf("the browser sends the device cookie to %s: %t", path, has)
		}
	}
}

// TestNoOpenRedirect checks that a sign-in leads to pages of the console only.
func TestNoOpenRedirect(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com")
	for _, next := range []string{
		"https://evil.example/", "//evil.example/", `/\evil.example/`, "/console/../../evil", "/console//../x",
		"javascript:alert(1)", "/v0.1/servers",
		"/console/\n//evil.example", "http:/console/", "/console", "/console/sign-in?next=%2Fconsole%2Fsign-in", // which leads to itself
	} {
		b := newBrowser(t, s)
		b.Open("/console/sign-in?next="+url.QueryEscape(next), http.StatusOK)
		b.Press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password).WantPath("/console/home")
	}
}

// TestSecureCookie checks the cookies over TLS, and that there is no cookie over plain HTTP
// elsewhere.
func TestSecureCookie(t *testing.T) {
	e, s := start(t, "TRUSTED_PROXIES=127.0.0.1/32")
	ada := e.NewPerson(t, "ada@example.com")
	send := func(host, proto string) (*http.Response, string) {
		b := newBrowser(t, s)
		b.Open("/console/sign-in", http.StatusOK)
		r := b.Submission("Sign in", "email", ada.Email, "password", fixture.Password)
		r.Host = host
		r.Header.Set("Origin", proto+"://"+host)
		r.Header.Set("X-Forwarded-Proto", proto)
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		response, err := http.DefaultTransport.RoundTrip(r)
		must.Succeed(t, err)
		defer response.Body.Close()
		return response, strings.Join(response.Header.Values("Set-Cookie"), "\n")
	}
	for host, want := range map[string]string{
		"tools.example.com": "", "localhost.evil.example": "", "127.0.0.1.example.com": "", "192.0.2.1": "",
		"localhost": "tollgate=", "127.0.0.1:3000": "tollgate=", "[::1]:3000": "tollgate=",
	} {
		response, cookie := send(host, "http")
		status := map[bool]int{true: http.StatusOK, false: http.StatusSeeOther}[want == ""]
		if !strings.HasPrefix(cookie, want) || want == "" && cookie != "" || strings.Contains(strings.ToLower(cookie), "secure") ||
			response.StatusCode != status {
			t.Errorf("over plain HTTP at %s the status is %d and the cookie %q", host, response.StatusCode, cookie)
		}
	}
	response, cookie := send("tools.example.com", "https")
	if response.StatusCode != http.StatusSeeOther || !strings.HasPrefix(cookie, "__Host-tollgate=") ||
		response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("over TLS the status is %d, the cookie %s, and the headers %v", response.StatusCode, cookie, response.Header)
	}
	lower := strings.ToLower(cookie)
	for _, flag := range []string{"path=/;", "secure", "httponly", "samesite=lax"} {
		if !strings.Contains(lower, flag) || strings.Contains(lower, "domain=") {
			t.Errorf("the cookie does not have %s, or has a domain: %s", flag, cookie)
		}
	}
}

// TestSecondFactor checks the sign-in with an authenticator app.
func TestSecondFactor(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com")
	app := e.EnrolAuthenticator(t, ada)
	b := newBrowser(t, s)
	b.Open("/console/sign-in?next=/console/account", http.StatusOK)
	b.Press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password).WantText("Second factor")
	b.Follow("Start again", http.StatusOK).WantPath("/console/sign-in?next=%2Fconsole%2Faccount")
	b.Press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
	b.Press("Continue", http.StatusUnprocessableEntity, "code", "000000").WantText("There is a problem")
	b.Press("Continue", http.StatusOK, "code", app.Code(t, 1)).WantPath("/console/account")
	b.WantText("Authenticator app On").WantText("Full trust. It may do everything that you may do.")
	checkDeviceCookie(t, b)

	trusting := newBrowser(t, s)
	trusting.Open("/console/sign-in?next=/console/account", http.StatusOK)
	trusting.Press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password)
	trusting.WantText("Trust this browser")
	trusting.Press("Continue", http.StatusOK, "code", app.Recovery[0], "step-up.trust", "on")
	trusting.WantPath("/console/account").WantText("Trusted")
}

// TestSessionEndsMeanwhile checks what happens to a form that is sent after the session has ended:
// it leads to the sign-in, which says so and leads back to the page of the form.
func TestSessionEndsMeanwhile(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com", "publish *")
	b := signedIn(t, s, ada)
	b.Open("/console/publish", http.StatusOK)
	publish := b.Submission("Publish", "document", goodDocument)
	publish.Header.Set("Referer", b.Base+"/console/publish")
	b.Open("/console/step-up?next=/console/own", http.StatusOK)
	send := b.Submission("Send a code to a…@example.com")
	old, other := b.Cookie(), newBrowser(t, s)
	other.Client.Jar.SetCookies(b.Page.URL, b.Client.Jar.Cookies(b.Page.URL))
	other.Open("/console/", http.StatusOK)
	other.Press("Sign out", http.StatusOK)
	b.Send(publish, http.StatusOK).WantPath("/console/sign-in?next=%2Fconsole%2Fpublish&ended=1")
	b.WantText("Your session has ended, and the form was not accepted.")
	if b.Cookie() != old { // another tab may have a new one
		t.Error("a request with an old cookie removes the cookie")
	}
	b.Send(send, http.StatusOK).WantPath("/console/sign-in?next=%2Fconsole%2Fown")
	b.Open("/console/step-up?next=/console/own", http.StatusOK).WantPath("/console/sign-in?next=%2Fconsole%2Fown")
	b.Press("Sign in", http.StatusOK, "email", ada.Email, "password", fixture.Password).WantPath("/console/own")
}

// TestActAddresses opens the addresses of acts that are not among the forms of TestForms, as from the
// history of a browser: each leads to its page. What does not exist is not found.
func TestActAddresses(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	for page, acts := range map[string][]string{
		"/": {"/sign-out"}, "/account": {"/account/sessions/1/end", "/account/devices/1/revoke", "/account/devices/1/trust"},
		"/account/authenticator": {
			"/account/authenticator/activate", "/account/authenticator/disable", "/account/authenticator/another",
			"/account/authenticator/another/activate", "/account/authenticator/codes", "/account/authenticator/remove",
		},
		"/step-up":           {"/step-up/send", "/step-up/verify", "/step-up/resend"},
		"/operator/webhooks": {"/operator/webhooks/1/redeliver"}, "/operator/people/bea%40example.com": {"/operator/people/bea%40example.com/lock"},
	} {
		for _, act := range acts {
			b.Open("/console"+act, http.StatusOK).WantPath("/console" + page)
		}
	}
	for _, act := range []string{
		"/account/sessions/1/end", "/account/devices/1/revoke", "/account/devices/1/name", "/operator/policies/1/remove",
	} {
		b.Submit("/console"+act, http.StatusNotFound, nil)
	}
	const review = "/console/reviews/00000000-0000-4000-8000-000000000000"
	b.Open("/console/own/com.example/unknown/status", http.StatusNotFound).WantPath("/console/own/com.example/unknown")
	b.Open(review+"/decide", http.StatusNotFound).WantPath(review)
	b.Open("/console/quarantine/release", http.StatusForbidden).WantPath("/console/quarantine")
}

// TestCookieRotation checks that the cookie from before a step-up is dead after it.
func TestCookieRotation(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com")
	b, thief := newBrowser(t, s), newBrowser(t, s)
	b.signIn(ada)
	stolen := b.Client.Jar.Cookies(b.Page.URL)
	b.Open("/console/step-up", http.StatusOK).WantText("New device: no code was entered on it yet.")
	b.Press("Send a code to a…@example.com", http.StatusOK)
	b.Press("Verify", http.StatusUnprocessableEntity, "step-up.code", "00000x").WantText("The code is wrong.")
	gone := b.Submission("Send a new code", "step-up.challenge", "00000000-0000-4000-8000-000000000000")
	b.Send(gone, http.StatusUnprocessableEntity).WantText("This code cannot be used any more. Get a new one.")
	b.Press("Send a code to a…@example.com", http.StatusOK)
	b.Press("Send a new code", http.StatusOK).WantText("A new code was sent.")
	b.Press("Verify", http.StatusOK, "step-up.code", e.LastCode(t, ada.Email)).WantPath("/console/")
	checkDeviceCookie(t, b)
	thief.Client.Jar.SetCookies(b.Page.URL, stolen)
	thief.Open("/console/account", http.StatusOK).WantText("E-mail address Password")
	// The browser is known from now on, and gets more trust.
	b.Press("Sign out", http.StatusOK)
	b.signIn(ada)
	b.Open("/console/account", http.StatusOK)
	b.WantText("Limited trust.", "This session may not change the registry yet.",
		"You have not ticked “Trust this browser” on this device.")
}
