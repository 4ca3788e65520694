package registry

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestURI(t *testing.T) {
	t.Parallel()
	good := []string{
		"https://example.com", "HTTP://EXAMPLE.COM/a?b=c#d", "https://example.com:65535/", "https://[2001:db8::1]:80/",
		"https://user@example.com/%20",
		"https://example.com/é", "https://xn--bcher-kva.example/",
	}
	for _, s := range good {
		if p := uriRule(webSchemes...)(s); p != nil {
			t.Errorf("%q: %s, want it accepted", s, p.sentence)
		}
	}
	bad := []string{
		"", " ", "example.com", "//example.com/a", "/a", "https:", "https://", "https:///a", "https://:80/",
		"https:example.com", "https://example.com:65536",
		"https://example.com:http", "https://example.com/a b", "https://example.com/\n", "https://example.com/{a}",
		"https://example.com/%zz", "https://[::1/",
		`https://example.com/"`, `https:\\example.com`, "ftp://example.com", "javascript:alert(1)",
		"mailto:a@example.com",
	}
	for _, s := range bad {
		if uriRule(webSchemes...)(s) == nil {
			t.Errorf("%q is accepted, want it refused", s)
		}
	}
	for s, want := range map[string]bool{
		"urn:example:a": true, "file:///a": true, "tag:example.com,2026:a": true, "a": false, "urn:": false,
		"://a": false,
	} {
		if got := uriRule()(s) == nil; got != want {
			t.Errorf("%q of any scheme is accepted: %t, want %t", s, got, want)
		}
	}
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"https://{tenant}.example.com:{port}/{path}?q={q}": "https://1.example.com:1/1?q=1",
		"{origin}":               "https://host.example",
		"{origin}/mcp":           "https://host.example/mcp",
		"{scheme}://{host}/mcp":  "https://1/mcp",
		"{host}:{port}/mcp":      "https://host.example:1/mcp",
		"HTTP://localhost/{}":    "",
		"http://localhost/{{a}":  "",
		"http://localhost/a}":    "",
		"{}://localhost/":        "",
		"http://{a}{b}/":         "http://11/",
		"http://h:{a}x/":         "",
		"ws://{host}/":           "",
		" http://localhost/":     "",
		"http://localhost/{a b}": "http://localhost/1",
		"localhost":              "",
		"":                       "",
	} {
		p := templateProblem(s)
		if (p == nil) != (want != "") {
			t.Errorf("%q: %+v, want accepted: %t", s, p, want != "")
		}
		if got := fillVariables(s); want != "" && got != want {
			t.Errorf("%q filled in is %q, want %q", s, got, want)
		}
	}
	if got := variablesIn("{b}{a}/{b}{}{{c}}"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("variables = %q", got)
	}
}

func TestKindOfSentence(t *testing.T) {
	t.Parallel()
	draft, err := ParseDraft([]byte(`{"name":"com.example/a","description":"d","version":"latest","descriptions":"x"}`))
	must.Succeed(t, err)
	_, err = draft.Document()
	const want = `document breaks 2 rules: version must be a specific version, not "latest"; ` +
		`descriptions is not a property of ServerDetail, the most similar one is "description"`
	if f, ok := fault.As(err); !ok || f.Message != want {
		t.Errorf("Document = %v, want %s", err, want)
	}
}
