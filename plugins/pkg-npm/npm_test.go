package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

const serverName = "com.example/weather"

// packages holds the packages of the fake registry: by escaped name, the manifests by version.
var packages = map[string]map[string]string{
	"@example%2fweather": {
		"1.0.0": `{"name":"@example/weather","version":"1.0.0","mcpName":"com.example/weather","dist":{"shasum":"00"}}`,
		"1.1.0": `{"name":"@example/weather","version":"1.1.0","dist":{"shasum":"00"}}`,
		"1.2.0": `{"name":"@example/weather","version":"1.2.0","mcpName":"com.example/weather-pro"}`,
		"1.3.0": `{"name":"@example/weather","version":"1.3.0","mcpName":["com.example/weather"]}`,
		"1.4.0": `{"name":"@example/weather","version":"1.4.0","mcpName":" com.example/weather"}`,
		"1.5.0": `{"name":"@example/weather","version":"1.5.0"}`,
	},
	"weather": {"2.0.0-rc.1": `{"name":"weather","version":"2.0.0-rc.1","mcpName":"com.example/weather"}`},
	"hollow":  {},
}

// servePublic responds like the public registry. The package "busy" is throttled; "moved" redirects
// on the same host.
func servePublic(w http.ResponseWriter, r *http.Request) {
	name, version, one := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	versions, there := packages[name]
	w.Header().Set("Content-Type", "application/json")
	switch manifest := versions[version]; {
	case name == "busy":
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	case name == "moved":
		http.Redirect(w, r, "/weather/"+version, http.StatusMovedPermanently)
	case !there:
		respond(w, http.StatusNotFound, `{"error":"Not found"}`)
	case !one:
		respond(w, http.StatusOK, packument(name, versions))
	// a tag that looks like a version and points to another version
	case (version == "9.9.9" || version == "1.5.0") && name == "@example%2fweather":
		respond(w, http.StatusOK, versions["1.0.0"])
	case manifest == "":
		respond(w, http.StatusNotFound, fmt.Sprintf(`"version not found: %s"`, version))
	default:
		respond(w, http.StatusOK, manifest)
	}
}

// wholeOnly responds like a registry without documents for single versions.
func wholeOnly(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	servePublic(w, r)
}

func respond(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the check shows whether it arrived
}

func packument(name string, versions map[string]string) string {
	var all []string
	for version, manifest := range versions {
		all = append(all, fmt.Sprintf("%q:%s", version, manifest))
	}
	return fmt.Sprintf(`{"name":%q,"dist-tags":{"latest":"1.0.0"},"versions":{%s}}`, name, strings.Join(all, ","))
}

// openFake returns a plugin for a registry with the handler, and its base URL.
func openFake(t *testing.T, handler http.HandlerFunc) (registry, string) {
	t.Helper()
	return sdktest.OpenPlugin(t, handler, openRegistry)
}

func newClaim(baseURL, identifier, version string) sdk.Claim {
	return sdk.Claim{
		ServerName: serverName, RegistryType: "npm", RegistryBaseURL: baseURL, Identifier: identifier, Version: version,
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{"public": servePublic, "whole packages only": wholeOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sdktest.RunOwnership(t, func(t *testing.T) sdktest.Ownership {
				r, base := openFake(t, handler)
				busy := newClaim(base, "busy", "1.0.0")
				return sdktest.Ownership{
					Plugin: r, Owned: newClaim(base, "@example/weather", "1.0.0"), Transient: &busy,
					RetryAfter: 30 * time.Second,
					Refused: map[string]sdk.Claim{
						"the package does not exist": newClaim(base, "no-such", "1.0.0"),
						"the version does not exist": newClaim(base, "@example/weather", "3.0.0"),
						"not claimed":                newClaim(base, "@example/weather", "1.1.0"),
						"longer name":                newClaim(base, "@example/weather", "1.2.0"),
						"version missing":            newClaim(base, "@example/weather", ""),
						"base not allowed": newClaim("https://elsewhere.example",
							"@example/weather", "1.0.0"),
					},
				}
			})
		})
	}
}

