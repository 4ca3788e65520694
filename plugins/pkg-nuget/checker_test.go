package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

const server = "io.github.example/weather"

// far responds like the public feed.
type far struct {
	*httptest.Server
	versions map[string][]string // by package id in lower case
	readmes  map[string]string   // by id and version
	// before handles a request and returns true, or returns false to let the feed handle it.
	before func(w http.ResponseWriter, r *http.Request) bool
	index  string // the service index, with %s for the URL of the server
}

const index = `{"version":"3.0.0","resources":[
	{"@id":"%[1]s/query","@type":"SearchQueryService","comment":"not used"},
	{"@id":"%[1]s/v3-flatcontainer/","@type":"PackageBaseAddress/3.0.0"},
	{"@id":"%[1]s/readmes/{lower_id}/{lower_version}/readme","@type":"ReadmeUriTemplate/6.13.0"}]}`

func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{index: index, versions: map[string][]string{
		"example.weather": {"0.9.0", "1.0.0", "1.1.0-beta"}, "example.plain": {"1.0.0"}, "example.prefix": {"1.0.0"},
		"example.noreadme": {"1.0.0"}, "example.none": {},
	}, readmes: map[string]string{
		"example.weather/1.0.0":      "# Weather\n\n<!-- mcp-name: " + server + " -->\n",
		"example.weather/1.1.0-beta": "mcp-name: " + server,
		"example.weather/0.9.0":      "# Weather, not yet a tool server",
		"example.plain/1.0.0":        "# Plain, by " + server,
		"example.prefix/1.0.0":       "mcp-name: " + server + "-pro\n",
	}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *far) serve(w http.ResponseWriter, r *http.Request) {
	if f.before != nil && f.before(w, r) {
		return
	}
	if r.URL.Path == "/v3/index.json" {
		_, _ = fmt.Fprintf(w, f.index, f.URL)
		return
	}
	if id, ok := between(r.URL.Path, "/v3-flatcontainer/", "/index.json"); ok && f.versions[id] != nil {
		_ = json.NewEncoder(w).Encode(map[string]any{"versions": f.versions[id]})
		return
	}
	for _, folder := range []string{"/readmes/", "/v3-flatcontainer/"} {
		if key, ok := between(r.URL.Path, folder, "/readme"); ok && f.readmes[key] != "" {
			_, _ = w.Write([]byte(f.readmes[key]))
			return
		}
	}
	http.NotFound(w, r)
}

func between(path, before, after string) (string, bool) {
	path, begins := strings.CutPrefix(path, before)
	path, ends := strings.CutSuffix(path, after)
	return path, begins && ends
}

func (f *far) plugin(t *testing.T) feedChecker {
	t.Helper()
	configured := fmt.Sprintf(`[{"baseUrl":%q},{"baseUrl":%q}]`, f.URL+"/v3/index.json", f.URL)
	checker, err := openFeeds(func(name string) string {
		return map[string]string{registryclient.Variable: configured}[name]
	})
	must.Succeed(t, err)
	return checker
}

func (f *far) claim(id, version string) sdk.Claim {
	return sdk.Claim{
		ServerName: server, RegistryType: "nuget", RegistryBaseURL: f.URL + "/v3/index.json", Identifier: id,
		Version: version,
	}
}

// isRefusal reports whether err is a refusal and not a failure. A failure has a cause.
func isRefusal(err error) bool {
	var failure *registryclient.Error
	return err != nil && !errors.As(err, &failure) && errors.Unwrap(err) == nil
}

func wantRefusal(t *testing.T, err error, text string) {
	t.Helper()
	if !isRefusal(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("Check = %v, want a refusal with %q", err, text)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	sdktest.RunOwnership(t, func(t *testing.T) sdktest.Ownership {
		f := newFar(t)
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			throttled := strings.Contains(r.URL.Path, "/throttled/")
			if throttled {
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return throttled
		}
		transient := f.claim("throttled", "1.0.0")
		unlisted := f.claim("Example.Weather", "1.0.0")
		unlisted.RegistryBaseURL = "https://nuget.example.com/v3/index.json"
		return sdktest.Ownership{
			Plugin: f.plugin(t),
			Owned:  f.claim("Example.Weather", "1.0.0"),
			Refused: map[string]sdk.Claim{
				"the package does not exist": f.claim("Example.Absent", "1.0.0"),
				"the version does not exist": f.claim("Example.Weather", "2.0.0"),
				"not claimed":                f.claim("Example.Weather", "0.9.0"),
				"no readme":                  f.claim("Example.NoReadme", "1.0.0"),
				"not allowed":                unlisted,
			},
			Transient: &transient, RetryAfter: 30 * time.Second,
		}
	})
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	plugin := f.plugin(t)
	for name, c := range map[string]struct {
		id, version string
		want        string // part of the refusal; empty if the claim is confirmed
	}{
		"claimed":               {"Example.Weather", "1.0.0", ""},
		"claimed in lower id":   {"example.weather", "1.0.0", ""},
		"version not normal":    {"Example.Weather", "1.0", ""},
		"pre-release":           {"Example.Weather", "1.1.0-Beta+build", ""},
		"no package":            {"Example.Absent", "1.0.0", `there is no NuGet package "Example.Absent"`},
		"no versions":           {"Example.None", "1.0.0", "there is no NuGet package"},
		"no version":            {"Example.Weather", "1.0.1", `has no version "1.0.1"`},
		"not claimed":           {"Example.Plain", "1.0.0", "does not claim the server"},
		"not by this version":   {"Example.Weather", "0.9.0", "does not claim the server"},
		"ours is a prefix":      {"Example.Prefix", "1.0.0", "contains"},
		"no readme":             {"Example.NoReadme", "1.0.0", "has no readme"},
		"version missing":       {"Example.Weather", "", "has no version: add"},
		"not a version":         {"Example.Weather", "one", "is not valid"},
		"version with a path":   {"Example.Weather", "1.0.0/../../x", "is not valid"},
		"id with a path":        {"../query", "1.0.0", "is not a valid NuGet package id"},
		"id with a placeholder": {"{lower_version}", "1.0.0", "is not a valid NuGet package id"},
		"id too long":           {strings.Repeat("x", maxID+1), "1.0.0", "is not a valid NuGet package id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := plugin.Check(t.Context(), f.claim(c.id, c.version))
			if c.want != "" {
				wantRefusal(t, err, c.want)
			} else if err != nil {
				t.Errorf("Check = %v, want no error", err)
			}
		})
	}
	short := f.claim("Example.Weather", "1.0.0")
	short.RegistryBaseURL = f.URL + "/"
	if err := plugin.Check(t.Context(), short); err != nil {
		t.Errorf("base URL without the index: Check = %v, want no error", err)
	}
}

