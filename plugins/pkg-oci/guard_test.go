package main

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/test/must"
)

// withTokens makes f require a token of its own realm, which it gives to the users in authorized.
func (f *far) withTokens(realm, authorization string) {
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token" && r.Header.Get("Authorization") == authorization:
			if r.URL.Query().Get("scope") != "repository:owner/weather:pull" {
				http.Error(w, r.URL.RawQuery, http.StatusBadRequest)
				return true
			}
			_, _ = w.Write([]byte(`{"token":"good"}`))
		case r.URL.Path == "/token":
			http.Error(w, `{"errors":[{"code":"DENIED"}]}`, http.StatusForbidden)
		case r.Header.Get("Authorization") != "Bearer good":
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="far"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
		default:
			return false
		}
		return true
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	const basic = "Basic YWRhOnNlY3JldA==" // ada:secret
	for name, c := range map[string]struct {
		authorization string
		credentials   []string
		want          string
	}{
		"anonymous":         {"", nil, ""},
		"password":          {basic, []string{"username", "ada", "password", "secret"}, ""},
		"ready token":       {"never", []string{"token", "good"}, ""},
		"denied to us":      {basic, nil, "or it is not public"},
		"wrong password":    {basic, []string{"username", "ada", "password", "guess"}, "or it is not public"},
		"wrong ready token": {"never", []string{"token", "bad"}, "or it is not public"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			f.push(t, "owner/weather", "1.0.0", server)
			f.withTokens(f.URL+"/token", c.authorization)
			err := f.plugin(t, c.credentials...).Check(t.Context(), f.claim("owner/weather:1.0.0"))
			if c.want != "" {
				wantRefusal(t, err, c.want)
			} else if err != nil {
				t.Errorf("Check = %v, want no error", err)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "guess")) {
				t.Errorf("the error %q shows a secret", err)
			}
		})
	}
}

// TestTokensOfAnotherHost uses a registry whose token service is on another host, as for a
// self-hosted GitLab.
func TestTokensOfAnotherHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		configured bool
		username   string
		want       string // part of the refusal; empty if the claim is confirmed
	}{
		"configured":                {true, "ada", ""},
		"configured, anonymous":     {true, "", "there is no image"},
		"not configured":            {false, "ada", "which is not configured"},
		"not configured, anonymous": {false, "", "which is not configured"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if user, password, _ := r.BasicAuth(); user != "ada" || password != "secret" {
					http.Error(w, `{"errors":[{"code":"DENIED"}]}`, http.StatusForbidden)
					return
				}
				_, _ = w.Write([]byte(`{"token":"good"}`))
			}))
			t.Cleanup(tokens.Close)
			f := newFar(t)
			f.push(t, "owner/weather", "1.0.0", server)
			// the library takes no private address as realm
			at := strings.Replace(strings.TrimPrefix(tokens.URL, "http://"), "127.0.0.1", "localhost", 1)
			f.withTokens("http://"+at+"/jwt/auth", "never")
			entry := map[string]any{"baseUrl": f.URL}
			if c.username != "" {
				entry["username"], entry["password"] = c.username, "secret"
			}
			if c.configured {
				entry["tokenHosts"] = []string{at}
			}
			configured, err := json.Marshal([]any{entry})
			must.Succeed(t, err)
			err = openPlugin(t, string(configured)).Check(t.Context(), f.claim("owner/weather:1.0.0"))
			if c.want != "" {
				wantRefusal(t, err, c.want)
			} else if err != nil {
				t.Errorf("Check = %v, want no error", err)
			}
			if (asked.Load() > 0) != c.configured {
				t.Errorf("the token service was asked %d times", asked.Load())
			}
		})
	}
}

func TestCredentialsStayAtTheRegistry(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.URL.Path)
	}))
	t.Cleanup(elsewhere.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(elsewhere.URL, "http://"), ":")
	for name, realm := range map[string]string{
		"plain http":      elsewhere.URL + "/token",
		"private by name": "https://localhost:" + port + "/token",
		"private address": "https://127.0.0.1:" + port + "/token",
		"metadata":        "https://169.254.169.254/token",
		"other scheme":    "file:///etc/passwd",
		"with a user":     "https://u:p@localhost:" + port + "/token",
	} {
		f := newFar(t)
		f.withTokens(realm, "")
		err := f.plugin(t, "username", "ada", "password", "secret").Check(t.Context(), f.claim("owner/weather:1.0.0"))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: Check = %v, want an error", name, err)
		}
	}
	if len(seen) > 0 {
		t.Errorf("asked elsewhere for %q", seen)
	}
}

