package mirror

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestParseURL checks which addresses a mirror may have, and that they end without a slash
// (contract C-60).
func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://registry.example.com":         "https://registry.example.com",
		"https://registry.example.com/":        "https://registry.example.com",
		"https://registry.example.com//":       "https://registry.example.com",
		"http://127.0.0.1:8080":                "http://127.0.0.1:8080", // an operator may give a private address
		"http://[fd00::1]:8080/registry/":      "http://[fd00::1]:8080/registry",
		"HTTPS://example.com":                  "HTTPS://example.com",
		"https://example.com/t/secret/":        "https://example.com/t/secret",
		"https://example.com/v0.1x":            "https://example.com/v0.1x",
		"https://" + strings.Repeat("a", 2040): "https://" + strings.Repeat("a", 2040),
	} {
		if u, err := ParseURL(text); err != nil || u.Address() != want {
			t.Errorf("ParseURL(%.80q) = %.80q, %v", text, u.Address(), err)
		}
	}
	for text, part := range map[string]string{
		"": "absolute", "registry.example.com": "absolute", "/v0.1": "absolute", "https:example.com": "absolute",
		"https://":     "absolute",
		"https://:443": "absolute", "https://exa mple.com": "absolute", "https://example.com/\n": "absolute",
		"https://exämple.com":      "absolute",
		"https://example.com:port": "absolute", "ftp://example.com": "begin with https:// or http://",
		"https://user@example.com": "user name or a password", "https://:word@example.com": "user name or a password",
		"https://example.com?a=b": "query or a fragment", "https://example.com?": "query or a fragment",
		"https://example.com#a": "query or a fragment",
		"https://example.com/#": "query or a fragment", "https://example.com/v0.1": "end before /v0.1",
		"https://example.com/v0.1/": "end before /v0.1",
		"https://example.com/v0":    "end before /v0.1", "https://example.com/v0.1/servers": "end before /v0.1",
		"https://" + strings.Repeat("a", 2041): "at most 2048 bytes",
	} {
		u, err := ParseURL(text)
		invalid(t, fmt.Sprintf("ParseURL(%.80q)", text), err, part)
		if u != "" {
			t.Errorf("ParseURL(%.80q) = %q", text, u.Address())
		}
	}
}

// TestURLHidesItsToken checks that no way to print a URL shows the token of a view.
func TestURLHidesItsToken(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://example.com":                   "https://example.com",
		"https://example.com/t/hush":            "https://example.com/t/***",
		"https://example.com/registry/t/hush/x": "https://example.com/registry/t/***/x",
		"https://example.com/team/x":            "https://example.com/team/x",
	} {
		u, err := ParseURL(text)
		must.Succeed(t, err)
		for _, got := range []string{
			u.Public(), u.String(), u.GoString(), fmt.Sprint(u), fmt.Sprintf("%v", u), fmt.Sprintf("%#v", u),
		} {
			wantEqual(t, got, want, "%s is shown as", text)
		}
		if shown := fmt.Sprintf("%+v", Mirror{URL: u}); strings.Contains(shown, "hush") {
			t.Errorf("a mirror is shown as %s", shown)
		}
		wantEqual(t, u.Address(), text, "the address of %s", text)
	}
}
