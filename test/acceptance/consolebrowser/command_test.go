package consolebrowser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestCommandLogin approves 'tollgate login' in a browser, which the policy of the page lets go on to
// the port of the command. TestCommandLogin in test/acceptance/console copies a code.
func TestCommandLogin(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, fixture.RelaxedRiskSettings...)
	ada := fixture.NewPublisher(t, e.NewPerson(t, "ada@example.com"))
	p := newPerson(t, e, s)
	login := ada.OpenLogin(t, "--url", s.API)
	p.open(login.Path())
	p.set("email", ada.Email)
	p.set("password", fixture.Password)
	p.click("Sign in")
	p.wantText("Sign in the tollgate command on this machine?", ada.Email)
	p.tab.Run(t, chromedp.Evaluate[chromedp.Void](`document.querySelector("main button.main").click()`))
	login.End(t, 0)
	await.Until(t, "the page of the command", func() bool {
		return chromium.Evaluate[string](t, p.tab, `document.body.textContent`) == "Go back to the terminal. You can close this page.\n"
	})

	for _, complaint := range p.errors.TakeAll() {
		if !strings.Contains(complaint, "/callback?code=") { // it goes to the command
			t.Error(complaint)
		}
	}
}
