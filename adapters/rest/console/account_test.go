package console

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestAccount checks sessions and devices: what is shown, and that they can be ended and revoked.
func TestAccount(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(e.Environ, fixture.RelaxedRiskSettings...)
		s := e.Start(t)
		ada := e.NewWriter(t, s, "ada@example.com")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.follow("ada@example.com", http.StatusOK)
		b.wantText("Not verified. It may look at this account and little else, until you enter a code.",
			"Firefox on Linux This browser", "127.0.0.1", "Full trust")
		if n := strings.Count(b.text(), "This browser"); n != 2 {
			t.Errorf("%d rows are of this browser, want a session and a device", n)
		}
		// The session of the API ends, and its device is revoked.
		b.press("End the session of Firefox on Linux", http.StatusOK)
		b.wantPath("/console/account?done=session")
		b.wantText("The session is ended.")
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, ada.Bearer()...).WantStatus(t, http.StatusUnauthorized)

		b.press("Trust Firefox on Linux", http.StatusOK)
		b.wantText("The device is trusted from its next sign-in on.")
		b.press("Do not trust Firefox on Linux", http.StatusOK)
		b.wantText("The device is not trusted any more.", "Not trusted")

		b.press("Save the name of Firefox on Linux", http.StatusUnprocessableEntity, "name", strings.Repeat("x", 65))
		b.wantText("There is a problem", "Name must have at most 64 characters")
		if b.field("name") != strings.Repeat("x", 65) {
			t.Errorf("the form has the name %q", b.field("name"))
		}
		b.press("Save the name of Firefox on Linux", http.StatusOK, "name", " <b>Laptop</b> ")
		b.wantText("The device is renamed.", "<b>Laptop</b> This browser", "Firefox on Linux, 127.0.0.1")
		b.press("Save the name of <b>Laptop</b>", http.StatusOK, "name", "")

		other := newBrowser(t, s)
		other.signIn(ada)
		other.open("/console/account", http.StatusOK)
		b.press("Revoke Firefox on Linux", http.StatusOK) // of both browsers, which are one device
		b.wantPath("/console/sign-in?next=%2Fconsole%2Faccount%3Fdone%3Drevoked")
		other.open("/console/account", http.StatusOK)
		other.wantPath("/console/sign-in?next=%2Fconsole%2Faccount")
	})
}

// TestPasswordChange checks the change of the password: after a step-up, with a new cookie, and the
// end of the other sessions.
func TestPasswordChange(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		ada := e.NewWriter(t, s, "ada@example.com")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.open("/console/account/password", http.StatusOK)
		b.press("Change the password", http.StatusUnprocessableEntity, "currentPassword", "wrong", "newPassword", "short")
		b.wantText("New password must have at least 8 characters") // before a code is asked for
		b.press("Change the password", http.StatusForbidden, "currentPassword", "wrong", "newPassword",
			"Another-Horse-8")
		b.wantText("To go on with Change the password, enter a one-time code.")
		b.verify(e, ada, http.StatusOK)
		b.wantPath("/console/account/password")
		b.wantText("Current password")
		b.press("Change the password", http.StatusUnprocessableEntity, "currentPassword", fixture.Password,
			"newPassword", "short")
		b.wantText("New password must have at least 8 characters")
		b.press("Change the password", http.StatusUnprocessableEntity, "currentPassword", "wrong", "newPassword",
			"Another-Horse-8")
		b.wantText("Current password is wrong.")
		before := b.client.Jar.Cookies(b.page.url)
		b.press("Change the password", http.StatusOK, "currentPassword", fixture.Password, "newPassword",
			"Another-Horse-8")
		b.wantPath("/console/account?done=password")
		b.wantText("The password is changed, and all other sessions are ended.")
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, ada.Bearer()...).WantStatus(t, http.StatusUnauthorized)
		thief := newBrowser(t, s)
		thief.client.Jar.SetCookies(b.page.url, before)
		thief.open("/console/account", http.StatusOK)
		thief.wantText("E-mail address Password")
	})
}

// TestAuthenticatorNeedsARecentCode lets the code of a session get too old for an enrolment:
// another one is asked for, and the page goes on from there.
func TestAuthenticatorNeedsARecentCode(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, "REAUTHENTICATION_MAX_AGE=1s")
		ada := e.NewPerson(t, "ada@example.com")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.open("/console/account/authenticator", http.StatusOK)
		b.press("Set up an authenticator app", http.StatusForbidden)
		b.verify(e, ada, http.StatusOK)
		await.Until(t, "the code is too old", func() bool {
			b.open("/console/account/authenticator", http.StatusOK)
			response, err := b.client.Do(b.submission("Set up an authenticator app"))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close() // nothing of it is read
			return response.StatusCode == http.StatusForbidden
		})
		b.press("Set up an authenticator app", http.StatusForbidden)
		b.wantText("Verify that it is you", "The last password or code of this session is too old for this.")
		b.verify(e, ada, http.StatusOK)
		b.wantText("You are verified. Everything is ready.")
	})
}

// isQRCode reports whether an element is the QR code, and not the icon of the service.
func isQRCode(n *html.Node) bool { return n.Data == "img" && attribute(n, "class") == "qr" }

