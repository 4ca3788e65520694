package registryapi_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
)

// readParameter is the scope that clients must request.
const readParameter = `scope="mcp-registry:read"`

// metadata is the metadata of a resource.
type metadata struct {
	Resource string
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// discover finds the metadata of a resource as MCP clients do: at the address in the challenge of a
// refused request, else at the well-known address with the path of the request, else at that of the
// root. The rule is that of discoverMetadataWithFallback, extractWWWAuthenticateParams and
// checkResourceAllowed of the TypeScript SDK (github.com/modelcontextprotocol/typescript-sdk,
// src/client/auth.ts and src/shared/auth-utils.ts), written anew.
func discover(t *testing.T, service, public, path string, useChallenge bool) metadata {
	t.Helper()
	const wellKnown = "/.well-known/oauth-protected-resource"
	method, body := "GET", ""
	if strings.HasSuffix(path, "/mcp") {
		method, body = "POST", "{}"
	}
	refused := call(t, method, service+path, body)
	u, err := url.Parse(public + path)
	if err != nil || refused.status != 401 {
		t.Fatalf("%v, %+v", err, refused)
	}
	addresses := []string{"https://" + u.Host + wellKnown + strings.TrimSuffix(u.Path, "/"), "https://" + u.Host + wellKnown}
	scheme, _, _ := strings.Cut(refused.header.Get("WWW-Authenticate"), " ")
	found := regexp.MustCompile(`resource_metadata="([^"]*)"`).FindStringSubmatch(refused.header.Get("WWW-Authenticate"))
	if !strings.EqualFold(scheme, "bearer") || found == nil || !strings.Contains(refused.header.Get("WWW-Authenticate"), readParameter) {
		t.Fatalf("no challenge in %v", refused.header)
	}
	if useChallenge {
		addresses = found[1:]
	}
	for _, address := range addresses {
		got := call(t, "GET", strings.Replace(address, public, service, 1), "")
		if got.status >= 400 && got.status < 500 && !useChallenge {
			continue
		}
		var m metadata
		if err := json.Unmarshal([]byte(got.body), &m); err != nil || got.status != 200 {
			t.Fatalf("%s: %d %s", address, got.status, got.body)
		}
		if !strings.HasPrefix(u.String()+"/", strings.TrimSuffix(m.Resource, "/")+"/") {
			t.Fatalf("the resource %s does not have %s", m.Resource, u)
		}
		return m
	}
	t.Fatalf("no metadata for %s", path)
	return metadata{}
}

// TestDiscovery: MCP clients find the metadata for every read, with and without the challenge.
func TestDiscovery(t *testing.T) {
	const public = "https://tools.example.com"
	service := servePrivate(t, registryapi.Resource{
		URL: public + "/", Name: "Tools", Servers: []string{"https://login.example.com"},
	})
	for path, resource := range map[string]string{
		"/v0.1/servers": public + "/v0.1", "/v0.1/servers/com.example%2Fa/versions/latest": public + "/v0.1",
		"/v0/servers": public, "/registries/all/v0.1/servers": public, "/registries/inner/install": public,
		"/mcp": public + "/mcp", "/registries/inner/mcp": public + "/registries/inner/mcp", "/registries/all/mcp": public + "/registries/all/mcp",
		"/registries/unknown/mcp": public + "/registries/unknown/mcp", "/registries/inner/t/wrong/mcp": public, "/mcp/server.json": public,
	} {
		for _, useChallenge := range []bool{true, false} {
			m := discover(t, service, public, path, useChallenge)
			if m.Resource != resource && useChallenge || m.Name != "Tools" || strings.Join(m.Servers, " ") != "https://login.example.com" ||
				strings.Join(m.Scopes, " ") != "mcp-registry:read" || strings.Join(m.Methods, " ") != "header" {
				t.Errorf("%s: %+v", path, m)
			}
			if strings.HasSuffix(path, "/mcp") && !strings.Contains(path, "/t/") && m.Resource != resource {
				t.Errorf("the well-known address of %s has the resource %s", path, m.Resource)
			}
		}
	}
	for _, path := range []string{"/registries/a%22b/mcp", "/registries/A/mcp", "/registries/" + strings.Repeat("a", 41) + "/mcp"} {
		if got := call(t, "POST", service+path, "{}").header.Get("WWW-Authenticate"); got != "Bearer "+readParameter+
			`, resource_metadata="`+public+`/.well-known/oauth-protected-resource"` {
			t.Errorf("%s has the challenge %s", path, got)
		}
		if got := call(t, "GET", service+"/.well-known/oauth-protected-resource"+path, ""); got.status != 400 {
			t.Errorf("the metadata of %s: %d %s", path, got.status, got.body)
		}
	}
	if got := call(t, "GET", service+"/.well-known/oauth-protected-resource/v0.1", "").body; !strings.Contains(got, `"resource":"`+public+`/v0.1"`) {
		t.Errorf("the metadata of the API is %s", got)
	}
}

// TestDiscoveryBehindAPath: the metadata is below the path of the URL, and after it.
func TestDiscoveryBehindAPath(t *testing.T) {
	const public = "https://tools.example.com/registry"
	service := servePrivate(t, registryapi.Resource{URL: public, Name: "Tools"})
	m := discover(t, service, public, "/v0.1/servers", true)
	inserted := call(t, "GET", service+"/.well-known/oauth-protected-resource/registry/v0.1", "")
	if m.Resource != public+"/v0.1" || m.Servers != nil || inserted.status != 200 ||
		!strings.Contains(inserted.body, m.Resource) || strings.Contains(inserted.body, "authorization_servers") {
		t.Errorf("%+v, %s", m, inserted.body)
	}
	for _, path := range []string{"/mcp", "/registries/inner/mcp"} {
		inserted := call(t, "GET", service+"/.well-known/oauth-protected-resource/registry"+path, "")
		if !strings.Contains(inserted.body, `"resource":"`+public+path+`"`) {
			t.Errorf("%s: %+v", path, inserted)
		}
	}
}

// TestDiscoveryOfServers: the metadata of a tool server is that of the address which a client has called, under its
// name and without one, and is the same whether the registry knows the server or not.
func TestDiscoveryOfServers(t *testing.T) {
	const place = "/.well-known/oauth-protected-resource/servers"
	r := registryapi.Resource{URL: "https://registry.example.com", Name: "Tools", Servers: []string{"https://login.example.com"}, Decides: true}
	service := servePrivate(t, r)
	for path, want := range map[string]struct{ resource, name string }{
		"?resource=https%3A%2F%2Ftools.example.com%2Fmcp":                      {"https://tools.example.com/mcp", "Tools"},
		"?resource=https://tools.example.com/mcp/&x=y":                         {"https://tools.example.com/mcp/", "Tools"},
		"/com.example/a?resource=http%3A%2F%2F127.0.0.1%3A8080%2Fa%2Fmcp":      {"http://127.0.0.1:8080/a/mcp", "com.example/a"},
		"/com.example%2Fa?resource=https%3A%2F%2Ftools.example.com":            {"https://tools.example.com", "com.example/a"},
		"/com.example%2Fno-such?resource=https%3A%2F%2Ftools.example.com":      {"https://tools.example.com", "com.example/no-such"},
		"/com.example/a?resource=https%3A%2F%2Ftools.example.com%2F%2540b%2Fc": {},
		"": {}, "/com.example/a": {}, "?resource=": {}, "?resource=mcp": {}, "?resource=%2F%2Ftools.example.com%2Fmcp": {},
		"?resource=ftp%3A%2F%2Ftools.example.com": {}, "?resource=javascript%3Aalert(1)": {}, "?resource=https%3A%2F%2Fx%40tools.example.com": {},
		"?resource=https%3A%2F%2FTools.example.com%3A443%2F": {"https://tools.example.com", "Tools"},
		"?resource=https%3A%2F%2Ftools.example.com%2F%23a":   {}, "?resource=https%3A%2F%2Ftools.example.com.": {},
		"?resource=https%3A%2F%2Ftools.example.com%2F%3Cscript%3E": {"https://tools.example.com/%3Cscript%3E", "Tools"},
		"?resource=https%3A%2F%2Ftools.example.com%2F%22%0D%0A":    {}, "?resource=https%3A%2F%2Ftools.example.com%2Fa%3Fb": {},
		"?resource=https%3A%2F%2Ftools.example.com%2F..%2Fa": {}, "?resource=%ff": {}, "?resource=https://a.example/" + strings.Repeat("a", 1024): {},
		"/com.example?resource=https%3A%2F%2Ftools.example.com": {}, "/a%2Fb/c?resource=https%3A%2F%2Ftools.example.com": {}, "/a%2Fb%2Fc?resource=https%3A%2F%2Ftools.example.com": {},
		"/a/%3Cb%3E?resource=https%3A%2F%2Ftools.example.com": {}, "/%ff?resource=https%3A%2F%2Ftools.example.com": {},
	} {
		got := call(t, "GET", service+place+path, "", "Host", "evil.example")
		if want.resource == "" {
			if got.status != 400 || got.header.Get("ETag") != "" {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
			continue
		}
		var m metadata
		err := json.Unmarshal([]byte(got.body), &m)
		if err != nil || got.status != 200 || m.Resource != want.resource || m.Name != want.name || strings.Join(m.Scopes, " ") != "mcp-registry:read" ||
			strings.Join(m.Servers, " ") != "https://login.example.com" || strings.Join(m.Methods, " ") != "header" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		if h := got.header; h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Cache-Control") != "no-cache" || h.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s has the headers %v", path, h)
		}
	}
	r.Decides = false
	if got := call(t, "GET", servePrivate(t, r)+place+"?resource=https%3A%2F%2Ftools.example.com", ""); got.status != 404 {
		t.Errorf("without decisions: %d %s", got.status, got.body)
	}
}

