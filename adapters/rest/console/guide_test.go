package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// maxGuide is the size in bytes that no guide exceeds.
const maxGuide = 300_000

// TestGuides reads the guides without a session, where reading the registry needs one: each link leads to a
// page with the anchor, or to a file.
func TestGuides(t *testing.T) {
	_, s := start(t, "REGISTRY_READ=people")
	b := newBrowser(t, s)
	ids, links := map[string]map[string]bool{}, map[string][]*url.URL{}
	for waiting := []string{"/docs/guide"}; len(waiting) > 0; waiting = waiting[1:] {
		b.Open(waiting[0], http.StatusOK)
		path := b.Page.URL.Path
		if ids[path] != nil {
			continue
		}
		ids[path] = map[string]bool{}
		if !strings.HasPrefix(b.Page.Header.Get("Content-Type"), "text/html") {
			continue
		}
		if size := len(b.Page.Body); size > maxGuide {
			t.Errorf("%s has %d bytes", path, size)
		}
		if policy := b.Page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'") {
			t.Errorf("%s has the policy %s", path, policy)
		}
		for n := range b.Page.Root.Descendants() {
			if id := webtest.Attribute(n, "id"); id != "" {
				ids[path][id] = true
			}
			u, err := b.Page.URL.Parse(webtest.Attribute(n, "href") + webtest.Attribute(n, "src"))
			must.Succeed(t, err)
			if n.Type != html.ElementNode || u.Host != b.Page.URL.Host || !strings.HasPrefix(u.Path, "/docs/guide/") {
				continue
			}
			links[path] = append(links[path], u)
			if u.Path != path {
				waiting = append(waiting, u.Path)
			}
		}
	}
	for path, all := range links {
		for _, u := range all {
			if u.Fragment != "" && !ids[u.Path][u.Fragment] {
				t.Errorf("%s: the link to %s leads to no anchor", path, u)
			}
		}
	}
	if len(links) < 80 {
		t.Errorf("there are %d guides", len(links))
	}
	b.Open("/docs/guide/audit-log", http.StatusOK).WantText("The audit log")
	for file, want := range map[string]string{"console/catalogue.png": "image/png", "examples/state/state.yaml": "text/plain; charset=utf-8"} {
		if got := b.Open("/docs/guide/"+file, http.StatusOK).Page.Header.Get("Content-Type"); got != want {
			t.Errorf("%s is %s", file, got)
		}
	}
	for _, none := range []string{"none", "docs.go", "../guide", "contract", "%00", "%2e%2e/%2e%2e/go.mod"} {
		b.Open("/docs/guide/"+none, http.StatusNotFound)
	}
	b.Open("/docs", http.StatusOK)
	b.Follow("guides", http.StatusOK).WantText("Begin with who you are")
	b.Follow("API", http.StatusOK).WantText("These pages are made from the OpenAPI document")
}
