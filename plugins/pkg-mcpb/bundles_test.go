package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	contents = "PK\x03\x04 not really a bundle"
	most     = 1 << 10
)

func checksum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// newFar starts a server of files; only those below /files are allowed.
func newFar(t *testing.T) *httptest.Server {
	t.Helper()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a host that is not allowed was reached")
	}))
	t.Cleanup(elsewhere.Close)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "30"); w.WriteHeader(code) }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/files/weather.mcpb", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, contents)
	})
	mux.HandleFunc("/outside.mcpb", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, contents) })
	mux.HandleFunc("/files/whole", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", most))
	})
	mux.HandleFunc("/files/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", most+1))
	})
	mux.HandleFunc("/files/endless", endless)
	mux.HandleFunc("/files/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, contents)
	})
	mux.HandleFunc("/files/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/files/throttled", status(http.StatusTooManyRequests))
	mux.HandleFunc("/files/down", status(http.StatusBadGateway))
	mux.HandleFunc("/files/private", status(http.StatusForbidden))
	mux.HandleFunc("/files/odd", status(http.StatusTeapot))
	mux.HandleFunc("/files/elsewhere", http.RedirectHandler(elsewhere.URL+"/x", http.StatusFound).ServeHTTP)
	mux.HandleFunc("/files/metadata", http.RedirectHandler("http://169.254.169.254/x", http.StatusFound).ServeHTTP)
	mux.HandleFunc("/files/here", http.RedirectHandler("/files/weather.mcpb", http.StatusFound).ServeHTTP)
	mux.HandleFunc("/files/loop", http.RedirectHandler("/files/loop", http.StatusFound).ServeHTTP)
	f := httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// endless writes a body without a length until the client disconnects.
func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write(make([]byte, most)); err != nil {
			return
		}
	}
}

func openPlugin(t *testing.T, base string) bundles {
	t.Helper()
	plugin, err := openBundles(func(variable string) string {
		return map[string]string{
			registryclient.Variable: fmt.Sprintf(`[{"baseUrl":%q}]`, base), maxBytesVariable: fmt.Sprint(most),
		}[variable]
	})
	must.Succeed(t, err)
	return plugin
}

func newClaim(address, fileSHA256 string) sdk.Claim {
	return sdk.Claim{
		ServerName: "io.github.example/weather", RegistryType: "mcpb", Identifier: address, Version: "1.0.0",
		FileSHA256: fileSHA256,
	}
}

// isRefusal reports whether err is a refusal and not a failure. A failure has a cause.
func isRefusal(err error) bool {
	var failure *registryclient.Error
	return err != nil && !errors.As(err, &failure) && errors.Unwrap(err) == nil
}

