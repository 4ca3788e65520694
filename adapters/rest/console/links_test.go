package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestLinks follows all links of the service from page to page as everybody, a publisher, a reviewer
// and an operator: none leads to an error, no page is larger than largePage.
func TestLinks(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on", "PRODUCT_NAME=Acme")
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
	rey := e.NewWriter(t, s, "rey@example.com", "review *")
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0-beta"} {
		publishVersion(t, s, ada, "com.example/crm", version)
	}
	publishVersion(t, s, ada, "com.example/gone", "1.0.0")
	e.RunCommand(t, "", "review", "approve", "--all-pending")
	publishVersion(t, s, ada, "com.example/crm", "3.0.0")
	apiclient.Call(t, "PATCH", s.API+"/v0.1/servers/com.example%2Fcrm/versions/1.0.0/status", map[string]string{"status": "deleted"},
		ada.Bearer()...).WantStatus(t, http.StatusOK)
	rey.PostJSON(t, s, "/v0.1/x/dev.tollgate/quarantine", map[string]any{
		"serverName": "com.example/gone", "reason": "It sends data elsewhere.",
	}).WantStatus(t, http.StatusOK)
	everybody := newBrowser(t, s)
	everybody.Open("/console/", http.StatusOK)
	everybody.followAll()
	for _, p := range []*fixture.Person{ada, rey} {
		b := signedIn(t, s, p)
		b.followAll()
	}
	newOperator(t, e, s).followAll()
}

// followAll follows the links of the page and of all pages that they lead to, once for each path.
func (b *browser) followAll() {
	b.T.Helper()
	seen := map[string]bool{}
	for waiting := []string{"/console/"}; len(waiting) > 0; waiting = waiting[1:] {
		b.Open(waiting[0], http.StatusOK)
		if size := len(b.Page.Body); size > largePage && strings.HasPrefix(waiting[0], "/console/") {
			b.T.Errorf("%s has %d bytes", waiting[0], size)
		}
		if !strings.HasPrefix(b.Page.Header.Get("Content-Type"), "text/html") || strings.HasPrefix(b.Page.URL.Path, "/docs") { // TestGuides and TestPages of the API follow them
			continue
		}
		for _, link := range webtest.All(b.Page.Root, func(n *html.Node) bool { return n.Data == "a" && webtest.HasAttribute(n, "href") }) {
			u, err := b.Page.URL.Parse(webtest.Attribute(link, "href"))
			must.Succeed(b.T, err)
			if key := keyOf(u); u.Host == b.Page.URL.Host && !seen[key] {
				seen[key] = true
				waiting = append(waiting, u.RequestURI())
			}
		}
	}
	if len(seen) < 4 {
		b.T.Errorf("the pages link to %d addresses", len(seen))
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
