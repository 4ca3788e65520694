package toolserver_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// TestCanonicalURL checks which URLs are the same, and which are not URLs: what looks alike is different.
func TestCanonicalURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://wiki.example/mcp":          "https://wiki.example/mcp",
		"HTTPS://Wiki.Example/mcp":          "https://wiki.example/mcp",
		"https://wiki.example:443/mcp":      "https://wiki.example/mcp",
		"https://wiki.example/mcp/":         "https://wiki.example/mcp",
		"https://wiki.example/":             "https://wiki.example",
		"https://wiki.example":              "https://wiki.example",
		"http://localhost:80/mcp":           "http://localhost/mcp",
		"https://wiki.example:8443/mcp":     "https://wiki.example:8443/mcp",
		"https://wiki.example:80/mcp":       "https://wiki.example:80/mcp",
		"https://wiki.example/mcp//":        "https://wiki.example/mcp/",
		"https://wiki.example/MCP":          "https://wiki.example/MCP",
		"https://wiki.example/%6Dcp":        "https://wiki.example/%6Dcp",
		"https://wiki.example/a/../mcp":     "https://wiki.example/a/../mcp",
		"https://wiki.example/mcp?q=a/":     "https://wiki.example/mcp?q=a/",
		"https://wiki.example?q=a":          "https://wiki.example?q=a",
		"https://wiki.example/mcp/?":        "https://wiki.example/mcp?",
		"https://wiki.example./mcp":         "https://wiki.example./mcp",
		"https://wiki.example:0443/mcp":     "https://wiki.example:0443/mcp",
		"https://[2001:DB8::1]:443/":        "https://[2001:db8::1]",
		"https://xn--bcher-kva.example/mcp": "https://xn--bcher-kva.example/mcp",

		"https://wi\u212Ai.example/mcp":                        "", // the sign for Kelvin has the lower case k
		"https://wi%E2%84%AAi.example/mcp":                     "",
		"https://bücher.example/mcp":                           "",
		"https://wiki.example/m\u0441p":                        "",
		"https://user@wiki.example/mcp":                        "",
		"https://wiki.example@evil.example/mcp":                "",
		"https://wiki.example\\@evil.example/mcp":              "",
		"https://wiki.example/mcp#":                            "",
		"https://wiki.example/mcp#a":                           "",
		"https://wiki.example/m cp":                            "",
		"https://wiki.example/mcp\n":                           "",
		"//wiki.example/mcp":                                   "",
		"/mcp":                                                 "",
		"https:wiki.example/mcp":                               "",
		"https:///mcp":                                         "",
		"ftp://wiki.example/mcp":                               "",
		"":                                                     "",
		"https://wiki.example/" + strings.Repeat("a", 2048-20): "",
	} {
		if got, ok := toolserver.CanonicalURL(text); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v, want %q", text, got, ok, want)
		}
	}
}
