package registryjson

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// allowLoopback makes redirects to this machine possible.
func allowLoopback(s *MirrorSource) {
	networks := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	s.client.http.Transport.(*redirectGuard).redirected.DialContext = publicdial.New(publicdial.Config{
		Allowed: networks,
	})
}

// trust makes the source trust the authority of an upstream.
func trust(t *testing.T, s *MirrorSource, up *upstream.Server) {
	t.Helper()
	text, err := os.ReadFile(up.CAFile)
	must.Succeed(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	guard := s.client.http.Transport.(*redirectGuard)
	guard.chosen.TLSClientConfig.RootCAs, guard.redirected.TLSClientConfig.RootCAs = pool, pool
}

func TestRedirectsLeadToPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	target := upstream.Start(t, upstream.Servers(1)...)
	port := hostOf(t, target.URL).Port()
	up := upstream.Start(t)
	for _, to := range []string{
		"http://127.0.0.1:" + port, "http://localhost:" + port, "http://[::1]:" + port,
		"http://[::ffff:127.0.0.1]:" + port,
		"http://0.0.0.0:" + port, "http://10.0.0.1", "http://192.168.1.1", "http://169.254.169.254", "http://[fe80::1]",
	} {
		up.Behave(upstream.Behaviour{Fault: upstream.Redirect(to + "/v0.1/servers")})
		s, pauses := newTestMirror(t)
		_, err := s.Read(t.Context(), requestOf(up))
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "which is not a public address") ||
			len(*pauses) != 0 {
			t.Errorf("a redirect to %s: Read returned %v after %v", to, err, *pauses)
		}
	}
	// The same server is not an exception: after a correct page there is a connection to it.
	up.Set(upstream.Servers(150)...)
	up.Behave(upstream.Behaviour{Fault: upstream.Redirect("/v0.1/servers"), OnPage: 2})
	s, _ := newTestMirror(t)
	if _, err := s.Read(t.Context(), requestOf(up)); err == nil ||
		!strings.Contains(err.Error(), "page 2: redirects to 127.0.0.1") {
		t.Errorf("a redirect to the same server: Read returned %v", err)
	}
	if len(target.Requests()) != 0 {
		t.Errorf("redirected requests were %q", target.Requests())
	}
}

func TestRedirectIsFollowedWithoutSecrets(t *testing.T) {
	t.Parallel()
	var referer string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		referer = r.Header.Get("Referer")
		w.Write([]byte(`{"servers":[{"server":{"name":"a"}}]}`))
	}))
	t.Cleanup(target.Close)
	first := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusFound))
	t.Cleanup(first.Close)
	s, _ := newTestMirror(t)
	allowLoopback(s)
	_, names, err := readMirror(t, s, recordsource.ListRequest{URL: mirror.URL(first.URL + "/t/secret")})
	if err != nil || len(names) != 1 || referer != "" {
		t.Errorf("Read returned %q, %v; Referer is %q", names, err, referer)
	}
}

func TestRedirectNeverLeavesTLS(t *testing.T) {
	t.Parallel()
	plain := upstream.Start(t, upstream.Servers(1)...)
	up := upstream.StartTLS(t, upstream.Servers(1)...)
	s, pauses := newTestMirror(t)
	trust(t, s, up)
	allowLoopback(s)
	if _, names, err := readMirror(t, s, requestOf(up)); err != nil || len(names) != 1 {
		t.Fatalf("Read returned %q, %v", names, err)
	}
	up.Behave(upstream.Behaviour{Fault: upstream.Redirect(plain.URL + "/v0.1/servers")})
	if _, err := s.Read(t.Context(),
		requestOf(up)); err == nil || !strings.HasSuffix(err.Error(), "page 1: redirects from https to http") ||
		len(*pauses) != 0 {
		t.Errorf("Read returned %v after %v", err, *pauses)
	}
	between := upstream.Start(t)
	between.Behave(upstream.Behaviour{Fault: upstream.Redirect(up.URL + "/v0.1/servers")})
	if _, err := s.Read(t.Context(), requestOf(between)); err == nil ||
		!strings.HasSuffix(err.Error(), "page 1: redirects from https to http") {
		t.Errorf("http to https to http: Read returned %v", err)
	}
	if len(plain.Requests()) != 0 {
		t.Errorf("requests without TLS were %q", plain.Requests())
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	up := upstream.StartTLS(t)
	s, _ := newTestMirror(t)
	if _, err := s.Read(t.Context(), requestOf(up)); err == nil ||
		!strings.HasSuffix(err.Error(), "signed by an unknown authority") {
		t.Errorf("Read returned %v", err)
	}
	plain := upstream.Start(t)
	address := strings.Replace(plain.URL, "http:", "https:", 1)
	if _, err := s.Read(t.Context(), recordsource.ListRequest{URL: mirror.URL(address)}); err == nil ||
		!strings.Contains(err.Error(), "does not use TLS") {
		t.Errorf("Read returned %v", err)
	}
	trust(t, s, up)
	address = strings.Replace(up.URL, "127.0.0.1", "localhost", 1)
	if _, err := s.Read(t.Context(), recordsource.ListRequest{URL: mirror.URL(address)}); err == nil ||
		!strings.HasSuffix(err.Error(), "is for another host") {
		t.Errorf("Read returned %v", err)
	}
}

func TestProxyIsForChosenAddressesOnly(t *testing.T) {
	t.Parallel()
	guard := newRedirectGuard()
	if guard.chosen.Proxy == nil || guard.redirected.Proxy != nil {
		t.Error("the proxy of the environment must be for requests that are not redirected")
	}
	up := upstream.Start(t, upstream.Servers(1)...)
	at := hostOf(t, up.URL)
	s, _ := newTestMirror(t)
	s.client.http.Transport.(*redirectGuard).chosen.Proxy = http.ProxyURL(at) // the upstream is the proxy too
	behind := recordsource.ListRequest{URL: "http://registry.invalid"}
	if _, names, err := readMirror(t, s, behind); err != nil || len(names) != 1 {
		t.Errorf("Read returned %q, %v", names, err)
	}
	up.Behave(upstream.Behaviour{Fault: upstream.Redirect("http://169.254.169.254/v0.1/servers")})
	if _, err := s.Read(t.Context(), behind); err == nil ||
		!strings.Contains(err.Error(), "which is not a public address") {
		t.Errorf("Read returned %v", err)
	}
	s.client.http.Transport.(*redirectGuard).chosen.Proxy = http.ProxyURL(hostOf(t, "http://ada:secret@127.0.0.1:1"))
	if _, err := s.Read(t.Context(), behind); err == nil ||
		!strings.HasSuffix(err.Error(), "the proxy of HTTP_PROXY or HTTPS_PROXY cannot be reached") {
		t.Errorf("Read returned %v", err)
	}
}