// TestAuthenticatorApp checks how a person sets up an authenticator app, and turns it off.
func TestAuthenticatorApp(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.open("/console/account/authenticator", http.StatusOK)
		b.press("Set up an authenticator app", http.StatusForbidden)
		b.verify(e, ada, http.StatusOK)
		b.wantText("You are verified. Everything is ready.")
		b.press("Set up an authenticator app", http.StatusOK)
		image := find(b.page.root, isQRCode)
		if image == nil || !strings.HasPrefix(attribute(image, "src"), "data:image/png;base64,") {
			t.Fatalf("there is no QR code: %s", b.text())
		}
		secret := strings.ReplaceAll(b.field("secret"), " ", "")
		b.press("Turn it on", http.StatusUnprocessableEntity, "code", "12")
		b.wantText("Code is wrong.", b.field("secret"))
		if again := find(b.page.root, isQRCode); again == nil ||
			attribute(again, "src") != attribute(image, "src") {
			t.Error("after a wrong code there is no QR code, or another one")
		}
		before := b.cookie()
		code := func(steps int) string {
			code, err := totp.GenerateCode(secret, time.Now().Add(time.Duration(steps)*30*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
		b.press("Turn it on", http.StatusOK, "code", code(0))
		b.wantText("Recovery codes", "They are not shown again.")
		active := b.cookie()
		if active == before {
			t.Error("the cookie is the one from before the authenticator app was turned on")
		}
		codes := all(b.page.root, func(n *html.Node) bool { return n.Data == "code" })
		if len(codes) != 10 {
			t.Errorf("there are %d recovery codes", len(codes))
		}
		addAnotherApp(t, b, textOf(codes[1]))
		b.open("/console/account/authenticator", http.StatusOK)
		b.press("Make new recovery codes", http.StatusUnprocessableEntity, "code-codes", "12")
		b.press("Make new recovery codes", http.StatusOK, "code-codes", textOf(codes[2]))
		b.wantText("You have new recovery codes.", "They are not shown again.")
		renewed := all(b.page.root, func(n *html.Node) bool { return n.Data == "code" })
		b.open("/console/account/authenticator", http.StatusOK)
		b.wantText("10 are left.", "First app", "Tablet")
		b.press("Remove this app", http.StatusUnprocessableEntity, "code-remove", textOf(codes[3]))
		b.press("Remove this app", http.StatusOK, "code-remove", textOf(renewed[1]))
		b.wantText("The authenticator app is removed.", "9 are left.", "Tablet")
		active = b.cookie()
		b.press("Turn it off", http.StatusUnprocessableEntity, "code", "12")
		b.press("Turn it off", http.StatusOK, "code", textOf(renewed[0]))
		b.wantText("The authenticator app is turned off.")
		if b.cookie() == active {
			t.Error("the cookie is the one from before the authenticator app was turned off")
		}
	})
}

// addAnotherApp adds a further authenticator app with a recovery code.
func addAnotherApp(t *testing.T, b *browser, recovery string) {
	t.Helper()
	b.open("/console/account/authenticator", http.StatusOK)
	b.press("Add another app", http.StatusUnprocessableEntity, "name", "Tablet", "code-another", "12")
	b.press("Add another app", http.StatusOK, "name", "Tablet", "code-another", recovery)
	secret := strings.ReplaceAll(b.field("secret"), " ", "")
	b.press("Turn it on", http.StatusUnprocessableEntity, "code", "12")
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b.press("Turn it on", http.StatusOK, "code", code)
	b.wantText("The authenticator app is added.", "any of your 2 apps", "Tablet", "9 are left.")
}

// TestAuditLog checks the person's own audit log and its filters.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		ada, bea := e.NewPerson(t, "ada@example.com"), e.NewPerson(t, "bea@example.com")
		b := newBrowser(t, s)
		b.signIn(bea)
		b.press("Sign out", http.StatusOK)
		b.signIn(ada)
		b.open("/console/account/log", http.StatusOK)
		b.wantText("3 events", "signed in on a new device", "got a risk score of 30 for the sign-in", "IP address 127.0.0.1",
			"Kind Risk of a sign-in", "Trust level not verified",
			"Score, device 30", "CSV", "JSON") // reasons are shown at FULL_TRUST only
		if text := b.text(); strings.Contains(text, "shadow") {
			t.Errorf("the page compares ways to score: %s", text)
		}
		b.press("Show", http.StatusOK, "type", "LOGIN_ATTEMPT", "from", "2020-01-01", "until",
			time.Now().UTC().Format("2006-01-02"))
		b.wantText("1 event")
		b.press("Show", http.StatusOK, "until", "2020-01-01")
		b.wantText("No event matches.")
		b.open("/console/account/log?server=com.example/x", http.StatusOK)
		b.wantText("No event matches.")
		for format, want := range map[string]string{
			"csv": "signed in on a new device", "json": `"what":"signed in on a new device"`,
		} {
			file, err := b.client.Do(b.request(http.MethodGet, "/console/account/log?outcome=done&format="+format, nil, ""))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(file.Body)
			if name := file.Header.Get("Content-Disposition"); err != nil || file.Body.Close() != nil ||
				!strings.Contains(string(text), want) || !strings.Contains(name, "audit."+format) {
				t.Errorf("the file %s is %s (%v)", name, text, err)
			}
		}
		b.open("/console/account/log?outcome=done", http.StatusOK)
		b.wantText("3 events")
		b.open("/console/account/log?outcome=refused", http.StatusOK)
		b.wantText("No event matches.")
		b.press("Show", http.StatusUnprocessableEntity, "until", "tomorrow")
		b.wantText("Enter a date such as 2026-01-31.")
		b.open("/console/account/log?type=X", http.StatusUnprocessableEntity)
		b.wantText("Choose one of the kinds of events.")
		b.open("/console/account/authenticator", http.StatusOK)
		b.press("Set up an authenticator app", http.StatusForbidden)
		b.open("/console/account/log?type=ACCESS_REFUSED", http.StatusOK)
		b.wantText("1 event", "could not get access to POST /console/account/authenticator",
			"Required trust level full trust")
	})
}
