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

// disputed is what the address of no one server leads to.
const disputed = "disputed"

// TestAddresses has the sentences of contract Z-5: scheme, host and path, the longest path at a
// slash, and the spellings in which an address leads nowhere.
func TestAddresses(t *testing.T) {
	t.Parallel()
	var servers []access.Listing
	for name, remotes := range map[string][]string{
		"a/root": {"https://tools.example.com/"}, "a/mcp": {"https://tools.example.com/mcp", "https://tools.example.com/mcp/"},
		"a/deep": {"https://Tools.Example.com:443/mcp/deep/"}, "a/port": {"https://tools.example.com:8443/mcp"},
		"a/plain": {"http://tools.example.com:80/mcp"}, "a/space": {"https://tools.example.com/a%20b"},
		"a/template": {"https://{tenant}.example.com/mcp"}, "a/six": {"https://[2001:db8::1]:8443/"},
		"a/only": {"https://only.example.com/mcp"}, "a/accent": {"https://tools.example.com/caf\u00e9"},
		"a/scoped": {"https://tools.example.com/@org/b+c"}, "a/cases": {"https://cases.example.com/mcp", "https://cases.example.com/Mcp"},
		"a/tenants": {"https://tenants.example.com/t/{tenant}/mcp"}, "a/keys": {"https://keys.example.com/mcp?key={key}"},
	} {
		servers = append(servers, access.Listing{Name: mustName(t, name), Remotes: remotes})
	}
	s := access.Compile(access.Options{}, nil, servers)
	for _, c := range []struct{ scheme, host, path, want string }{
		{"https", "tools.example.com", "/mcp", "a/mcp"}, {"https", "tools.example.com", "/mcp/", "a/mcp"},
		{"https", "tools.example.com", "/mcp/x", "a/mcp"}, {"https", "tools.example.com", "/mcp?x=/../deep;", "a/mcp"},
		{"https", "tools.example.com", "/mcp/deep", "a/deep"}, {"https", "tools.example.com", "/mcp/deep/x", "a/deep"},
		{"https", "tools.example.com", "/mcp/deeper", "a/mcp"}, {"https", "tools.example.com", "/mcpx", "a/root"},
		{"https", "tools.example.com", "", "a/root"}, {"https", "tools.example.com", "/", "a/root"},
		{"HTTPS", "TOOLS.example.COM", "/mcp", "a/mcp"}, {"https", "tools.example.com:443", "/mcp", "a/mcp"},
		{"https", "tools.example.com:8443", "/mcp", "a/port"}, {"https", "tools.example.com:8443", "/", ""},
		{"http", "tools.example.com", "/mcp", "a/plain"}, {"http", "tools.example.com", "/", ""},
		{"https", "[2001:DB8::1]:8443", "/x", "a/six"}, {"https", "cases.example.com", "/Mcp/x", "a/cases"},
		{"https", "tools.example.com", "/a%20b/c", "a/space"}, {"https", "tools.example.com", "/caf%c3%A9/x", "a/accent"},
		{"https", "tools.example.com", "/@org/b+c", "a/scoped"}, {"https", "only.example.com", "/", ""},
		{"https", "other.example.com", "/mcp", ""}, {"https", "other.example.com:8443", "/a/../b", ""},
		{"https", "tenants.example.com", "/t/acme/mcp", "a/tenants"}, {"https", "tenants.example.com", "/t", "a/tenants"},
		{"https", "tenants.example.com", "/ta", ""}, {"https", "keys.example.com", "/mcp?key=x", "a/keys"},
		// a path in other case, for which some routers take it
		{"https", "tools.example.com", "/MCP", disputed}, {"https", "tools.example.com", "/mcp/Deep/x", disputed},
		{"https", "cases.example.com", "/MCP", disputed}, {"https", "tenants.example.com", "/T/acme", disputed},
		// another port or scheme of a known host
		{"https", "tools.example.com:80", "/mcp", disputed}, {"http", "only.example.com", "/mcp", disputed},
		{"wss", "tools.example.com", "/mcp", disputed}, {"https", "tools.example.com:08443", "/mcp", disputed},
		{"https", "tools.example.com:", "/mcp", disputed}, {"https", "[2001:db8::1]", "/", disputed},
		// hosts that cannot be read
		{"https", "tools.example.com.", "/mcp", disputed}, {"https", "tools.example.com.:443", "/mcp", disputed},
		{"https", "tools.example.com..", "/mcp", disputed}, {"https", "x@tools.example.com", "/mcp", disputed},
		{"https", "tools.example.com/mcp", "", disputed}, {"", "tools.example.com", "/mcp", disputed}, {"https", "", "/mcp", disputed},
		{"https", "{tenant}.example.com", "/mcp", disputed}, {"https", "t\u00f6ols.example.com", "/mcp", disputed},
		{"https", "to\u212als.example.com", "/mcp", disputed},
		{"https", "tools.example.com:8443:443", "/mcp", disputed}, {"https", "tools.example.com%2e", "/mcp", disputed},
		// dot segments and slashes
		{"https", "tools.example.com", "//mcp//deep", disputed}, {"https", "tools.example.com", "/x/../mcp", disputed},
		{"https", "tools.example.com", "/mcp/..", disputed}, {"https", "tools.example.com", "/mcp/%2e%2e/", disputed},
		{"https", "tools.example.com", "/mcp/.%2E/", disputed}, {"https", "tools.example.com", "/mcp/./deep", disputed},
		{"https", "tools.example.com", "/mcp/..%2f", disputed}, {"https", "tools.example.com", "/mcp%2Fdeep", disputed},
		{"https", "tools.example.com", `/mcp/..\`, disputed}, {"https", "tools.example.com", "/mcp%5cx", disputed},
		{"https", "tools.example.com", "/mcp/..;/", disputed}, {"https", "tools.example.com", "/mcp;x=1", disputed},
		{"https", "tools.example.com", "/mcp%3bx", disputed}, {"https", "tools.example.com", "mcp", disputed},
		// characters that may stand encoded or not
		{"https", "tools.example.com", "/%6dcp", disputed}, {"https", "tools.example.com", "/%40org/b+c", disputed},
		{"https", "tools.example.com", "/@org/b%2Bc", disputed}, {"https", "tools.example.com", "/caf\u00e9", disputed},
		{"https", "tools.example.com", "/a b", disputed}, {"https", "tools.example.com", "/mcp%2520", disputed},
		{"https", "tools.example.com", "/mcp%00", disputed}, {"https", "tools.example.com", "/mcp%", disputed},
		{"https", "tools.example.com", "/mcp%zz", disputed}, {"https", "tools.example.com", "/mcp\r", disputed},
		{"https", "tools.example.com", "/mcp#x", disputed},
	} {
		q := access.Question{Subject: &access.Subject{}, Address: access.Address{Scheme: c.scheme, Host: c.host, Path: c.path}}
		d := s.Decide(&q)
		got := d.Server
		if d.Reason == access.Disputed {
			got = disputed
		}
		if got != c.want || (d.Reason == access.NotListed) != (c.want == "") {
			t.Errorf("%s://%s%s: %+v, want %q", c.scheme, c.host, c.path, d, c.want)
		}
	}
}