func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	sdktest.RunMisbehaviour(t, sdktest.PackageRegistry{
		ReportsRetryAfter: true,
		Open: func(environment func(string) string) (sdk.Ownership, error) {
			return openRegistry(environment)
		},
		Claim: func(baseURL string) sdk.Claim { return newClaim(baseURL, "@example/weather", "1.0.0") },
	})
}

func TestSentences(t *testing.T) {
	t.Parallel()
	r, base := openFake(t, servePublic)
	sdktest.WantSentences(t, r, map[string]sdk.Claim{
		"":                                  newClaim(base+"/", "weather", "2.0.0-rc.1"),
		`there is no npm package "no-such"`: newClaim(base, "no-such", "1.0.0"),
		`npm package "@example/weather" has no version "3.0.0"`:         newClaim(base, "@example/weather", "3.0.0"),
		`npm package "@example/weather" has no version "9.9.9"`:         newClaim(base, "@example/weather", "9.9.9"),
		`npm package "hollow" has no version "1.0.0"`:                   newClaim(base, "hollow", "1.0.0"),
		`publish a version with "mcpName": "com.example/weather"`:       newClaim(base, "@example/weather", "1.1.0"),
		`1.3.0 does not claim the server`:                               newClaim(base, "@example/weather", "1.3.0"),
		`1.5.0 does not claim the server`:                               newClaim(base, "@example/weather", "1.5.0"),
		`has the mcpName "com.example/weather-pro" in package.json, it`: newClaim(base, "@example/weather", "1.2.0"),
		`has the mcpName " com.example/weather"`:                        newClaim(base, "@example/weather", "1.4.0"),
	})
	if err := r.Check(t.Context(), newClaim(base, "moved", "2.0.0-rc.1")); err != nil {
		t.Errorf("redirect on the same host: Check = %v, want no error", err)
	}
}

// TestMalformedClaimsAreNotRequested checks that malformed names and versions never become part of
// a URL.
func TestMalformedClaimsAreNotRequested(t *testing.T) {
	t.Parallel()
	r, base := openFake(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the registry got a request for %s", r.URL)
	})
	for _, identifier := range []string{
		"", ".", "..", "-", "@", "@/", "@a", "@a/", "@/a", "a/b", "@a/b/c", "@../a", "@a/..", "@a/.b", "_a", ".a",
		"a b", "a%2fb", "a?b", "a#b", "a\\b",
		"@a@b/c", "a\n", "http://x", "ä", strings.Repeat("a", maxName+1),
	} {
		sdktest.WantRefused(t, r, newClaim(base, identifier, "1.0.0"))
	}
	for _, version := range []string{
		"", "1", "1.0", "latest", "next", "^1.0.0", "1.0.0/..", "../1.0.0", "1.0.0?x", "1.0.0-", "1.0.0 ", "v1.0.0",
		"1.0.0-a/b", "1.0.0\n",
		"1.0.0-" + strings.Repeat("a", maxVersion),
	} {
		sdktest.WantRefused(t, r, newClaim(base, "weather", version))
	}
}

func TestPublicRegistryIsTheDefault(t *testing.T) {
	t.Parallel()
	r, err := openRegistry(func(string) string { return "" })
	must.Succeed(t, err)
	for _, claimed := range []string{
		"", "https://registry." + publicDomain, "https://REGISTRY." + publicDomain + ":443/",
	} {
		if b, err := r.client.Base(claimed); err != nil || b.URL() != "https://registry."+publicDomain {
			t.Errorf("Base(%q) = %v, %v", claimed, b, err)
		}
	}
	if _, err := openRegistry(func(string) string { return "x" }); err == nil ||
		!strings.Contains(err.Error(), registryclient.Variable) {
		t.Errorf("openRegistry with a malformed variable: %v, want an error that names the variable", err)
	}
}
