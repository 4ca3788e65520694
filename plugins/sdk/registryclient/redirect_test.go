package registryclient

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
)

// The hosts of a registry that stores its files on another one.
const (
	filesHost = "files.example.com"
	storeHost = "store.example.net"
	contents  = "PK\x03\x04 not really a file"
)

// openFiles returns the registry at filesHost. One server serves all public hosts, and distinguishes
// them by the requested name.
func openFiles(t *testing.T, serve http.HandlerFunc) *Base {
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
	c, err := Open(Config{Defaults: []string{"https://" + filesHost}})
	if err != nil {
		t.Fatal(err)
	}
	c.guarded = transport
	base, err := c.Base("")
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// TestRedirectHosts checks to which hosts a download may be redirected, and the reason of its error.
func TestRedirectHosts(t *testing.T) {
	t.Parallel()
	const address = "https://" + filesHost + "/v1/weather.mcpb"
	for name, c := range map[string]struct {
		location string // of the redirect; empty for none
		status   int    // of the store's response
		reason   Reason
		ok       bool
	}{
		"from the store":     {"https://" + storeHost + "/x?sig=1", 200, 0, true},
		"from the host":      {"https://" + filesHost + "/x", 200, 0, true},
		"gone":               {"https://" + storeHost + "/x", 404, NotFound, false},
		"expired":            {"https://" + storeHost + "/x", 403, Denied, false},
		"throttled":          {"https://" + storeHost + "/x", 429, Throttled, false},
		"down":               {"https://" + storeHost + "/x", 503, ServerError, false},
		"odd":                {"https://" + storeHost + "/x", 204, Unexpected, false},
		"another host":       {"https://other.example.com/x", 200, ForbiddenRedirect, false},
		"store over http":    {"http://" + storeHost + "/x", 200, ForbiddenRedirect, false},
		"store and a port":   {"https://" + storeHost + ":8443/x", 200, ForbiddenRedirect, false},
		"store and a user":   {"https://u@" + storeHost + "/x", 200, ForbiddenRedirect, false},
		"store as a label":   {"https://" + storeHost + ".example.com/x", 200, ForbiddenRedirect, false},
		"without an end":     {address, 200, ForbiddenRedirect, false},
		"not where":          {"", 302, Unexpected, false},
		"to a private place": {"https://127.0.0.1/x", 200, ForbiddenRedirect, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := openFiles(t, func(w http.ResponseWriter, r *http.Request) {
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
			got, err := base.Get(t.Context(), address, Options{RedirectHosts: []string{storeHost}})
			var failure *Error
			switch {
			case c.ok && (err != nil || string(got) != contents):
				t.Errorf("Get = %q, %v, want the contents", got, err)
			case !c.ok && (!errors.As(err, &failure) || failure.Reason != c.reason || len(got) > 0 ||
				(failure.RetryAfter == 30*time.Second) != (failure.Status != 0)):
				t.Errorf("Get = %q, %v, want the error of reason %d", got, err, c.reason)
			}
		})
	}
}

// TestRedirectHostsGetNoCredentials checks that a redirect to another host carries no token, and that
// its address must be public although the registry is configured.
func TestRedirectHostsGetNoCredentials(t *testing.T) {
	t.Parallel()
	base := openFiles(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host == filesHost {
			http.Redirect(w, r, "https://"+storeHost+"/x", http.StatusFound)
		}
		if sent := r.Header.Get("Authorization"); (sent != "") != (r.Host == filesHost) {
			t.Errorf("%s gets the Authorization header %q", r.Host, sent)
		}
	})
	guarded, requested := base.client.guarded, ""
	base.client.guarded = roundTripFunc(func(r *http.Request) (*http.Response, error) {
		requested += r.URL.Host
		return guarded.RoundTrip(r)
	})
	base.client.unguarded = guarded
	base.registry.configured, base.registry.credentials = true, Credentials{Token: "secret"}
	if _, err := base.Get(t.Context(), "x", Options{RedirectHosts: []string{storeHost}}); err != nil {
		t.Fatal(err)
	}
	if requested != storeHost {
		t.Errorf("only public addresses were allowed for %q, want %s", requested, storeHost)
	}
}

func TestLargeRedirectedFile(t *testing.T) {
	t.Parallel()
	const most = 1 << 10
	base := openFiles(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", most+1))
	})
	err := base.Fetch(t.Context(), "x", Options{MaxBytes: most}, func(io.Reader) error {
		t.Error("a file whose Content-Length is too large is read")
		return nil
	})
	if !Is(err, TooLarge) {
		t.Errorf("Fetch = %v, want %d", err, TooLarge)
	}
}
