package console_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestAccount checks sessions and devices: what is shown, and that they can be ended and revoked.
func TestAccount(t *testing.T) {
	e, s := start(t, fixture.RelaxedRiskSettings...)
	ada := e.NewWriter(t, s, "ada@example.com")
	b := signedIn(t, s, ada)
	b.Follow("My account", http.StatusOK)
	b.WantText("Not verified. It may look at this account and little else, until you enter a code.",
		"Firefox on Linux This browser", "127.0.0.1", "Full trust")
	if n := strings.Count(b.Text(), "This browser"); n != 2 {
		t.Errorf("%d rows are of this browser, want a session and a device", n)
	}
	// The session of the API ends, and its device is revoked.
	b.Press("End the session of Firefox on Linux", http.StatusOK).WantPath("/console/account?done=session")
	b.WantText("The session is ended.")
	apiclient.Call(t, "GET", s.API+"/auth/session", nil, ada.Bearer()...).WantStatus(t, http.StatusUnauthorized)

	b.Press("Trust Firefox on Linux", http.StatusOK).WantText("The device is trusted from its next sign-in on.")
	b.Press("Do not trust Firefox on Linux", http.StatusOK)
	b.WantText("The device is not trusted any more.", "Not trusted")

	b.Press("Save the name of Firefox on Linux", http.StatusUnprocessableEntity, "name", strings.Repeat("x", 65))
	b.WantText("There is a problem", "Name must have at most 64 characters").WantFields("name", strings.Repeat("x", 65))
	b.Press("Save the name of Firefox on Linux", http.StatusOK, "name", " <b>Laptop</b> ")
	b.WantText("The device is renamed.", "<b>Laptop</b> This browser", "Firefox on Linux, 127.0.0.1")
	b.Press("Save the name of <b>Laptop</b>", http.StatusOK, "name", "")

	other := signedIn(t, s, ada)
	other.Open("/console/account", http.StatusOK)
	b.Press("Revoke Firefox on Linux", http.StatusOK) // of both browsers, which are one device
	b.WantPath("/console/sign-in?next=%2Fconsole%2Faccount%3Fdone%3Drevoked")
	other.Open("/console/account", http.StatusOK).WantPath("/console/sign-in?next=%2Fconsole%2Faccount")
}

// TestPasswordChange checks the change of the password: after a step-up, with a new cookie, and the
// end of the other sessions.
func TestPasswordChange(t *testing.T) {
	e, s := start(t)
	ada := e.NewWriter(t, s, "ada@example.com")
	b := signedIn(t, s, ada)
	b.Open("/console/account/password", http.StatusOK)
	b.Press("Change the password", http.StatusUnprocessableEntity, "currentPassword", "wrong", "newPassword", "short")
	b.WantText("New password must have at least 8 characters") // before a code is asked for
	b.Press("Change the password", http.StatusForbidden, "currentPassword", "wrong", "newPassword", "Another-Horse-8")
	b.WantText("To go on with Change the password, enter a one-time code.")
	b.verify(e, ada, http.StatusOK).WantPath("/console/account/password").WantText("Current password")
	b.Press("Change the password", http.StatusUnprocessableEntity, "currentPassword", fixture.Password,
		"newPassword", "short")
	b.WantText("New password must have at least 8 characters")
	b.Press("Change the password", http.StatusUnprocessableEntity, "currentPassword", "wrong", "newPassword",
		"Another-Horse-8")
	b.WantText("Current password is wrong.")
	before := b.Client.Jar.Cookies(b.Page.URL)
	b.Press("Change the password", http.StatusOK, "currentPassword", fixture.Password, "newPassword", "Another-Horse-8")
	b.WantPath("/console/account?done=password").WantText("The password is changed, and all other sessions are ended.")
	apiclient.Call(t, "GET", s.API+"/auth/session", nil, ada.Bearer()...).WantStatus(t, http.StatusUnauthorized)
	thief := newBrowser(t, s)
	thief.Client.Jar.SetCookies(b.Page.URL, before)
	thief.Open("/console/account", http.StatusOK).WantText("E-mail address Password")
}

