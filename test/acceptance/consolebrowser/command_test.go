package consolebrowser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestCommandLogin approves 'tollgate login' in a browser.
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
	p.wantText("Sign in the tollgate command?", ada.Email, "tollgate on Linux")
	p.tab.Run(t, chromedp.Evaluate[chromedp.Void](`document.querySelector("main button[value=less]").click()`))
	p.waitFor("Go back to the terminal.")
	login.End(t, 0)
	for _, complaint := range p.errors.TakeAll() {
		t.Error(complaint)
	}
}
