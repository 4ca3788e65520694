package companies

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestRealPages signs in in a browser, through the pages of a real provider, and follows the link of
// the sign-in page, so that the browser applies the policies of the pages and the rules of cookies.
func TestRealPages(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := &site{e: e, Service: e.Start(t, append(fixture.RegistrySettings(), fixture.RiskPolicy("relaxed"))...)}
	s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *")
	p := startReal(t, s.Service, true)
	p.signIn("ada", "ada@acme.example", []string{"devs"})
	s.want(t, 201, "PUT", providers+"/acme", p.settings("tollgate", "acme.example"))
	tab := chromium.Open(t)
	act := func(what, script, until string) {
		t.Helper()
		tab.Run(t, chromedp.Evaluate[chromedp.Void]("void ("+script+")"))
		await.Until(t, what, func() bool {
			shown, err := chromedp.Run(tab.Context, chromedp.Evaluate[bool](`document.readyState === "complete" && `+until))
			return err == nil && shown
		})
	}
	tab.Run(t, chromedp.Navigate(s.API+"/console/sign-in?next=/console/account"))
	const login = `document.querySelector("[name=login]")`
	act("the provider asks who it is", `[...document.querySelectorAll("main a")].find(a => a.textContent.includes("Acme")).click()`,
		login+" !== null")
	act("the provider asks for consent", fmt.Sprintf(`%s.value = "ada", document.querySelector("[name=password]").value = "x", %[1]s.form.requestSubmit()`, login),
		`document.querySelector("[name=prompt][value=consent]") !== null`)
	act("the account page", `document.querySelector("[name=prompt][value=consent]").form.requestSubmit()`,
		`location.pathname === "/console/account" && document.body.textContent.includes("ada@acme.example")`)
	wantGrants(t, s, "ada@acme.example", "publish com.acme/* provider:acme")
}
