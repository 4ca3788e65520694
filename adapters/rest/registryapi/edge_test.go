package registryapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry/event"
)

// TestCachesMayKeep checks which reads caches may keep, for how long, and by which keys they drop
// them.
func TestCachesMayKeep(t *testing.T) {
	name := "com.example/a"
	servers := newServers(t, record(t, name, "1.0.0"))
	server := string(event.ServerKey(name))
	const (
		usual = "public, max-age=5, stale-while-revalidate=60, stale-if-error=86400"
		edge  = "max-age=90, stale-while-revalidate=60, stale-if-error=86400"
	)
	url := serve(t, registryapi.Config{Serving: registryapi.Serving{EdgeMaxAge: 90 * time.Second}}, servers, nil)
	plain := serve(t, registryapi.Config{}, servers, nil)
	for path, want := range map[string]struct{ kept, edge, keys string }{
		"/v0.1/servers":                                                    {usual, edge, "servers"},
		"/v0/servers/com.example%2Fa/versions":                             {usual, edge, server},
		"/v0.1/servers/com.example%2Fa/versions/latest":                    {usual, edge, server},
		"/registries/team/v0.1/servers":                                    {usual, edge, "servers view-team"},
		"/registries/team/v0.1/servers/com.example%2Fa/versions/1.0.0":     {usual, edge, server + " view-team"},
		"/registries/all/allowlist/claude.json":                            {"public, max-age=60", edge, "allowlists view-all"},
		"/registries/inner/t/secret/v0.1/servers":                          {"private, no-cache", "", ""},
		"/registries/inner/t/secret/allowlist/claude.json":                 {"private, max-age=60", "", ""},
		"/registries/inner/t/secret/v0.1/servers/com.example%2Fa/versions": {"private, no-cache", "", ""},
		"/v0.1/servers/com.example%2Fnone/versions":                        {"", "", ""},
		"/registries/inner/v0.1/servers":                                   {"", "", ""},
	} {
		got := call(t, "GET", url+path, "").header
		tag, keys := got.Get("Cache-Tag"), got.Get("Surrogate-Key")
		if got.Get("Cache-Control") != want.kept || got.Get("CDN-Cache-Control") != want.edge || keys != want.keys ||
			tag != strings.ReplaceAll(want.keys, " ", ",") {
			t.Errorf("%s: %v", path, got)
		}
		if got := call(t, "GET", plain+path, "").header; got.Get("CDN-Cache-Control") != "" || got.Get("Surrogate-Key") != want.keys {
			t.Errorf("%s without EDGE_MAX_AGE: %v", path, got)
		}
	}
}
