package access_test

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/access"
)

// TestResources checks what clients compare with the address that they called, and which addresses have no
// resource.
func TestResources(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("a", 1024-len("https://a.example")-1)
	for _, c := range []struct{ scheme, host, path, want string }{
		{"https", "tools.example.com", "/weather/mcp", "https://tools.example.com/weather/mcp"},
		{"HTTPS", "Tools.Example.COM:443", "/weather/MCP/", "https://tools.example.com/weather/MCP/"},
		{"http", "127.0.0.1:20470", "/mcp?token=secret", "http://127.0.0.1:20470/mcp"},
		{"http", "a.example:80", "/", "http://a.example"}, {"http", "a.example:443", "", "http://a.example:443"},
		{"https", "[2001:DB8::1]:8443", "/%c3%a9", "https://[2001:db8::1]:8443/%c3%a9"},
		{"https", "a.example", long, "https://a.example" + long}, {"https", "a.example", long + "a", ""},
		{"wss", "a.example", "/", ""}, {"javascript", "a.example", "/", ""}, {"", "a.example", "/", ""}, {"https", "", "/", ""},
		{"https", "x@a.example", "/", ""}, {"https", "a.example.", "/", ""}, {"https", "a.example:", "/", ""}, {"https", "a.example:x", "/", ""},
		{"https", "a.example", `/a"b`, ""}, {"https", "a.example", "/a\r\nb", ""}, {"https", "a.example", "/a b", ""}, {"https", "a.example", "/a#b", ""},
		{"https", `a.example"`, "/", ""}, {"https", "a.example\r\nx: y", "/", ""}, {"https", "a.ex\x00mple", "/", ""}, {"https", "\u00e4.example", "/", ""},
		{"https", "a.example", "/a/../b", ""}, {"https", "a.example", "//a", ""}, {"https", "a.example", "/a%2fb", ""}, {"https", "a.example", "a", ""},
	} {
		got, ok := access.Address{Scheme: c.scheme, Host: c.host, Path: c.path}.Resource()
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%q %q %q: %q, %t", c.scheme, c.host, c.path, got, ok)
		}
	}
}

// TestResourcesAreAddresses checks for any address that its resource is one in which every parser reads the
// same, that nothing in it can end a quoted text of a header, and that it is its own resource.
func TestResourcesAreAddresses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.SampledFrom([]rune("abZ09.-_:/@%2eE;?#\"\\ \r\n\u212a\u00e9{}[]+&=")), 0, 12, -1)
		a := access.Address{
			Scheme: rapid.SampledFrom([]string{"http", "https", "HTTPS", "ftp", ""}).Draw(t, "scheme"),
			Host:   part.Draw(t, "host"), Path: "/" + part.Draw(t, "path"),
		}
		resource, ok := a.Resource()
		if !ok {
			return
		}
		u, err := url.Parse(resource)
		if err != nil || strings.ContainsAny(resource, "\"\\?#@ \r\n") && !strings.Contains(u.Path, "@") || u.User != nil || u.RawQuery != "" {
			t.Fatalf("%+v: %q, error %v", a, resource, err)
		}
		again, ok := access.Address{Scheme: u.Scheme, Host: u.Host, Path: u.EscapedPath()}.Resource()
		if !ok || again != resource {
			t.Fatalf("%q has the resource %q", resource, again)
		}
	})
}
