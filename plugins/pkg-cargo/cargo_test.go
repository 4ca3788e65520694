package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

const serverName = "com.example/weather"

// crates holds the crates of the fake registry: by name, the rendered readmes by version.
var crates = map[string]map[string]string{
	"example-weather": {
		"1.0.0":       "<h1>Weather</h1>\n<p>mcp-name: com.example/weather</p>",
		"1.1.0":       "<h1>Weather</h1>",
		"1.2.0":       "<p>mcp-name: com.example/weather-pro</p>",
		"1.3.0":       "<p>mcp-name: com.example/rain</p><code>mcp-name: com.example/weather</code>",
		"1.4.0":       "",
		"2.0.0-a.1+b": "mcp-name: com.example/weather",
	},
}

// servePublic returns a handler that responds like the public registry. The crate "busy" is
// throttled. readme handles requests for a readme that exists.
func servePublic(readme func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/")
		if stored, there := strings.CutPrefix(path, "readmes/"); there {
			name, version, _ := strings.Cut(strings.TrimSuffix(stored, ".html"), "@")
			respondFromStorage(w, crates[name][version])
			return
		}
		parts := strings.Split(strings.TrimPrefix(path, "api/v1/crates/"), "/")
		versions, there := crates[parts[0]]
		switch {
		case r.Header.Get("User-Agent") != "tollgate":
			w.WriteHeader(http.StatusForbidden)
		case parts[0] == "busy":
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		case !there:
			missing404(w, fmt.Sprintf("crate `%s` does not exist", parts[0]))
		case len(parts) == 1:
			_, _ = fmt.Fprintf(w, `{"crate":{"id":%q}}`, parts[0]) // the check shows whether it arrived
		case !hasVersion(versions, parts[1]):
			missing404(w, fmt.Sprintf("crate `%s` does not have a version `%s`", parts[0], parts[1]))
		case len(parts) == 2:
			_, _ = fmt.Fprintf(w, `{"version":{"crate":%q,"num":%q,"yanked":false}}`, parts[0], parts[1]) // as above
		default:
			readme(w, r, "/readmes/"+parts[0]+"@"+strings.ReplaceAll(parts[1], "+", "%2B")+".html")
		}
	}
}

// respondFromStorage responds like storage that does not list its files: it denies access to
// missing ones.
func respondFromStorage(w http.ResponseWriter, text string) {
	if text == "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	_, _ = io.WriteString(w, text) // the check shows whether it arrived
}

func missing404(w http.ResponseWriter, detail string) {
	w.WriteHeader(http.StatusNotFound)
	_, _ = fmt.Fprintf(w, `{"errors":[{"detail":%q}]}`, detail) // the check shows whether it arrived
}

func hasVersion(versions map[string]string, version string) bool {
	_, there := versions[version]
	return there
}

// Registries return a readme in one of these three ways.
func byAddress(w http.ResponseWriter, r *http.Request, path string) {
	_, _ = fmt.Fprintf(w, `{"url":"http://%s%s"}`, r.Host, path) // the check shows whether it arrived
}

func byRedirect(w http.ResponseWriter, r *http.Request, path string) {
	http.Redirect(w, r, path, http.StatusFound)
}

func inPlace(w http.ResponseWriter, r *http.Request, _ string) {
	parts := strings.Split(r.URL.Path, "/")
	respondFromStorage(w, crates[parts[4]][parts[5]])
}

func openFake(t *testing.T, handler http.HandlerFunc) (registry, string) {
	t.Helper()
	return sdktest.OpenPlugin(t, handler, openRegistry)
}