// TestChallenges: a refusal says whether the token is bad, and which scope an OAuth client requests: none for what no
// foreign token may do, and never one of the service's own tokens for a read.
func TestChallenges(t *testing.T) {
	for _, url := range []string{"", "https://tools.example.com"} {
		service := servePrivate(t, registryapi.Resource{URL: url})
		for name, c := range map[string]struct{ method, path, who, want string }{
			"nobody reads":                 {"GET", "/v0.1/servers", "", readParameter},
			"nobody uses the MCP server":   {"POST", "/mcp", "", readParameter},
			"nobody publishes":             {"POST", "/v0.1/publish", "", ""},
			"a bad token reads":            {"GET", "/v0.1/servers", "bad", `error="invalid_token", ` + readParameter},
			"a bad token uses MCP":         {"POST", "/registries/all/mcp", "bad", `error="invalid_token", ` + readParameter},
			"a bad token publishes":        {"POST", "/v0.1/publish", "bad", `error="invalid_token"`},
			"an own token without a scope": {"GET", "/v0.1/servers", "editor", `error="insufficient_scope", ` + readParameter},
		} {
			got := call(t, c.method, service+c.path, "{}", "Authorization", "Bearer "+c.who)
			if c.who == "" {
				got = call(t, c.method, service+c.path, "{}")
			}
			challenge, metadata, _ := strings.Cut(got.header.Get("WWW-Authenticate"), "resource_metadata=")
			if strings.TrimRight(challenge, ", ") != strings.TrimSpace("Bearer "+c.want) || (metadata == "") != (url == "") {
				t.Errorf("%s: %d %s", name, got.status, got.header.Get("WWW-Authenticate"))
			}
		}
	}
}

