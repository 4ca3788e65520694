package consolebrowser

import (
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// addAuthenticator gives the browser of a person an authenticator that verifies its person at once. It
// returns a function that says whether the authenticator answers.
func (p *person) addAuthenticator() (answer func(bool)) {
	p.t.Helper()
	if _, err := chromedp.Call(p.tab.Context, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		p.t.Fatal(err)
	}
	made, err := chromedp.Call(p.tab.Context, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, AutomaticPresenceSimulation: true, IsUserVerified: true,
		},
	})
	must.Succeed(p.t, err)
	return func(enabled bool) {
		p.t.Helper()
		_, err := chromedp.Call(p.tab.Context, webauthn.SetAutomaticPresenceSimulation,
			webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: made.AuthenticatorID, Enabled: enabled})
		must.Succeed(p.t, err)
	}
}

// addPasskey adds a passkey with a name after a step-up.
func (p *person) addPasskey(email, name string) {
	p.t.Helper()
	p.open("/console/account/passkeys")
	p.wantText("You have no passkey yet.")
	p.set("name", name)
	p.press("Add a passkey")
	p.verify(email)
	p.press("Add a passkey")
	p.waitFor("The passkey is added.")
	p.wantText(name)
}

// signInByPassword opens the sign-in page and signs in there.
func (p *person) signInByPassword(email string) {
	p.t.Helper()
	p.open("/console/sign-in")
	p.fill("E-mail address", email)
	p.fill("Password", fixture.Password)
	p.enter()
	p.waitForPerson(email)
}

// TestPasskeys adds a passkey after a step-up, signs in with it by the list of the e-mail field and by the
// button, steps up with it, and removes it. Without JavaScript the other ways go on, and the pages say so.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, fixture.RelaxedRiskSettings...)
	const email = "ada@example.com"
	e.NewPerson(t, email)
	p := newPerson(t, e, s)
	answer := p.addAuthenticator()
	p.signIn(email)
	p.addPasskey(email, "Laptop")
	p.signOut()
	p.open("/console/sign-in") // its offer begins by itself, and the authenticator answers at once
	p.waitForPerson(email)
	answer(false)
	p.signOut()
	p.open("/console/sign-in")
	p.wantText("Sign in with a passkey", "E-mail address")
	await.Until(t, "the offer has its options", func() bool {
		return chromium.Evaluate[bool](t, p.tab, `performance.getEntriesByType("resource").some(
			(e) => e.name === new URL(document.querySelector("form[data-passkey]").dataset.passkey, location).href && e.responseEnd > 0)`)
	})
	answer(true) // from the next request on: that of the button, which ends the offer. On a busy machine it may still be the offer's.
	p.tab.Run(t, chromedp.Evaluate[chromedp.Void](`void document.querySelector("form[data-passkey] button")?.click()`))
	p.waitForPerson(email)
	p.open("/console/step-up")
	p.press("Use a passkey")
	p.waitForPerson(email)
	p.signOut()
	p.tab.DisableScripts(t)
	p.open("/console/sign-in")
	p.wantText("Signing in with a passkey needs JavaScript; the other ways do not.")
	p.wantNoText("Sign in with a passkey")
	p.signInByPassword(email)
	p.open("/console/step-up")
	p.wantText("A passkey needs JavaScript; a code does not.")
	p.wantNoText("Use a passkey")
	p.verify(email)
	p.open("/console/account/passkeys")
	p.wantText("Adding a passkey needs JavaScript.")
	p.wantNoText("For example where you keep it.")
	p.press("Remove Laptop")
	p.wantText("The passkey is removed, and all other sessions are ended.", "You have no passkey yet.")
	p.wantNoComplaints()
}

// checkPasskeys checks the pages of a person with a passkey.
func (s *site) checkPasskeys() {
	const email = "fay@example.com"
	s.e.NewPerson(s.t, email)
	fay := newPerson(s.t, s.e, s.s)
	answer := fay.addAuthenticator()
	fay.signIn(email)
	s.check(fay, "empty-passkeys", "/console/account/passkeys")
	fay.addPasskey(email, "The security key with a long name, which is in the left drawer")
	s.checkOpen(fay, "passkey-added")
	fay.open("/console/account/passkeys")
	fay.tab.Run(s.t, chromedp.Evaluate[chromedp.Void](`void (document.querySelector("main details").open = true)`))
	s.checkOpen(fay, "rename-passkey")
	s.check(fay, "passkey-step-up", "/console/step-up")
	answer(false)
	fay.open("/console/account")
	fay.signOut()
	s.check(fay, "passkey-sign-in", "/console/sign-in")
}