func TestRedirectsOfPublicRegistries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		registry, target string
		want             bool
	}{
		{"docker.io", "https://production.cloudflare.docker.com/registry-v2/x", true},
		{"docker.io", "https://index.docker.io/x", true},
		{"docker.io", "http://index.docker.io/x", false},
		{"docker.io", "http://production.cloudflare.docker.com/x", false},
		{"docker.io", "https://production.cloudflare.docker.com.example.com/x", false},
		{"docker.io", "https://pkg-containers.githubusercontent.com/x", false},
		{"ghcr.io", "https://pkg-containers.githubusercontent.com/ghcr1/x", true},
		{"ghcr.io", "https://pkg-containers.githubusercontent.com:443/x", true},
		{"ghcr.io", "https://pkg-containers.githubusercontent.com:8443/x", false},
		{"ghcr.io", "https://user@pkg-containers.githubusercontent.com/x", false},
		{"quay.io", "https://cdn01.quay.io/x", true},
		{"quay.io", "https://evilquay.io/x", false},
		{"mcr.microsoft.com", "https://eastus.data.mcr.microsoft.com/x", true},
		{"mcr.microsoft.com", "https://.data.mcr.microsoft.com/x", false},
		{"us-docker.pkg.dev", "https://us-docker.pkg.dev/artifacts-downloads/x", true},
		{"us-docker.pkg.dev", "https://eu-docker.pkg.dev/x", false},
	} {
		known, ok := findPublic(c.registry)
		if !ok {
			t.Errorf("%s is not public", c.registry)
		}
		host := c.registry
		if host == defaultHost {
			host = "index.docker.io"
		}
		g := &guard{scheme: "https", host: host, blobs: known.blobs}
		target, err := url.Parse(c.target)
		must.Succeed(t, err)
		if got := g.mayRedirectTo(target); got != c.want {
			t.Errorf("%s redirects to %s: followed is %v, want %v", c.registry, c.target, got, c.want)
		}
	}
}

func TestPublicRegistries(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"docker.io": true, "ghcr.io": true, "quay.io": true, "gcr.io": true, "mcr.microsoft.com": true,
		"europe-docker.pkg.dev": true,
		"pkg.dev":               false, ".pkg.dev": false, "evilpkg.dev": false,
		"ghcr.io.example.com": false, "": false,
		"10.0.0.1":     false,
		"ghcr.io:8443": false, "GHCR.IO": false,
	} {
		if _, ok := findPublic(host); ok != want {
			t.Errorf("public(%q) = %v, want %v", host, ok, want)
		}
	}
	plugin := openPlugin(t, "")
	for identifier, want := range map[string]string{
		"weather":                            "https://docker.io",
		"owner/weather:1":                    "https://docker.io",
		"docker.io/owner/weather:1":          "https://docker.io",
		"index.docker.io/owner/weather:1":    "https://docker.io",
		"GHCR.io/owner/weather@sha256:0":     "https://ghcr.io",
		"ghcr.io:443/owner/weather":          "https://ghcr.io",
		"us-docker.pkg.dev/p/owner/weather":  "https://us-docker.pkg.dev",
		"mcr.microsoft.com/azure/weather:1":  "https://mcr.microsoft.com",
		"registry-1.docker.io/owner/weather": "https://docker.io",
	} {
		i, err := parseImage(sdk.Claim{Identifier: identifier})
		must.Succeed(t, err)
		if base, err := plugin.findRegistry(i); err != nil || base.URL() != want {
			t.Errorf("place(%q) = %v, %v, want %s", identifier, base, err, want)
		}
		if reference, err := i.newReference(false); err != nil && !strings.Contains(identifier, "@") {
			t.Errorf("reference(%q) = %v, %v", identifier, reference, err)
		}
	}
}

func FuzzParseImage(f *testing.F) {
	f.Add("ghcr.io/owner/weather:1.0.0", "", "")
	f.Add("owner/weather@sha256:00", "1", "https://docker.io")
	f.Add("[::1]:5000/x", "sha256:", "http://[::1]:5000/a/")
	f.Add("x", "0", "https://registry")
	f.Add("owner/x", "1", "http://registry/folder")
	f.Fuzz(func(t *testing.T, identifier, version, base string) {
		i, err := parseImage(sdk.Claim{Identifier: identifier, Version: version, RegistryBaseURL: base})
		if err != nil {
			return
		}
		reference, err := i.newReference(i.scheme == "http")
		if err != nil {
			return
		}
		if version != "" && i.digest == "" && reference.Identifier() != version {
			t.Errorf("(%q, %q, %q) requests %s, want the version", identifier, version, base, reference)
		}
		at := url.URL{Scheme: cmp.Or(i.scheme, "https"), Host: reference.Context().RegistryStr()}
		want := url.URL{Scheme: at.Scheme, Host: i.host}
		if host := canonicalHost(hostWithoutPort(&at)); host != hostWithoutPort(&want) {
			t.Errorf("(%q, %q, %q) connects to %s, but the check allowed %s", identifier, version, base, host, i.host)
		}
	})
}
