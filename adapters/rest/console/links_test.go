package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestLinks follows all links of the service from page to page as everybody, a publisher, a reviewer
// and an operator: none leads to an error, no page is larger than largePage.
func TestLinks(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on", "PRODUCT_NAME=Acme")...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
		rey := e.NewWriter(t, s, "rey@example.com", "review *")
		for _, version := range []string{"1.0.0", "1.1.0", "2.0.0-beta"} {
			ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/crm", version)).WantStatus(t, http.StatusOK)
		}
		ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/gone", "1.0.0")).WantStatus(t, http.StatusOK)
		e.RunCommand(t, "", "review", "approve", "--all-pending")
		ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/crm", "3.0.0")).WantStatus(t, http.StatusOK)
		apiclient.Call(t, "PATCH", s.API+"/v0.1/servers/com.example%2Fcrm/versions/1.0.0/status", map[string]string{"status": "deleted"},
			ada.Bearer()...).WantStatus(t, http.StatusOK)
		rey.PostJSON(t, s, "/v0.1/x/dev.tollgate/quarantine", map[string]any{
			"serverName": "com.example/gone", "reason": "It sends data elsewhere.",
		}).WantStatus(t, http.StatusOK)
		everybody := newBrowser(t, s)
		everybody.open("/console/", http.StatusOK)
		everybody.followAll()
		for _, p := range []*fixture.Person{ada, rey} {
			b := newBrowser(t, s)
			b.signIn(p)
			b.followAll()
		}
		newOperator(t, e, s).followAll()
	})
}

// followAll follows the links of the page and of all pages that they lead to, once for each path.
func (b *browser) followAll() {
	b.t.Helper()
	seen := map[string]bool{}
	for waiting := []string{"/console/"}; len(waiting) > 0; waiting = waiting[1:] {
		b.open(waiting[0], http.StatusOK)
		if size := len(b.page.body); size > largePage && strings.HasPrefix(waiting[0], "/console/") {
			b.t.Errorf("%s has %d bytes", waiting[0], size)
		}
		if !strings.HasPrefix(b.page.header.Get("Content-Type"), "text/html") || b.page.url.Path == "/docs" {
			continue
		}
		for _, link := range all(b.page.root, func(n *html.Node) bool { return n.Data == "a" && hasAttribute(n, "href") }) {
			u, err := b.page.url.Parse(attribute(link, "href"))
			if err != nil {
				b.t.Fatal(err)
			}
			if key := keyOf(u); u.Host == b.page.url.Host && !seen[key] {
				seen[key] = true
				waiting = append(waiting, u.RequestURI())
			}
		}
	}
	if len(seen) < 4 {
		b.t.Errorf("the pages link to %d addresses", len(seen))
	}
}

// keyOf returns the path of an address with the names of its parameters: pages with other values of
// them are alike.
func keyOf(u *url.URL) string {
	key := u.Path
	for _, name := range []string{"version", "state", "done", "template", "review", "client", "view"} {
		if u.Query().Has(name) {
			key += "&" + name + "=" + u.Query().Get(name)
		}
	}
	return key
}
