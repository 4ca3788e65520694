package oauth_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth/oauth"
)

// TestRedirects checks that no address but a registered one gets a code, and that only the port of one on
// this computer is open.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id       oauth.ClientID
		own, uri string
		want     bool
	}{
		"the same":                      {"app", "https://app.example/cb", "https://app.example/cb", true},
		"a suffix of the path":          {"app", "https://app.example/cb", "https://app.example/cb/evil", false},
		"a suffix of the host":          {"app", "https://app.example", "https://app.example.evil.example", false},
		"another case":                  {"app", "https://app.example/cb", "https://APP.example/cb", false},
		"a query more":                  {"app", "https://app.example/cb", "https://app.example/cb?x=1", false},
		"a fragment":                    {"app", "https://app.example/cb#a", "https://app.example/cb#a", false},
		"a port of https":               {"app", "https://app.example/cb", "https://app.example:8443/cb", false},
		"user information":              {"app", "https://app.example/cb", "https://evil@app.example/cb", false},
		"any port of this computer":     {"app", "http://127.0.0.1/cb", "http://127.0.0.1:51234/cb", true},
		"any port of localhost":         {"app", "http://localhost/cb", "http://localhost:1/cb", true},
		"any port of IPv6":              {"app", "http://[::1]/cb", "http://[::1]:65535/cb", true},
		"any port without a path":       {"app", "http://localhost", "http://localhost:80", true},
		"a registered port":             {"app", "http://localhost:3000/cb", "http://localhost:3000/cb", true},
		"another than a registered one": {"app", "http://localhost:3000/cb", "http://localhost:3001/cb", false},
		"without the registered port":   {"app", "http://localhost:3000/cb", "http://localhost/cb", false},
		"another name of this computer": {"app", "http://localhost/cb", "http://127.0.0.1:3000/cb", false},
		"another path":                  {"app", "http://localhost/cb", "http://localhost:3000/other", false},
		"a host that begins so":         {"app", "http://localhost/cb", "http://localhost.evil.example/cb", false},
		"a host after the port":         {"app", "http://localhost/cb", "http://localhost:80@evil.example/cb", false},
		"a host in the port":            {"app", "http://localhost/cb", "http://localhost:80.evil.example/cb", false},
		"no port":                       {"app", "http://localhost/cb", "http://localhost:/cb", false},
		"a port that is none":           {"app", "http://localhost/cb", "http://localhost:65536/cb", false},
		"port 0":                        {"app", "http://localhost/cb", "http://localhost:0/cb", false},
		"a port with a sign":            {"app", "http://localhost/cb", "http://localhost:+80/cb", false},
		"https of this computer":        {"app", "http://localhost/cb", "https://localhost:80/cb", false},
		"http elsewhere":                {"app", "http://app.example/cb", "http://app.example/cb", false},
		"a scheme of its own":           {"app", "com.example.app:/cb", "com.example.app:/cb", true},
		"a scheme, by document":         {"https://app.example/id", "com.example.app:/cb", "com.example.app:/cb", false},
		"this computer, by document":    {"https://app.example/id", "http://localhost/cb", "http://localhost:2/cb", true},
		"nothing":                       {"app", "https://app.example/cb", "", false},
	} {
		client := oauth.Client{ID: c.id, RedirectURIs: []string{"https://other.example/", c.own}}
		if got := client.Redirects(c.uri); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestDocumentURLs checks which ids may be read as documents (contract T-5), and whose host is admitted.
func TestDocumentURLs(t *testing.T) {
	t.Parallel()
	for id, want := range map[oauth.ClientID]bool{
		"https://app.example/client.json":      true,
		"https://app.example:8443/a/b":         true,
		"https://app.example/":                 true,
		"https://app.example":                  false,
		"http://app.example/client":            false,
		"HTTPS://app.example/client":           false,
		"https://app.example/a/../client":      false,
		"https://app.example/a/%2e%2E/client":  false,
		"https://app.example/./client":         false,
		"https://app.example/client?x=1":       false,
		"https://app.example/client#x":         false,
		"https://user@app.example/client":      false,
		"https://app.example\\@evil.example/a": false,
		"https:///client":                      false,
		"https://äpp.example/client":           false,
		"https://app.example/client\u212a":     false,
	} {
		if got := id.IsDocumentURL(); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	hosts := []string{"app.example", "own.example:8443", "https://one.example/client"}
	for id, want := range map[oauth.ClientID]bool{
		"https://app.example/client":           true,
		"https://APP.example:443/client":       true,
		"https://app.example:8443/client":      false,
		"https://app.example.evil.example/c":   false,
		"https://evil.example/app.example":     false,
		"https://own.example:8443/client":      true,
		"https://own.example/client":           false,
		"https://one.example/client":           true,
		"https://one.example/client/more":      false,
		"https://sub.app.example/client":       false,
		"https://app.example@evil.example/app": false,
	} {
		if got := id.IsDocumentURL() && id.IsOf(hosts); got != want {
			t.Errorf("the host of %s: %v, want %v", id, got, want)
		}
	}
}

// TestAnswerURL checks that what a redirect URI has stays, and that nothing can be added to it by a value.
func TestAnswerURL(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://app.example/cb":     "https://app.example/cb?code=a&state=x%26iss%3Devil",
		"https://app.example/cb?t=1": "https://app.example/cb?t=1&code=a&state=x%26iss%3Devil",
		"https://app.example/cb?":    "https://app.example/cb?code=a&state=x%26iss%3Devil",
		"com.example.app:/cb":        "com.example.app:/cb?code=a&state=x%26iss%3Devil",
	} {
		got := oauth.AnswerURL(uri, [2]string{"code", "a"}, [2]string{"none", ""}, [2]string{"state", "x&iss=evil"})
		if got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}

// TestRedirectHost checks the host by which a consent is remembered, and the warning about this computer.
func TestRedirectHost(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://App.example:8443/cb": "app.example:8443", "http://localhost:51234/cb": "localhost",
		"http://[::1]:2/cb": "::1", "com.example.app:/cb": "com.example.app:",
		"cursor://Bank.example/cb": "cursor://bank.example", // which is no web site
	} {
		if got := oauth.RedirectHost(uri); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
		local := oauth.Client{RedirectURIs: []string{"http://localhost/cb", uri}}
		if got := local.IsLocal(); got == (uri[:5] == "https") {
			t.Errorf("%s is on this computer: %v", uri, got)
		}
	}
}

// TestTerms checks that a consent ends with other redirect URIs and other keys only.
func TestTerms(t *testing.T) {
	t.Parallel()
	before := oauth.Client{Name: "A", RedirectURIs: []string{"https://a.example/1", "https://a.example/2"}, JWKS: "{}"}
	same := before
	same.Name, same.RedirectURIs = "B", []string{"https://a.example/2", "https://a.example/1"}
	if same.Terms() != before.Terms() {
		t.Error("another name, or order, has other terms")
	}
	for name, change := range map[string]func(*oauth.Client){
		"a redirect URI": func(c *oauth.Client) { c.RedirectURIs = c.RedirectURIs[:1] },
		"keys":           func(c *oauth.Client) { c.JWKS = `{"keys":[]}` },
		"a set":          func(c *oauth.Client) { c.JWKSURI = "https://a.example/keys" },
	} {
		other := before
		if change(&other); other.Terms() == before.Terms() {
			t.Errorf("other terms: %s", name)
		}
	}
}
