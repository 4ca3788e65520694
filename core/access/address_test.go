package access_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/test/must"
)

func mustName(t testing.TB, s string) toolserver.Name {
	t.Helper()
	name, err := toolserver.ParseName(s)
	must.Succeed(t, err)
	return name
}

// TestAddresses has the sentences of contract Z-5: scheme, host and path, the longest path at a
// slash, and spellings of one address.
func TestAddresses(t *testing.T) {
	t.Parallel()
	var servers []access.Listing
	for name, remotes := range map[string][]string{
		"a/root": {"https://tools.example.com/"}, "a/mcp": {"https://tools.example.com/mcp", "https://tools.example.com/mcp/"},
		"a/deep": {"https://Tools.Example.com:443/mcp/deep/"}, "a/port": {"https://tools.example.com:8443/mcp"},
		"a/plain": {"http://tools.example.com:80/mcp"}, "a/space": {"https://tools.example.com/a%20b"},
		"a/template": {"https://{tenant}.example.com/mcp"}, "a/six": {"https://[2001:db8::1]:8443/"},
		"a/only": {"https://only.example.com/mcp"},
	} {
		servers = append(servers, access.Listing{Name: mustName(t, name), Remotes: remotes})
	}
	s := access.Compile(access.Options{}, nil, servers)
	for _, c := range []struct{ scheme, host, path, want string }{
		{"https", "tools.example.com", "/mcp", "a/mcp"}, {"https", "tools.example.com", "/mcp/", "a/mcp"},
		{"https", "tools.example.com", "/mcp/x", "a/mcp"}, {"https", "tools.example.com", "/mcp?x=/deep", "a/mcp"},
		{"https", "tools.example.com", "/mcp/deep", "a/deep"}, {"https", "tools.example.com", "/mcp/deep/x", "a/deep"},
		{"https", "tools.example.com", "/mcp/deeper", "a/mcp"}, {"https", "tools.example.com", "/mcpx", "a/root"},
		{"https", "tools.example.com", "", "a/root"}, {"https", "tools.example.com", "/", "a/root"},
		{"HTTPS", "TOOLS.example.COM.", "/mcp", "a/mcp"}, {"https", "tools.example.com:443", "/mcp", "a/mcp"},
		{"https", "tools.example.com.:443", "/mcp", "a/mcp"}, {"https", "tools.example.com.:8443", "/mcp", "a/port"},
		{"https", "tools.example.com:8443", "/mcp", "a/port"}, {"https", "tools.example.com:8443", "/", ""},
		{"https", "tools.example.com:80", "/mcp", ""}, {"http", "tools.example.com", "/mcp", "a/plain"},
		{"http", "tools.example.com", "/", ""}, {"https", "[2001:DB8::1]:8443", "/x", "a/six"},
		{"https", "tools.example.com", "//mcp//deep", "a/deep"}, {"https", "tools.example.com", "/x/../mcp", "a/mcp"},
		{"https", "tools.example.com", "/mcp/../", "a/root"}, {"https", "tools.example.com", "/mcp/%2e%2e/", "a/root"},
		{"https", "tools.example.com", "/../../mcp/./deep", "a/deep"}, {"https", "tools.example.com", "/%6dcp", "a/mcp"},
		{"https", "tools.example.com", "/a%20b/c", "a/space"}, {"https", "tools.example.com", "/MCP", "a/root"},
		{"https", "tools.example.com", "/mcp/..%2f", ""}, {"https", "tools.example.com", "/mcp%2Fdeep", ""},
		{"https", "tools.example.com", `/mcp/..\`, ""}, {"https", "tools.example.com", "/mcp%00", ""},
		{"https", "tools.example.com", "/mcp%5cx", ""}, {"https", "tools.example.com", "/mcp%", ""},
		{"https", "tools.example.com", "/mcp%zz", ""}, {"https", "tools.example.com", "/mcp\r", ""},
		{"https", "tools.example.com", "mcp", ""}, {"https", "only.example.com", "/", ""},
		{"https", "x@tools.example.com", "/mcp", ""}, {"https", "tools.example.com/mcp", "", ""}, {"", "tools.example.com", "/mcp", ""},
		{"https", "", "/mcp", ""}, {"https", "{tenant}.example.com", "/mcp", ""}, {"https", "other.example.com", "/mcp", ""},
	} {
		q := access.Question{Subject: &access.Subject{}, Address: access.Address{Scheme: c.scheme, Host: c.host, Path: c.path}}
		d := s.Decide(&q)
		if d.Server != c.want || (d.Reason == access.NotListed) != (c.want == "") {
			t.Errorf("%s://%s%s: %+v, want %q", c.scheme, c.host, c.path, d, c.want)
		}
	}
}
