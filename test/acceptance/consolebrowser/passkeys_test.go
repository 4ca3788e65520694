package consolebrowser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
	"github.com/tollgate-dev/tollgate/test/await"
)

// addAuthenticator gives the browser an authenticator that verifies its person at once.
func addAuthenticator(t *testing.T, w chromium.Tab) {
	t.Helper()
	if _, err := chromedp.Call(w.Context, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Call(w.Context, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, AutomaticPresenceSimulation: true, IsUserVerified: true,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPasskeys adds a passkey after a step-up, signs in, steps up with it, and removes it.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	fixture.InEachEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RelaxedRiskSettings...)
		const email = "ada@example.com"
		e.NewPerson(t, email)
		p := newPerson(t, e, s)
		addAuthenticator(t, p.tab)
		wait := func(text string) {
			t.Helper()
			await.Until(t, text, func() bool {
				shown, err := chromedp.Run(p.tab.Context, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
				return err == nil && strings.Contains(shown, text)
			})
		}
		p.signIn(email)
		p.open("/console/account/passkeys")
		p.wantText("You have no passkey yet.")
		p.set("name", "Laptop")
		p.press("Add a passkey")
		p.verify(email)
		p.press("Add a passkey")
		wait("The passkey is added.")
		p.wantText("Laptop")
		p.press("Sign out")
		p.open("/console/sign-in")
		p.tab.Run(t, chromedp.Evaluate[chromedp.Void](`void document.querySelector("form[data-passkey] button")?.click()`))
		wait(email)
		p.open("/console/step-up")
		p.press("Use a passkey")
		wait(email)
		p.open("/console/account/passkeys")
		p.press("Remove Laptop")
		wait("The passkey is removed.")
		p.wantNoComplaints()
	})
}