// TestAuthenticatorNeedsARecentCode lets the code of a session get too old for an enrolment:
// another one is asked for, and the page goes on from there.
func TestAuthenticatorNeedsARecentCode(t *testing.T) {
	e, s := start(t, "REAUTHENTICATION_MAX_AGE=1s")
	ada := e.NewPerson(t, "ada@example.com")
	b := signedIn(t, s, ada)
	b.Open("/console/account/authenticator", http.StatusOK)
	b.Press("Set up an authenticator app", http.StatusForbidden)
	b.verify(e, ada, http.StatusOK)
	await.Until(t, "the code is too old", func() bool {
		b.Open("/console/account/authenticator", http.StatusOK)
		response, err := b.Client.Do(b.Submission("Set up an authenticator app"))
		must.Succeed(t, err)
		_ = response.Body.Close() // nothing of it is read
		return response.StatusCode == http.StatusForbidden
	})
	b.Press("Set up an authenticator app", http.StatusForbidden)
	b.WantText("Verify that it is you", "The last password or code of this session is too old for this.")
	b.verify(e, ada, http.StatusOK).WantText("You are verified. Everything is ready.")
}

// isQRCode reports whether an element is the QR code, and not the icon of the service.
func isQRCode(n *html.Node) bool { return n.Data == "img" && webtest.Attribute(n, "class") == "qr" }

// TestAuthenticatorApp checks how a person sets up an authenticator app, and turns it off.
func TestAuthenticatorApp(t *testing.T) {
	e, s := start(t)
	e.WantAuditEvents(t)
	ada := e.NewPerson(t, "ada@example.com")
	b := signedIn(t, s, ada)
	b.Open("/console/account/authenticator", http.StatusOK)
	b.Press("Set up an authenticator app", http.StatusForbidden)
	b.verify(e, ada, http.StatusOK).WantText("You are verified. Everything is ready.")
	b.Press("Set up an authenticator app", http.StatusOK)
	image := webtest.Find(b.Page.Root, isQRCode)
	if image == nil || !strings.HasPrefix(webtest.Attribute(image, "src"), "data:image/png;base64,") {
		t.Fatalf("there is no QR code: %s", b.Text())
	}
	secret := strings.ReplaceAll(b.Field("secret"), " ", "")
	b.Press("Turn it on", http.StatusUnprocessableEntity, "code", "12").WantText("Code is wrong.", b.Field("secret"))
	if again := webtest.Find(b.Page.Root, isQRCode); again == nil ||
		webtest.Attribute(again, "src") != webtest.Attribute(image, "src") {
		t.Error("after a wrong code there is no QR code, or another one")
	}
	before := b.Cookie()
	b.Press("Turn it on", http.StatusOK, "code", codeOf(t, secret))
	b.WantText("Recovery codes", "They are not shown again.")
	active := b.Cookie()
	if active == before {
		t.Error("the cookie is the one from before the authenticator app was turned on")
	}
	codes := webtest.All(b.Page.Root, func(n *html.Node) bool { return n.Data == "code" })
	if len(codes) != 10 {
		t.Errorf("there are %d recovery codes", len(codes))
	}
	addAnotherApp(t, b, webtest.TextOf(codes[1]))
	b.Open("/console/account/authenticator", http.StatusOK)
	b.Press("Make new recovery codes", http.StatusUnprocessableEntity, "code-codes", "12")
	b.Press("Make new recovery codes", http.StatusOK, "code-codes", webtest.TextOf(codes[2]))
	b.WantText("You have new recovery codes.", "They are not shown again.")
	renewed := webtest.All(b.Page.Root, func(n *html.Node) bool { return n.Data == "code" })
	b.Open("/console/account/authenticator", http.StatusOK).WantText("10 are left.", "First app", "Tablet")
	b.Press("Remove this app", http.StatusUnprocessableEntity, "code-remove", webtest.TextOf(codes[3]))
	b.Press("Remove this app", http.StatusOK, "code-remove", webtest.TextOf(renewed[1]))
	b.WantText("The authenticator app is removed.", "9 are left.", "Tablet")
	active = b.Cookie()
	b.Press("Turn it off", http.StatusUnprocessableEntity, "code", "12")
	b.Press("Turn it off", http.StatusOK, "code", webtest.TextOf(renewed[0]))
	b.WantText("The authenticator app is turned off.")
	if b.Cookie() == active {
		t.Error("the cookie is the one from before the authenticator app was turned off")
	}
}

