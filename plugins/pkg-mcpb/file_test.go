package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

const store = "objects.githubusercontent.com"

// hosts serves all hosts from one server, which distinguishes them by the requested name.
func hosts(t *testing.T, serve http.HandlerFunc) http.RoundTripper {
	t.Helper()
	f := httptest.NewTLSServer(serve)
	t.Cleanup(f.Close)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, f.Listener.Addr().String())
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the test server has no certificate for these hosts
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func TestPublicDownloads(t *testing.T) {
	t.Parallel()
	const address = "https://github.com/owner/weather/releases/download/v1/weather.mcpb"
	for name, c := range map[string]struct {
		location string // that github.com redirects to; empty for no redirect
		status   int    // of the store's response
		reason   registryclient.Reason
		ok       bool
	}{
		"from the store": {"https://" + store + "/x?sig=1", 200, 0, true},
		"from the host":  {"https://github.com/x", 200, 0, true},
		"gone":           {"https://" + store + "/x", 404, registryclient.NotFound, false},
		"expired":        {"https://" + store + "/x", 403, registryclient.Denied, false},
		"throttled":      {"https://" + store + "/x", 429, registryclient.Throttled, false},
		"down":           {"https://" + store + "/x", 503, registryclient.ServerError, false},
		"odd":            {"https://" + store + "/x", 204, registryclient.Unexpected, false},
		"another host":   {"https://files.example.com/x", 200, registryclient.ForbiddenRedirect, false},
		"store of another": {
			"https://cdn.artifacts.gitlab-static.net/x", 200, registryclient.ForbiddenRedirect, false,
		},
		"store over http":    {"http://" + store + "/x", 200, registryclient.ForbiddenRedirect, false},
		"store and a port":   {"https://" + store + ":8443/x", 200, registryclient.ForbiddenRedirect, false},
		"store and a user":   {"https://u@" + store + "/x", 200, registryclient.ForbiddenRedirect, false},
		"store as a label":   {"https://" + store + ".example.com/x", 200, registryclient.ForbiddenRedirect, false},
		"without an end":     {address, 200, registryclient.ForbiddenRedirect, false},
		"not where":          {"", 302, registryclient.Unexpected, false},
		"to a private place": {"https://127.0.0.1/x", 200, registryclient.ForbiddenRedirect, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := hosts(t, func(w http.ResponseWriter, r *http.Request) {
				if c.location != "" && "https://"+r.Host+r.URL.Path == address {
					http.Redirect(w, r, c.location, http.StatusFound)
					return
				}
				if r.Referer() != "" {
					t.Errorf("%s gets a Referer header", r.Host)
				}
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(c.status)
				if c.status == http.StatusOK {
					_, _ = io.WriteString(w, contents)
				}
			})
			f, err := openPlugin(t, "https://files.example.org").findFile(newClaim(address, ""))
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			err = f.followRedirects(request, transport, func(r io.Reader) error {
				_, err := io.Copy(&got, r)
				return err
			})
			var failure *registryclient.Error
			switch {
			case c.ok && (err != nil || got.String() != contents):
				t.Errorf("follow = %q, %v, want the contents", &got, err)
			case !c.ok && (!errors.As(err, &failure) || failure.Reason != c.reason || got.Len() > 0 ||
				(failure.RetryAfter == 30*time.Second) != (failure.Status != 0)):
				t.Errorf("follow = %q, %v, want the error of reason %d", &got, err, c.reason)
			}
		})
	}
}

func TestLargePublicDownload(t *testing.T) {
	t.Parallel()
	transport := hosts(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", most+1))
	})
	f, err := openPlugin(t, "https://files.example.org").
		findFile(newClaim("https://github.com/o/w/releases/download/v1/x", ""))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = f.followRedirects(request, transport, func(io.Reader) error {
		t.Error("a file whose Content-Length is too large is read")
		return nil
	})
	if !registryclient.Is(err, registryclient.TooLarge) {
		t.Errorf("follow = %v, want %d", err, registryclient.TooLarge)
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
