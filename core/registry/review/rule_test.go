package review_test

import (
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

const approvedDocument = `{
	"repository": {"url": "https://github.com/acme/tools", "source": "github", "id": "7"},
	"packages": [
		{"registryType": "npm", "identifier": "@acme/tools", "version": "1.0.0"},
		{"registryType": "pypi", "registryBaseUrl": "https://pypi.example.com", "identifier": "acme", "version": "1.0.0"}
	],
	"remotes": [{"type": "sse", "url": "https://mcp.acme.example/sse"}, {"type": "streamable-http", "url": "https://{region}.acme.example/mcp"}]
}`

func TestWithin(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]bool{
		`{}`: true,
		`{"packages":[{"registryType":"npm","identifier":"@acme/tools","version":"2.0.0"}]}`:                                                               true,
		`{"packages":[{"registryType":"npm","identifier":"@acme/tool","version":"2.0.0"}]}`:                                                                false,
		`{"packages":[{"registryType":"pypi","identifier":"@acme/tools"}]}`:                                                                                false,
		`{"packages":[{"registryType":"npm","registryBaseUrl":"https://other.example","identifier":"@acme/tools"}]}`:                                       false,
		`{"packages":[{"registryType":"pypi","registryBaseUrl":"https://pypi.example.com","identifier":"acme"}]}`:                                          true,
		`{"packages":[{"registryType":"pypi","identifier":"acme"}]}`:                                                                                       false,
		`{"packages":[{"registryType":"npm","identifier":"@acme/tools"},{"registryType":"npm","identifier":"evil"}]}`:                                      false,
		`{"Packages":[{"registryType":"npm","identifier":"@acme/tools"}],"packages":[{"registryType":"npm","identifier":"evil"}]}`:                         false,
		`{"packages":[{"registryType":"npm","identifier":"evil"}],"Packages":[{"registryType":"npm","identifier":"@acme/tools"}]}`:                         false,
		`{"packages":[{"registryType":"npm","identifier":"evil","Identifier":"@acme/tools"}]}`:                                                             false,
		`{"remotes":[{"url":"https://mcp.acme.example/v2?x=y#z"}]}`:                                                                                        true,
		`{"remotes":[{"url":"HTTPS://MCP.acme.example/v2"}]}`:                                                                                              true,
		`{"remotes":[{"url":"https://mcp.acme.example"}]}`:                                                                                                 true,
		`{"remotes":[{"url":"http://mcp.acme.example/sse"}]}`:                                                                                              false,
		`{"remotes":[{"url":"https://mcp.acme.example:8443/sse"}]}`:                                                                                        false,
		`{"remotes":[{"url":"https://mcp.acme.example.evil.example/sse"}]}`:                                                                                false,
		`{"remotes":[{"url":"https://mcp.acme.example@evil.example/sse"}]}`:                                                                                false,
		`{"remotes":[{"url":"https://evil.example\\@mcp.acme.example/sse"}]}`:                                                                              false,
		`{"remotes":[{"url":"https://{region}.acme.example/mcp"}]}`:                                                                                        false, // its variable may have other values
		`{"remotes":[{"url":"{base}/mcp"}]}`:                                                                                                               false,
		`{"repository":{"url":"https://github.com/acme/tools","id":"7"}}`:                                                                                  true,
		`{"repository":{"url":"https://github.com/acme/tools","id":"8"}}`:                                                                                  false,
		`{"repository":{"url":"https://github.com/acme/other","id":"7"}}`:                                                                                  false,
		`{"repository":{"url":"https://github.com/acme/tools"}}`:                                                                                           false,
		`{"repository":{"url":"https://github.com/acme/tools","id":"7"},"remotes":[{"url":"https://mcp.acme.example/x"}],"packages":[],"title":"Another"}`: true,
	} {
		origins, err := review.ReadOrigins([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		approved, err := review.ReadOrigins([]byte(approvedDocument))
		if err != nil {
			t.Fatal(err)
		}
		if got := origins.Within(approved); got != want {
			t.Errorf("%s is within the approved document: %v, want %v", document, got, want)
		}
	}
}

func FuzzReadOrigins(f *testing.F) {
	f.Add([]byte(approvedDocument))
	f.Add([]byte(`{"remotes":[{"url":"https://a/b"},3],"packages":{},"repository":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		origins, err := review.ReadOrigins(text)
		if err == nil && !origins.Within(origins) {
			// Only a remote without a fixed host is not among its own origins.
			open, err := review.ReadOrigins([]byte(`{"remotes":[{"url":"{host}"}]}`))
			if err != nil || open.Within(open) {
				t.Errorf("a remote with any host has the same origin, %v", err)
			}
		}
	})
}

func newRule(t *testing.T, id review.RuleID, pattern, publisher string, when review.When) review.Rule {
	t.Helper()
	p, err := registry.ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return review.Rule{ID: id, Pattern: p, Publisher: publisher, When: when}
}

func TestFirstRule(t *testing.T) {
	t.Parallel()
	name, err := registry.ParseName("com.example/weather")
	if err != nil {
		t.Fatal(err)
	}
	person, publisher := review.Submitter{Key: "ada"}, review.Submitter{Key: "dns:example.com", Policy: "policy"}
	other := newRule(t, "other", "com.exampleX/*", "", review.Any)
	anyRule := newRule(t, "any", "com.example/*", "", review.Any)
	same := newRule(t, "same", "com.example/weather", "", review.SameOrigins)
	ofAda := newRule(t, "ada", "*", "ada", review.Any)
	ofPolicy := newRule(t, "policy", "*", "policy", review.Any)
	for label, c := range map[string]struct {
		rules  []review.Rule
		by     review.Submitter
		within bool
		want   review.RuleID
		asked  bool
	}{
		"no rules":                 {nil, person, true, "", false},
		"another server":           {[]review.Rule{other}, person, true, "", false},
		"any":                      {[]review.Rule{other, anyRule}, person, false, "any", false},
		"same origins":             {[]review.Rule{same}, person, true, "same", true},
		"other origins":            {[]review.Rule{same}, person, false, "", true},
		"any makes the look vain":  {[]review.Rule{same, anyRule}, person, false, "any", false},
		"of a person":              {[]review.Rule{ofAda}, person, false, "ada", false},
		"of another person":        {[]review.Rule{ofAda}, review.Submitter{Key: "bea"}, true, "", false},
		"of a policy":              {[]review.Rule{ofAda, ofPolicy}, publisher, false, "policy", false},
		"a publisher is no person": {[]review.Rule{ofAda}, publisher, true, "", false},
	} {
		asked := false
		got, err := review.FirstRule(c.rules, name, c.by, func() (bool, error) { asked = true; return c.within, nil })
		if err != nil || got != c.want || asked != c.asked {
			t.Errorf("%s: FirstRule = %q, %v, asked for origins %v; want %q, %v", label, got, err, asked, c.want, c.asked)
		}
	}
	broken := errors.New("broken")
	if _, err := review.FirstRule([]review.Rule{same}, name, person, func() (bool, error) { return true, broken }); !errors.Is(err, broken) {
		t.Errorf("FirstRule: %v, want the error", err)
	}
}