func newClaim(baseURL, identifier, version string) sdk.Claim {
	return sdk.Claim{
		ServerName: serverName, RegistryType: "cargo", RegistryBaseURL: baseURL, Identifier: identifier,
		Version: version,
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	for name, readme := range map[string]func(http.ResponseWriter, *http.Request, string){
		"by address": byAddress, "by redirect": byRedirect, "in place": inPlace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sdktest.RunOwnership(t, func(t *testing.T) sdktest.Ownership {
				r, base := openFake(t, servePublic(readme))
				busy := newClaim(base, "busy", "1.0.0")
				return sdktest.Ownership{
					Plugin: r, Owned: newClaim(base, "example-weather", "1.0.0"), Transient: &busy,
					RetryAfter: 30 * time.Second,
					Refused: map[string]sdk.Claim{
						"the package does not exist": newClaim(base, "no-such", "1.0.0"),
						"the version does not exist": newClaim(base, "example-weather", "3.0.0"),
						"not claimed":                newClaim(base, "example-weather", "1.1.0"),
						"longer name":                newClaim(base, "example-weather", "1.2.0"),
						"no readme":                  newClaim(base, "example-weather", "1.4.0"),
						"version missing":            newClaim(base, "example-weather", ""),
						"base not allowed":           newClaim("https://elsewhere.example", "example-weather", "1.0.0"),
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
		Claim: func(baseURL string) sdk.Claim { return newClaim(baseURL, "example-weather", "1.0.0") },
	})
}

func TestSentences(t *testing.T) {
	t.Parallel()
	r, base := openFake(t, servePublic(byAddress))
	sdktest.WantSentences(t, r, map[string]sdk.Claim{
		"":                            newClaim(base+"/", "example-weather", "1.3.0"),
		`there is no crate "no-such"`: newClaim(base, "no-such", "1.0.0"),
		`crate "example-weather" has no version "3.0.0"`:   newClaim(base, "example-weather", "3.0.0"),
		`version 1.4.0 does not claim the server: publish`: newClaim(base, "example-weather", "1.4.0"),
		`claims "com.example/weather-pro": publish`:        newClaim(base, "example-weather", "1.2.0"),
	})
	if err := r.Check(t.Context(), newClaim(base, "example-weather", "2.0.0-a.1+b")); err != nil {
		t.Errorf("version with build metadata: Check = %v, want no error", err)
	}
}

// TestReadmeElsewhere checks that a registry cannot send the check to another host by the address
// of a readme.
func TestReadmeElsewhere(t *testing.T) {
	t.Parallel()
	var strayed atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		strayed.Store(true)
		_, _ = io.WriteString(w, "mcp-name: "+serverName) // the client must not read it
	}))
	t.Cleanup(other.Close)
	for _, address := range []string{
		other.URL + "/readme", publicStorage + "/readmes/x.html", "http://169.254.169.254/", "file:///etc/passwd",
		"//x/y", "/../x", "http://%zz",
	} {
		r, base := openFake(t, servePublic(func(w http.ResponseWriter, _ *http.Request, _ string) {
			_, _ = fmt.Fprintf(w, `{"url":%q}`, address) // the check shows whether it arrived
		}))
		if err := r.Check(t.Context(), newClaim(base, "example-weather", "1.0.0")); err == nil {
			t.Errorf("readme at %q: Check confirmed the claim", address)
		}
	}
	if strayed.Load() {
		t.Error("another host got a request")
	}
}

func TestPublicReadmesComeFromTheirStorage(t *testing.T) {
	t.Parallel()
	r, err := openRegistry(func(string) string { return "" })
	must.Succeed(t, err)
	for _, claimed := range []string{"", publicAPI, publicAPI + "/"} {
		b, err := r.api.Base(claimed)
		must.Succeed(t, err)
		for address, want := range map[string]string{
			publicStorage + "/readmes/a/a-1.0.0.html": publicStorage,
			publicAPI + "/readme":                     publicAPI,
			publicStorage + ".example/readme":         publicAPI,
			"https://elsewhere.example/readme":        publicAPI,
		} {
			if got := r.readmeHost(b, address).URL(); got != want {
				t.Errorf("readmeHost(%q) = %q, want %q", address, got, want)
			}
		}
	}
	if _, err := openRegistry(func(string) string { return "x" }); err == nil ||
		!strings.Contains(err.Error(), registryclient.Variable) {
		t.Errorf("openRegistry with a malformed variable: %v, want an error that names the variable", err)
	}
}

// TestMalformedClaimsAreNotRequested checks that malformed names and versions never become part of
// a URL.
func TestMalformedClaimsAreNotRequested(t *testing.T) {
	t.Parallel()
	r, base := openFake(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the registry got a request for %s", r.URL)
	})
	var tricks []sdk.Claim
	for _, identifier := range []string{
		"", ".", "..", "../x", "a/b", "a.b", "-a", "_a", "1a", "a b", "a%2fb", "a?b", "a#b", "a\\b", "a\n", "http://x",
		"ä", strings.Repeat("a", maxName+1),
	} {
		tricks = append(tricks, newClaim(base, identifier, "1.0.0"))
	}
	for _, version := range []string{
		"", "1", "1.0", "..", "1.0.0/readme", "^1.0.0", "1.0.0-", "1.0.0?x", "v1.0.0", "1.0.0\n",
		"1.0.0-" + strings.Repeat("a", maxVersion),
	} {
		tricks = append(tricks, newClaim(base, "example-weather", version))
	}
	sdktest.WantRefused(t, r, tricks...)
}
