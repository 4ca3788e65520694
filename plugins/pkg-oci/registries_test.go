package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	sdktest.RunOwnership(t, func(t *testing.T) sdktest.Ownership {
		f := newFar(t)
		f.push(t, "owner/weather", "1.0.0", server)
		f.push(t, "owner/other", "1.0.0", server+"-pro")
		f.push(t, "owner/plain", "1.0.0", "")
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/owner/throttled/") {
				return false
			}
			w.Header().Set("Retry-After", "30")
			http.Error(w, `{"errors":[{"code":"TOOMANYREQUESTS"}]}`, http.StatusTooManyRequests)
			return true
		}
		transient := f.claim("owner/throttled:1.0.0")
		return sdktest.Ownership{
			Plugin: f.plugin(t),
			Owned:  f.claim("owner/weather:1.0.0"),
			Refused: map[string]sdk.Claim{
				"the image does not exist": f.claim("owner/absent:1.0.0"),
				"the tag does not exist":   f.claim("owner/weather:2.0.0"),
				"not claimed":              f.claim("owner/plain:1.0.0"),
				"other server":             f.claim("owner/other:1.0.0"),
				"not allowed": {
					ServerName: server, RegistryType: "oci", Identifier: "registry.example.com/owner/weather:1.0.0",
				},
			},
			Transient: &transient, RetryAfter: 30 * time.Second,
		}
	})
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	digest := f.push(t, "owner/weather", "1.0.0", server)
	list := f.push(t, "owner/list", "1.0.0", "", server, "")
	f.push(t, "owner/lists-none", "1.0.0", "", "")
	f.push(t, "owner/lists-other", "1.0.0", "", "com.example/other")
	f.push(t, "owner/latest", "latest", server)
	f.push(t, "owner/prefix", "1.0.0", server+"2")
	f.push(t, "owner/case", "1.0.0", strings.ToUpper(server))
	f.push(t, "owner/many", "1.0.0", append(make([]string, maxPlatforms), server)...)
	plugin := f.plugin(t)
	for name, c := range map[string]struct {
		claim sdk.Claim
		want  string // part of the refusal; empty if the claim is confirmed
	}{
		"by tag":             {f.claim("owner/weather:1.0.0"), ""},
		"by version":         {sdk.Claim{Identifier: f.host + "/owner/weather", Version: "1.0.0"}, ""},
		"by both":            {sdk.Claim{Identifier: f.host + "/owner/weather:1.0.0", Version: "1.0.0"}, ""},
		"by digest":          {f.claim("owner/weather@" + digest), ""},
		"by digest and tag":  {f.claim("owner/weather:1.0.0@" + digest), ""},
		"digest as version":  {sdk.Claim{Identifier: f.host + "/owner/weather", Version: digest}, ""},
		"host in base URL":   {sdk.Claim{Identifier: "owner/weather:1.0.0", RegistryBaseURL: f.URL}, ""},
		"folder in base URL": {sdk.Claim{Identifier: "weather:1.0.0", RegistryBaseURL: f.URL + "/owner/"}, ""},
		"both":               {sdk.Claim{Identifier: f.host + "/owner/weather:1.0.0", RegistryBaseURL: f.URL}, ""},
		"neither tag":        {f.claim("owner/latest"), ""},
		"list":               {f.claim("owner/list:1.0.0"), ""},
		"list by digest":     {f.claim("owner/list@" + list), ""},
		"no image":           {f.claim("owner/absent:1.0.0"), "there is no image " + f.host + "/owner/absent"},
		"no tag":             {f.claim("owner/weather:1.0"), `has no tag "1.0"`},
		"no latest":          {f.claim("owner/weather"), `has no tag "latest"`},
		"no digest":          {f.claim("owner/weather@sha256:" + strings.Repeat("0", 64)), "no manifest with digest"},
		"tag and version": {
			sdk.Claim{Identifier: f.host + "/owner/weather:1.0.0", Version: "1.0.1"}, "but the version is",
		},
		"digest and version": {
			sdk.Claim{Identifier: f.host + "/owner/weather@" + digest, Version: list}, "but the version is",
		},
		"list without label": {f.claim("owner/lists-none:1.0.0"), "has no label " + serverLabel},
		"list with another":  {f.claim("owner/lists-other:1.0.0"), `is "com.example/other", it must be`},
		"beyond the bound":   {f.claim("owner/many:1.0.0"), "has no label"},
		"ours is a prefix":   {f.claim("owner/prefix:1.0.0"), `is "` + server + `2", it must be`},
		"case":               {f.claim("owner/case:1.0.0"), "it must be"},
		"bad reference":      {f.claim("Owner/Weather:1.0.0"), "is not an image reference"},
		"short digest":       {f.claim("owner/weather@sha256:00"), "is not an image reference"},
		"version with a path": {
			sdk.Claim{Identifier: f.host + "/owner/weather", Version: "../x"}, "is not an image reference",
		},
		"other host": {
			sdk.Claim{Identifier: "ghcr.io/owner/weather:1.0.0", RegistryBaseURL: f.URL}, "but registryBaseUrl is",
		},
		"outside of the base": {
			sdk.Claim{Identifier: f.host + "/owner/weather:1", RegistryBaseURL: f.URL + "/my"}, "is not below",
		},
		"base with a query": {
			sdk.Claim{Identifier: "owner/weather:1", RegistryBaseURL: f.URL + "?a"}, "is not the URL of a registry",
		},
		"unlisted registry": {
			sdk.Claim{Identifier: "registry.example.com/owner/weather:1"}, "are not accepted: use docker.io",
		},
		"private address": {sdk.Claim{Identifier: "127.0.0.1:1/owner/weather:1"}, "are not accepted"},
		"localhost":       {sdk.Claim{Identifier: "localhost/owner/weather:1"}, "are not accepted"},
		"plain http": {
			sdk.Claim{Identifier: "owner/weather:1", RegistryBaseURL: "http://ghcr.io"}, "are not accepted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.claim.ServerName, c.claim.RegistryType = server, "oci"
			err := plugin.Check(t.Context(), c.claim)
			if c.want != "" {
				wantRefusal(t, err, c.want)
			} else if err != nil {
				t.Errorf("Check = %v, want no error", err)
			}
		})
	}
}