func TestContract(t *testing.T) {
	t.Parallel()
	sdktest.RunOwnership(t, func(t *testing.T) sdktest.Ownership {
		base := newFar(t).URL + "/files"
		transient := newClaim(base+"/throttled", checksum(contents))
		return sdktest.Ownership{
			Plugin: openPlugin(t, base),
			Owned:  newClaim(base+"/weather.mcpb", checksum(contents)),
			Refused: map[string]sdk.Claim{
				"the file does not exist": newClaim(base+"/absent.mcpb", checksum(contents)),
				"other file":              newClaim(base+"/weather.mcpb", checksum("another")),
				"no sum":                  newClaim(base+"/weather.mcpb", ""),
				"too large":               newClaim(base+"/large", checksum(strings.Repeat("x", most+1))),
				"not allowed":             newClaim("https://files.example.com/weather.mcpb", checksum(contents)),
			},
			Transient: &transient, RetryAfter: 30 * time.Second,
		}
	})
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	far := newFar(t)
	base := far.URL + "/files"
	plugin := openPlugin(t, base)
	const github = "https://github.com/owner/weather/"
	for name, c := range map[string]struct {
		address, sum string
		refused      bool
		want         string // empty for no error
	}{
		"the file":        {base + "/weather.mcpb", checksum(contents), false, ""},
		"largest":         {base + "/whole", checksum(strings.Repeat("x", most)), false, ""},
		"redirected here": {base + "/here", checksum(contents), false, ""},
		"another file": {
			base + "/weather.mcpb", checksum("x"), true,
			"has the SHA-256 checksum " + checksum(contents) + ", but fileSha256 is " + checksum("x"),
		},
		"empty sum":        {base + "/weather.mcpb", "", true, "fileSha256 of the MCPB file is missing"},
		"short sum":        {base + "/weather.mcpb", checksum("x")[:62], true, "64 hexadecimal digits"},
		"no file":          {base + "/absent", checksum(contents), true, "there is no file"},
		"private file":     {base + "/private", checksum(contents), true, "is not public"},
		"odd answer":       {base + "/odd", checksum(contents), true, "418"},
		"too large":        {base + "/large", checksum(contents), true, "more than"},
		"endless":          {base + "/endless", checksum(contents), true, "more than"},
		"elsewhere":        {base + "/elsewhere", checksum(contents), true, "returned a redirect that is not allowed"},
		"metadata":         {base + "/metadata", checksum(contents), true, "returned a redirect that is not allowed"},
		"loop":             {base + "/loop", checksum(contents), true, "returned a redirect that is not allowed"},
		"throttled":        {base + "/throttled", checksum(contents), false, "429"},
		"down":             {base + "/down", checksum(contents), false, "502"},
		"broken off":       {base + "/broken", checksum(contents), false, "unexpected EOF"},
		"outside the base": {far.URL + "/outside.mcpb", checksum(contents), true, "must be an https URL"},
		"way out":          {base + "/../outside.mcpb", checksum(contents), true, "dot segments"},
		"plain http": {
			"http://github.com/owner/weather/releases/download/v1/weather.mcpb", checksum(contents), true,
			"must be an https URL",
		},
		"no URL":          {"weather.mcpb", checksum(contents), true, "is not the https URL of an MCPB file"},
		"file URL":        {"file:///etc/passwd", checksum(contents), true, "is not the https URL of an MCPB file"},
		"unlisted host":   {"https://files.example.com/weather.mcpb", checksum(contents), true, "are not accepted"},
		"private address": {"https://10.0.0.1/weather.mcpb", checksum(contents), true, "are not accepted"},
		"host with a port": {
			"https://github.com:8443/o/w/releases/download/v1/x", checksum(contents), true, "are not accepted",
		},
		"source archive": {
			github + "archive/refs/tags/v1.zip", checksum(contents), true, "is not a release download",
		},
		"raw file": {github + "raw/main/weather.mcpb", checksum(contents), true, "is not a release download"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := plugin.Check(t.Context(), newClaim(c.address, c.sum))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("Check = %v, want no error", err)
			case c.want != "" && (err == nil || isRefusal(err) != c.refused || !strings.Contains(err.Error(), c.want)):
				t.Errorf("Check = %v, want %q, as a refusal: %v", err, c.want, c.refused)
			}
		})
	}
}

func TestBaseURLOfTheDocument(t *testing.T) {
	t.Parallel()
	far := newFar(t)
	plugin := openPlugin(t, far.URL+"/files")
	for base, want := range map[string]bool{
		"": true, far.URL: true, far.URL + "/": true, far.URL + "/files/": true, far.URL + "/fil": false,
		"https://github.com": false, "https" + strings.TrimPrefix(far.URL, "http"): false, "%": false,
	} {
		c := newClaim(far.URL+"/files/weather.mcpb", checksum(contents))
		c.RegistryBaseURL = base
		if err := plugin.Check(t.Context(), c); (err == nil) != want || err != nil && !isRefusal(err) {
			t.Errorf("registryBaseUrl %q: Check = %v, accepted should be %v", base, err, want)
		}
	}
}

