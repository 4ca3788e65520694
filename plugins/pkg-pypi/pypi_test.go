package main

import (
	"encoding/json"
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

// projects holds the projects of the fake registry: by normalized name, the descriptions by
// version.
var projects = map[string]map[string]string{
	"example-weather": {
		"1.0.0":    "# Weather\n\n<!-- mcp-name: com.example/weather -->\n",
		"1.1.0":    "# Weather\n\nIt rains.",
		"1.2.0":    "mcp-name: com.example/weather-pro",
		"1.3.0":    "mcp-name: com.example/rain\n\nmcp-name: com.example/weather",
		"2.0rc1+a": "mcp-name: com.example/weather",
	},
	"bare": {"1.0.0": ""},
}

// servePublic responds like the public registry, which redirects names to their normalized form.
// The project "busy" is throttled.
func servePublic(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != "pypi" || parts[len(parts)-1] != "json" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	name := strings.ReplaceAll(strings.ToLower(parts[1]), "_", "-")
	releases, there := projects[name]
	switch {
	case name == "busy":
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	case name != parts[1]:
		http.Redirect(w, r, strings.Replace(r.URL.EscapedPath(), parts[1], name, 1), http.StatusMovedPermanently)
	case !there:
		notFound(w)
	case len(parts) == 3:
		respond(w, name, "")
	default:
		description, there := releases[parts[2]]
		if !there {
			notFound(w)
			return
		}
		respond(w, name, description)
	}
}

func notFound(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"message": "Not Found"}`) // the check shows whether it arrived
}

func respond(w http.ResponseWriter, name, description string) {
	var text any = description
	if description == "" {
		text = nil
	}
	info := map[string]any{
		"name": name, "description": text, "description_content_type": "text/markdown", "yanked": false,
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"info": info, "last_serial": 1, "urls": []any{}}) // as above
}

func openFake(t *testing.T, handler http.HandlerFunc) (registry, string) {
	t.Helper()
	return sdktest.OpenPlugin(t, handler, openRegistry)
}

func newClaim(baseURL, identifier, version string) sdk.Claim {
	return sdk.Claim{
		ServerName: serverName, RegistryType: "pypi", RegistryBaseURL: baseURL, Identifier: identifier,
		Version: version,
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	sdktest.RunOwnership(t, func(t *testing.T) sdktest.Ownership {
		r, base := openFake(t, servePublic)
		busy := newClaim(base, "busy", "1.0.0")
		return sdktest.Ownership{
			Plugin: r, Owned: newClaim(base, "example-weather", "1.0.0"), Transient: &busy,
			RetryAfter: 30 * time.Second,
			Refused: map[string]sdk.Claim{
				"the package does not exist": newClaim(base, "no-such", "1.0.0"),
				"the version does not exist": newClaim(base, "example-weather", "3.0.0"),
				"not claimed":                newClaim(base, "example-weather", "1.1.0"),
				"longer name":                newClaim(base, "example-weather", "1.2.0"),
				"no description":             newClaim(base, "bare", "1.0.0"),
				"version missing":            newClaim(base, "example-weather", ""),
				"base not allowed":           newClaim("https://elsewhere.example", "example-weather", "1.0.0"),
			},
		}
	})
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
	r, base := openFake(t, servePublic)
	sdktest.WantSentences(t, r, map[string]sdk.Claim{
		"":                                   newClaim(base+"/", "example-weather", "1.3.0"),
		`there is no PyPI package "no-such"`: newClaim(base, "no-such", "1.0.0"),
		`PyPI package "Example_Weather" has no version "3.0.0"`: newClaim(base, "Example_Weather", "3.0.0"),
		`version 1.1.0 does not claim the server: publish`:      newClaim(base, "example-weather", "1.1.0"),
		`claims "com.example/weather-pro": publish`:             newClaim(base, "example-weather", "1.2.0"),
	})
	for _, c := range []sdk.Claim{
		newClaim(base, "Example_Weather", "1.0.0"), newClaim(base, "example-weather", "2.0rc1+a"),
	} {
		if err := r.Check(t.Context(), c); err != nil {
			t.Errorf("Check(%s %s) = %v, want no error", c.Identifier, c.Version, err)
		}
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
		"", ".", "..", "../x", "a/b", "a/../b", "-a", "a-", ".a", "_a", "a b", "a%2fb", "a?b", "a#b", "a\\b", "a\n",
		"http://x", "ä", "a[extra]",
		strings.Repeat("a", maxName+1),
	} {
		tricks = append(tricks, newClaim(base, identifier, "1.0.0"))
	}
	for _, version := range []string{
		"", ".", "..", "../1", "1/json", "1.0 ", "1?x", "1#x", "==1.0", ">=1", "1.0\n", "1%2e",
		strings.Repeat("1", maxVersion+1),
	} {
		tricks = append(tricks, newClaim(base, "example-weather", version))
	}
	sdktest.WantRefused(t, r, tricks...)
}

func TestPublicRegistryIsTheDefault(t *testing.T) {
	t.Parallel()
	r, err := openRegistry(func(string) string { return "" })
	must.Succeed(t, err)
	for _, claimed := range []string{"", "https://pypi.org", "https://PyPI.org:443/"} {
		if b, err := r.client.Base(claimed); err != nil || b.URL() != "https://pypi.org" {
			t.Errorf("Base(%q) = %v, %v", claimed, b, err)
		}
	}
	if _, err := openRegistry(func(string) string { return "x" }); err == nil ||
		!strings.Contains(err.Error(), registryclient.Variable) {
		t.Errorf("openRegistry with a malformed variable: %v, want an error that names the variable", err)
	}
}