// isManifest and isBlob distinguish requests for the image under test.
func isManifest(r *http.Request) bool { return strings.Contains(r.URL.Path, "/manifests/") }
func isBlob(r *http.Request) bool     { return strings.Contains(r.URL.Path, "/blobs/") }

func answer(when func(*http.Request) bool, status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if when(r) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
		return when(r)
	}
}

func redirectTo(when func(*http.Request) bool, location string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if when(r) {
			http.Redirect(w, r, location, http.StatusTemporaryRedirect)
		}
		return when(r)
	}
}

func TestHostileAndBrokenRegistries(t *testing.T) {
	t.Parallel()
	always := func(*http.Request) bool { return true }
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a host that is not allowed was reached")
	}))
	t.Cleanup(elsewhere.Close)
	for name, c := range map[string]struct {
		before  func(http.ResponseWriter, *http.Request) bool
		verdict bool
		want    string
	}{
		"throttled at once": {answer(always, 429, ""), false, "429"},
		"throttled later": {
			answer(isBlob, 429, `{"errors":[{"code":"TOOMANYREQUESTS"}]}`), false, "TOOMANYREQUESTS",
		},
		"throttled with 403": {
			answer(isManifest, 403, `{"errors":[{"code":"TOOMANYREQUESTS"}]}`), false, "TOOMANYREQUESTS",
		},
		"down":        {answer(isManifest, 503, ""), false, "503"},
		"no registry": {answer(always, 404, "not here"), false, "404"},
		"denied": {
			answer(isManifest, 401, `{"errors":[{"code":"UNAUTHORIZED"}]}`), true, "or it is not public",
		},
		"forbidden":             {answer(isManifest, 403, ""), true, "or it is not public"},
		"bad request":           {answer(isManifest, 400, ""), true, "returned status 400"},
		"configuration is gone": {answer(isBlob, 404, ""), false, "404"},
		"malformed manifest":    {answer(isManifest, 200, "{"), false, "unexpected EOF"},
		"changed configuration": {
			answer(isBlob, 200, `{"config":{"Labels":{"`+serverLabel+`":"`+server+`"}}}`), false, "size",
		},
		"oversized manifest": {answer(isManifest, 200, strings.Repeat(" ", maxBody+1)), true, "more than"},
		"oversized error":    {answer(isManifest, 500, strings.Repeat("x", maxBody+1)), false, ""},
		"manifest elsewhere": {
			redirectTo(isManifest, elsewhere.URL+"/v2/"), true, "returned a redirect that is not allowed",
		},
		"blob elsewhere": {
			redirectTo(isBlob, elsewhere.URL+"/v2/"), true, "returned a redirect that is not allowed",
		},
		"ping elsewhere": {redirectTo(always, elsewhere.URL), true, "a redirect that is not allowed"},
		"blob at https": {
			redirectTo(isBlob, "https://storage.example.com/x"), true, "returned a redirect that is not allowed",
		},
		"metadata service": {
			redirectTo(isBlob, "http://169.254.169.254/latest"), true, "a redirect that is not allowed",
		},
		"endless redirects": {
			redirectTo(isManifest, "/v2/owner/weather/manifests/1.0.0"), true,
			"returned a redirect that is not allowed",
		},
		"no image": {answer(isManifest, 200, `{"schemaVersion":2,"config":{"size":1}}`), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			f.push(t, "owner/weather", "1.0.0", server)
			f.before = c.before
			err := f.plugin(t).Check(t.Context(), f.claim("owner/weather:1.0.0"))
			if c.verdict {
				wantRefusal(t, err, c.want)
			} else {
				wantFailure(t, err, c.want)
			}
			const most = 20
			if n := f.asked.Load(); n > most {
				t.Errorf("%d requests, want a few", n)
			}
		})
	}
}

func TestSlowRegistry(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := f.plugin(t).Check(ctx, f.claim("owner/weather:1.0.0"))
	wantFailure(t, err, "")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Check = %v, want the end of the context", err)
	}
}

func TestIndexWithAnUnreadableImage(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	f.push(t, "owner/owned", "1.0.0", "", server)
	f.push(t, "owner/open", "1.0.0", "", "com.example/other")
	var broken atomic.Value
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !isManifest(r) || strings.HasSuffix(r.URL.Path, "/1.0.0") {
			return false
		}
		broken.CompareAndSwap("", r.URL.Path)
		return answer(func(*http.Request) bool { return r.URL.Path == broken.Load() }, 500, "")(w, r)
	}
	broken.Store("")
	if err := f.plugin(t).Check(t.Context(), f.claim("owner/owned:1.0.0")); err != nil {
		t.Errorf("Check = %v, want the image that can be read to do", err)
	}
	broken.Store("")
	wantFailure(t, f.plugin(t).Check(t.Context(), f.claim("owner/open:1.0.0")), "500")
}