func TestSlowHost(t *testing.T) {
	t.Parallel()
	base := newFar(t).URL + "/files"
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := openPlugin(t, base).Check(ctx, newClaim(base+"/slow", checksum(contents)))
	if isRefusal(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Check = %v, want the end of the context", err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"": true, "1": true, "1073741824": true, "0": false, "1073741825": false, "64M": false, "-1": false,
	} {
		plugin, err := openBundles(func(variable string) string {
			return map[string]string{maxBytesVariable: value}[variable]
		})
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), maxBytesVariable) {
			t.Errorf("%s=%q: open = %v, good should be %v", maxBytesVariable, value, err, want)
		}
		if value == "" && plugin.maxBytes != defaultMaxBytes {
			t.Errorf("the bound is %d by default", plugin.maxBytes)
		}
	}
	if _, err := openBundles(func(string) string { return "1" }); err == nil {
		t.Error("open took registries that are no list")
	}
}

func TestPathsOfPublicHosts(t *testing.T) {
	t.Parallel()
	plugin := openPlugin(t, "https://files.example.org")
	for address, want := range map[string]bool{
		"https://github.com/jkawamoto/mcp-bear/releases/download/v0.5.0/mcp-bear.mcpb":    true,
		"https://github.com/a/b/releases/download/agent-v1.0.0+build.fccc0958/agent.mcpb": true,
		"https://GitHub.com:443/a/b/releases/download/v1/a.mcpb":                          true,
		"https://github.com/a/b/releases/download/v1%2F2/a.mcpb":                          true,
		"https://github.com/a/b/releases/latest/download/a.mcpb":                          false,
		"https://github.com/a/b/releases/download/v1/":                                    false,
		"https://github.com/a/releases/download/v1/a.mcpb":                                false,
		"https://github.com/a/b/c/releases/download/v1/a.mcpb":                            false,
		"https://github.com": false,
		"https://gitlab.com/group/sub/project/-/releases/v1/downloads/bin/a.mcpb":                           true,
		"https://gitlab.com/group/project/-/package_files/12/download":                                      true,
		"https://gitlab.com/api/v4/projects/group%2Fproject/packages/generic/weather/1.0.0/weather.mcpb":    true,
		"https://gitlab.com/group/project/-/raw/main/a.mcpb":                                                false,
		"https://gitlab.com/group/project/-/jobs/1/artifacts/download":                                      false,
		"https://gist.github.com/a/b/releases/download/v1/a.mcpb":                                           false,
		"https://github.com/a/b/releases/download/v1/%2e%2e":                                                false,
		"https://github.com/a/b/releases/download/v1/..%2f..%2f..%2fraw":                                    false,
		"https://files.example.org/anything":                                                                true,
		"https://user:password@github.com/a/b/releases/download/v1/a.mcpb":                                  false,
		"https://github.com.example.com/a/b/releases/download/v1/a.mcpb":                                    false,
		"https://github.com/a/b/releases/download/v1/a.mcpb?x=https://example.com/releases/download/v1/a.b": true,
	} {
		_, err := plugin.findFile(newClaim(address, ""))
		if (err == nil) != want || err != nil && !isRefusal(err) {
			t.Errorf("file(%q) = %v, accepted should be %v", address, err, want)
		}
	}
}

// TestStoresOfPublicHosts checks that files of each public host may come from its own stores only.
func TestStoresOfPublicHosts(t *testing.T) {
	t.Parallel()
	plugin := openPlugin(t, "https://files.example.org")
	for address, want := range map[string]string{
		"https://github.com/o/w/releases/download/v1/x":         "objects.githubusercontent.com",
		"https://gitlab.com/group/p/-/package_files/1/download": "cdn.artifacts.gitlab-static.net",
		"https://files.example.org/x":                           "",
	} {
		f, err := plugin.findFile(newClaim(address, ""))
		if err != nil || !slices.Contains(append(f.stores, ""), want) || (len(f.stores) > 0) != (want != "") {
			t.Errorf("file(%q) = %v, %v, want the store %q", address, f.stores, err, want)
		}
	}
}