func TestServiceIndexes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		index   string
		refused bool
		want    string // empty for no error
	}{
		"types in lists": {`{"resources":[{"@id":"%[1]s/v3-flatcontainer","@type":["PackageBaseAddress/3.0.0"]},
			{"@id":"%[1]s/readmes/{lower_id}/{lower_version}/readme","@type":["ReadmeUriTemplate/6.13.0","Other"]}]}`,
			false, ""},
		"no template": {
			`{"resources":[{"@id":"%[1]s/v3-flatcontainer","@type":"PackageBaseAddress/3.0.0"}]}`, false, "",
		},
		"no packages": {
			`{"resources":[{"@id":"%[1]s/x","@type":"SearchQueryService"}]}%.0[1]s`, false,
			"lists no resource of type PackageBaseAddress",
		},
		"other host": {
			`{"resources":[{"@id":"https://api.example.com/x","@type":"PackageBaseAddress/3.0.0"}]}%.0[1]s`, true,
			"outside the registry",
		},
		"readme elsewhere": {`{"resources":[{"@id":"%[1]s/v3-flatcontainer","@type":"PackageBaseAddress/3.0.0"},
			{"@id":"http://169.254.169.254/{lower_id}","@type":"ReadmeUriTemplate/6.13.0"}]}`, true,
			"outside the registry"},
		"malformed":   {`{"resources":%.0[1]s`, false, "is malformed"},
		"wrong types": {`{"resources":[{"@id":1,"@type":{}}]}%.0[1]s`, false, "is malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			f.index = c.index
			err := f.plugin(t).Check(t.Context(), f.claim("Example.Weather", "1.0.0"))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("Check = %v, want no error", err)
			case c.want != "" && (err == nil || isRefusal(err) != c.refused || !strings.Contains(err.Error(), c.want)):
				t.Errorf("Check = %v, want %q, as a refusal: %v", err, c.want, c.refused)
			}
		})
	}
}

func TestHostileAndBrokenFeeds(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a host that is not allowed was reached")
	}))
	t.Cleanup(elsewhere.Close)
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	big := strings.Repeat(" ", registryclient.DefaultMaxBytes+1)
	for name, c := range map[string]struct {
		at      string // the end of the path that gets another response
		answer  http.HandlerFunc
		refused bool
		want    string
	}{
		"index throttled": {"/v3/index.json", answer(429, ""), false, "429"},
		"index not there": {"/v3/index.json", answer(404, ""), true, "404"},
		"index oversized": {"/v3/index.json", answer(200, big), true, "more than"},
		"index elsewhere": {
			"/v3/index.json", http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP, true,
			"returned a redirect",
		},
		"versions throttled": {"weather/index.json", answer(429, ""), false, "429"},
		"versions down":      {"weather/index.json", answer(503, ""), false, "503"},
		"versions malformed": {"weather/index.json", answer(200, "<html>"), false, "is malformed"},
		"versions elsewhere": {
			"weather/index.json", http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, true,
			"returned a redirect",
		},
		"readme throttled": {"/readme", answer(429, ""), false, "429"},
		"readme denied":    {"/readme", answer(403, ""), true, "denied access"},
		"readme oversized": {"/readme", answer(200, big), true, "more than"},
		"readme elsewhere": {
			"/readme", http.RedirectHandler(elsewhere.URL+"/x", http.StatusFound).ServeHTTP, true,
			"returned a redirect",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, c.at) {
					return false
				}
				c.answer(w, r)
				return true
			}
			err := f.plugin(t).Check(t.Context(), f.claim("Example.Weather", "1.0.0"))
			if err == nil || isRefusal(err) != c.refused || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check = %v, want %q, as a refusal: %v", err, c.want, c.refused)
			}
		})
	}
}

func TestSlowFeed(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := f.plugin(t).Check(ctx, f.claim("Example.Weather", "1.0.0"))
	if isRefusal(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Check = %v, want the end of the context", err)
	}
}