// TestPrivateReads: a read needs a caller before anything of it is looked at, and its response is
// the caller's own.
func TestPrivateReads(t *testing.T) {
	service := servePrivate(t, registryapi.Resource{})
	for _, path := range []string{"/v0.1/servers", "/v0/servers/com.example%2Fa/versions", "/registries/all/v0.1/servers",
		"/registries/all/allowlist/claude.json"} {
		as := func(who string, header ...string) response {
			return call(t, "GET", service+path, "", append(header, "Authorization", "Bearer "+who)...)
		}
		got := as("ada low")
		tag := got.header.Get("ETag")
		if got.status != 200 || !strings.HasPrefix(got.header.Get("Cache-Control"), "private, ") ||
			got.header.Get("Vary") != "Accept-Encoding, Authorization" {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
		if got := as("bea", "If-None-Match", tag); got.status != 304 {
			t.Errorf("%s again: %d", path, got.status)
		}
		if got := as("ada risky", "If-None-Match", tag); got.status != 403 || got.header.Get("ETag") != "" {
			t.Errorf("%s at HIGH_RISK: %d %v", path, got.status, got.header)
		}
		for _, place := range []string{path, strings.Replace(path, "/all/", "/all/t/ada/", 1), path + "?limit=x"} {
			got := call(t, "GET", service+place, "", "If-None-Match", tag)
			if got.status != 401 || got.header.Get("WWW-Authenticate") != "Bearer "+readParameter || got.header.Get("ETag") != "" {
				t.Errorf("%s of no one: %d %v", place, got.status, got.header)
			}
		}
	}
	for path, want := range map[string]int{
		"/v0.1/ping": 200, "/v0.1/version": 200, "/registries/team/v0.1/servers": 200, "/registries/none/v0.1/servers": 401,
		"/registries/inner/t/secret/v0.1/servers": 200, "/.well-known/oauth-protected-resource": 404,
	} {
		if got := call(t, "GET", service+path, ""); got.status != want ||
			strings.Contains(got.header.Get("Cache-Control"), "private") != strings.Contains(path, "inner") {
			t.Errorf("%s: %d %v, want %d", path, got.status, got.header, want)
		}
	}
}

// readers are callers of whom some have a bad token, or one of the service without the scope for reading.
type readers struct{ authoritytest.Callers }

func (r readers) Identify(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	switch token {
	case "bad":
		return authority.Caller{}, fault.New(fault.Unauthenticated, "the token is not valid")
	case "scope":
		return authority.Caller{}, scope.Insufficient(scope.Publish)
	case "trust":
		return authority.Caller{}, trust.Require(auth.LimitedTrust, auth.FullTrust)
	case "editor":
		return authority.NewToken(authority.Token{Owner: "ada", Scopes: scope.Set{scope.Edit}}, from), nil
	}
	return r.Callers.Identify(ctx, token, from)
}

func (r readers) IdentifyReader(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	return r.Identify(ctx, token, from)
}

// servePrivate serves a registry whose reading needs a caller.
func servePrivate(t *testing.T, r registryapi.Resource) string {
	t.Helper()
	reads := newReads(newServers(t, record(t, "com.example/a", "1.0.0")), newViews(t))
	reads.Gate = newGate(viewing.Config{Private: true}, newViews(t))
	return serveAs(t, readers{}, registryapi.Config{
		Private: true, Resource: r, Serving: registryapi.Serving{MCP: true}, Log: discardLog(),
	}, reads)
}

// TestDiscoveryWithAuthorizationServer: with the authorization server, the registry is one resource at all of its paths,
// and clients learn which scope a write needs. A tool server has the issuer only if that issues tokens for it.
func TestDiscoveryWithAuthorizationServer(t *testing.T) {
	const public = "https://tools.example.com"
	service := servePrivate(t, registryapi.Resource{
		URL: public + "/", Name: "Tools", Issuer: public, Decides: true,
		Find: func(_ context.Context, address string) (*oauth.Resource, error) {
			switch address {
			case "https://away.example.com":
				return nil, fault.New(fault.Unavailable, "away")
			case "https://mail.example.com/mcp":
				return &oauth.Resource{Scopes: []string{"read", "send"}}, nil
			}
			return nil, fault.New(fault.NotFound, "no such resource")
		},
	})
	for _, path := range []string{"/v0.1/servers", "/v0/servers", "/registries/all/v0.1/servers", "/mcp", "/registries/inner/mcp"} {
		for _, useChallenge := range []bool{true, false} {
			m := discover(t, service, public, path, useChallenge)
			if m.Resource != public || strings.Join(m.Servers, " ") != public || strings.Join(m.Scopes, " ") != "mcp-registry:read mcp-registry:write" {
				t.Errorf("%s: %+v", path, m)
			}
		}
		if got := call(t, "GET", service+path, "").header.Get("WWW-Authenticate"); strings.HasPrefix(path, "/v0") &&
			got != "Bearer "+readParameter+`, resource_metadata="`+public+`/.well-known/oauth-protected-resource"` {
			t.Errorf("%s has the challenge %s", path, got)
		}
	}
	for address, want := range map[string]string{
		"https://mail.example.com/mcp": `{"resource":"https://mail.example.com/mcp","authorization_servers":["` + public +
			`"],"scopes_supported":["read","send"],"bearer_methods_supported":["header"],"resource_name":"Tools"}`,
		"https://other.example.com": `{"resource":"https://other.example.com","scopes_supported":["mcp-registry:read"],` +
			`"bearer_methods_supported":["header"],"resource_name":"Tools"}`,
		"https://away.example.com": `{"error":"away"}`,
	} {
		if got := call(t, "GET", service+"/.well-known/oauth-protected-resource/servers?resource="+url.QueryEscape(address), ""); got.body != want {
			t.Errorf("%s: %d %s", address, got.status, got.body)
		}
	}
	const place = `, resource_metadata="` + public + `/.well-known/oauth-protected-resource"`
	for who, want := range map[string]string{
		"":      `Bearer scope="mcp-registry:write"`,
		"bad":   `Bearer error="invalid_token", scope="mcp-registry:write"`,
		"scope": `Bearer error="insufficient_scope", scope="mcp-registry:write"`,
		"trust": `Bearer error="insufficient_user_authentication", error_description="a session at FULL_TRUST is required", ` +
			`acr_values="FULL_TRUST", scope="mcp-registry:write"`,
	} {
		got := call(t, "POST", service+"/v0.1/publish", "{}", "Authorization", "Bearer "+who)
		if got.header.Get("WWW-Authenticate") != want+place || got.status != map[bool]int{true: 403, false: 401}[len(who) > 3] {
			t.Errorf("%q publishes: %d %s", who, got.status, got.header.Get("WWW-Authenticate"))
		}
	}
}
