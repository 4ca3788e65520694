package registryapi_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
)

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
	refused := call(t, "GET", service+path, "")
	u, err := url.Parse(public + path)
	if err != nil || refused.status != 401 {
		t.Fatalf("%v, %+v", err, refused)
	}
	addresses := []string{"https://" + u.Host + wellKnown + strings.TrimSuffix(u.Path, "/"), "https://" + u.Host + wellKnown}
	scheme, _, _ := strings.Cut(refused.header.Get("WWW-Authenticate"), " ")
	found := regexp.MustCompile(`resource_metadata="([^"]*)"`).FindStringSubmatch(refused.header.Get("WWW-Authenticate"))
	if !strings.EqualFold(scheme, "bearer") || found == nil {
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
	} {
		for _, useChallenge := range []bool{true, false} {
			m := discover(t, service, public, path, useChallenge)
			if m.Resource != resource && useChallenge || m.Name != "Tools" || strings.Join(m.Servers, " ") != "https://login.example.com" ||
				strings.Join(m.Scopes, " ") != "mcp-registry:read mcp-registry:write" || strings.Join(m.Methods, " ") != "header" {
				t.Errorf("%s: %+v", path, m)
			}
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
			if got.status != 401 || got.header.Get("WWW-Authenticate") != "Bearer" || got.header.Get("ETag") != "" {
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

// servePrivate serves a registry whose reading needs a caller.
func servePrivate(t *testing.T, r registryapi.Resource) string {
	t.Helper()
	reads := newReads(newServers(t, record(t, "com.example/a", "1.0.0")), newViews(t))
	reads.Gate = newGate(viewing.Config{Private: true}, newViews(t))
	return serveAs(t, authoritytest.Callers{}, registryapi.Config{Private: true, Resource: r}, reads)
}