// addAnotherApp adds a further authenticator app with a recovery code.
func addAnotherApp(t *testing.T, b *browser, recovery string) {
	t.Helper()
	b.Open("/console/account/authenticator", http.StatusOK)
	b.Press("Add another app", http.StatusUnprocessableEntity, "name", "Tablet", "code-another", "12")
	b.Press("Add another app", http.StatusOK, "name", "Tablet", "code-another", recovery)
	secret := strings.ReplaceAll(b.Field("secret"), " ", "")
	b.Press("Turn it on", http.StatusUnprocessableEntity, "code", "12")
	b.Press("Turn it on", http.StatusOK, "code", codeOf(t, secret))
	b.WantText("The authenticator app is added.", "any of your 2 apps", "Tablet", "9 are left.")
}

// TestAuditLog checks the person's own audit log and its filters.
func TestAuditLog(t *testing.T) {
	e, s := start(t)
	ada, bea := e.NewPerson(t, "ada@example.com"), e.NewPerson(t, "bea@example.com")
	b := signedIn(t, s, bea)
	b.Press("Sign out", http.StatusOK)
	b.signIn(ada)
	b.Open("/console/account/log", http.StatusOK)
	b.WantText("3 events", "signed in on a new device", "got a risk score of 30 for the sign-in", "IP address 127.0.0.1",
		"Kind Risk of a sign-in", "Trust level not verified",
		"Score, device 30", "CSV", "JSON") // reasons are shown at FULL_TRUST only
	if text := b.Text(); strings.Contains(text, "shadow") {
		t.Errorf("the page compares ways to score: %s", text)
	}
	b.Press("Show", http.StatusOK, "type", "LOGIN_ATTEMPT", "from", "2020-01-01", "until",
		time.Now().UTC().Format("2006-01-02"))
	b.WantText("1 event")
	b.Press("Show", http.StatusOK, "until", "2020-01-01").WantText("No event matches.")
	b.Open("/console/account/log?server=com.example/x", http.StatusOK).WantText("No event matches.")
	for format, want := range map[string]string{
		"csv": "signed in on a new device", "json": `"what":"signed in on a new device"`,
	} {
		file, err := b.Client.Do(b.Request(http.MethodGet, "/console/account/log?outcome=done&format="+format, nil, ""))
		must.Succeed(t, err)
		text, err := io.ReadAll(file.Body)
		if name := file.Header.Get("Content-Disposition"); err != nil || file.Body.Close() != nil ||
			!strings.Contains(string(text), want) || !strings.Contains(name, "audit."+format) {
			t.Errorf("the file %s is %s (%v)", name, text, err)
		}
	}
	b.Open("/console/account/log?outcome=done", http.StatusOK).WantText("3 events")
	b.Open("/console/account/log?outcome=refused", http.StatusOK).WantText("No event matches.")
	b.Press("Show", http.StatusUnprocessableEntity, "until", "tomorrow").WantText("Enter a date such as 2026-01-31.")
	b.Open("/console/account/log?type=X", http.StatusUnprocessableEntity).WantText("Choose one of the kinds of events.")
	b.Open("/console/account/authenticator", http.StatusOK)
	b.Press("Set up an authenticator app", http.StatusForbidden)
	b.Open("/console/account/log?type=ACCESS_REFUSED", http.StatusOK)
	b.WantText("1 event", "could not get access to POST /console/account/authenticator",
		"Required trust level full trust")
}

// codeOf returns the present code of an authenticator app.
func codeOf(t *testing.T, secret string) string {
	t.Helper()
	return (&fixture.Authenticator{URI: "otpauth://totp/x?secret=" + strings.ReplaceAll(secret, " ", "")}).Code(t, 0)
}

// TestMailAboutReviews chooses when a reviewer gets mail. Who has the password alone cannot silence it.
func TestMailAboutReviews(t *testing.T) {
	e, s := start(t)
	e.WantAuditEvents(t)
	bea := e.NewPerson(t, "bea@example.com", "review com.example/*")
	b := newBrowser(t, s)
	b.signIn(bea)
	b.Open("/console/account", http.StatusOK).WantText("Mail about reviews")
	b.Press("Save the choice", http.StatusForbidden, "mail", "none")
	b.verify(e, bea, http.StatusOK)
	b.Open("/console/account", http.StatusOK).WantFields("mail", "at-once")
	b.Press("Save the choice", http.StatusOK, "mail", "daily").WantText("Mail about reviews comes as you have chosen.").WantFields("mail", "daily")
	eve := newVerified(t, e, s, "eve@example.com", "publish com.example/*")
	eve.Open("/console/account", http.StatusOK).WantNoText("Mail about reviews")
}
