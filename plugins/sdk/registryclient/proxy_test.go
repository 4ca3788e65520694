package registryclient

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// tunnel is a proxy that accepts CONNECT for any host and connects to one server. It requires a
// password.
type tunnel struct {
	*httptest.Server
	to string

	mu    sync.Mutex
	asked []string
}

func newTunnel(t *testing.T, to *httptest.Server) *tunnel {
	t.Helper()
	p := &tunnel{to: to.Listener.Addr().String()}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP implements [http.Handler].
func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host)
	p.mu.Unlock()
	if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != "Basic YWRhOnNlY3JldA==" { // ada:secret
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	far, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = far.Close() }()
	w.WriteHeader(http.StatusOK)
	near, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = near.Close() }()
	go func() { _, _ = io.Copy(far, rest) }()
	_, _ = io.Copy(near, far)
}

func (p *tunnel) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, "\n")
}

// clientBehind returns a client with these variables that trusts the server's certificate.
func clientBehind(t *testing.T, trusted *httptest.Server, environment map[string]string) *Client {
	t.Helper()
	c, err := Open(Config{
		Defaults: []string{"https://packages.example.com"}, Environment: func(name string) string {
			return environment[name]
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(trusted.Certificate())
	for _, kept := range []http.RoundTripper{c.guarded, c.unguarded} {
		if p, ok := kept.(*proxyTransport); ok {
			p.through.TLSClientConfig.RootCAs = roots
			t.Cleanup(p.through.CloseIdleConnections)
		}
	}
	return c
}

func TestRequestsThroughAProxy(t *testing.T) {
	t.Parallel()
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the registry gets the password of the proxy")
		}
		_, _ = io.WriteString(w, "at "+r.URL.Path)
	}))
	t.Cleanup(far.Close)
	for name, c := range map[string]struct {
		environment map[string]string
		base        string
		private     string // of PACKAGE_REGISTRIES
		proxy       string // the requests that it got
		reason      Reason
		ok          bool
	}{
		"public registry": {
			map[string]string{"HTTPS_PROXY": "PROXY"}, "", "", "CONNECT packages.example.com:443", 0, true,
		},
		"in lower case": {
			map[string]string{"https_proxy": "PROXY"}, "", "", "CONNECT packages.example.com:443", 0, true,
		},
		"private registry": {map[string]string{"HTTPS_PROXY": "PROXY"}, "https://packages.example.com:8443/npm",
			"https://packages.example.com:8443/npm",
			"CONNECT packages.example.com:8443", 0, true},
		"private name": {
			map[string]string{"HTTPS_PROXY": "PROXY"}, "https://packages/npm", "https://packages/npm",
			"CONNECT packages:443", Unreachable, false,
		},
		"wrong password": {
			map[string]string{"HTTPS_PROXY": "WRONG"}, "", "", "CONNECT packages.example.com:443", Unreachable, false,
		},
		"exempted": {
			map[string]string{"HTTPS_PROXY": "PROXY", "NO_PROXY": "127.0.0.1,example.org"}, "https://127.0.0.1:1",
			"https://127.0.0.1:1", "", Unreachable, false,
		},
		"proxy for others": {
			map[string]string{"HTTP_PROXY": "PROXY", "NO_PROXY": "*"}, "https://127.0.0.1:1", "https://127.0.0.1:1", "",
			Unreachable, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTunnel(t, far)
			environment := map[string]string{}
			for variable, value := range c.environment {
				value = strings.Replace(value, "PROXY", "http://ada:secret@"+p.Listener.Addr().String(), 1)
				environment[variable] = strings.Replace(value, "WRONG",
					"http://ada:guess@"+p.Listener.Addr().String(), 1)
			}
			if c.private != "" {
				environment[Variable] = `[{"baseUrl":"` + c.private + `"}]`
			}
			base, err := clientBehind(t, far, environment).Base(c.base)
			if err != nil {
				t.Fatal(err)
			}
			body, err := base.Get(t.Context(), "x", Options{})
			if c.ok && (err != nil || !strings.HasSuffix(string(body), "/x")) || !c.ok && !Is(err, c.reason) {
				t.Errorf("Get = %q, %v", body, err)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "guess")) {
				t.Errorf("the error %q shows a secret", err)
			}
			if p.all() != c.proxy {
				t.Errorf("the proxy got the requests %q, want %q", p.all(), c.proxy)
			}
		})
	}
}

// TestNoPrivateHostThroughAProxy requests files at hosts that are not configured.
func TestNoPrivateHostThroughAProxy(t *testing.T) {
	t.Parallel()
	far := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the proxy leads to a private host")
	}))
	t.Cleanup(far.Close)
	p := newTunnel(t, far)
	c := clientBehind(t, far, map[string]string{"HTTPS_PROXY": "http://ada:secret@" + p.Listener.Addr().String()})
	for _, host := range []string{
		"localhost", "localhost.", "a.localhost", "127.0.0.1", "127.1", "0x7f.0.0.1", "2130706433", "10.0.0.1",
		"169.254.169.254", "[::1]",
		"[::ffff:10.0.0.1]", "[fd00::1]", "100.64.0.1", "metadata.google.internal", "printer.local", "router.lan",
		"nas.home.arpa", "intranet",
		p.Listener.Addr().String(),
	} {
		base, err := c.At("https://" + host + "/x")
		if err != nil {
			continue // refused before
		}
		if _, err := base.Get(t.Context(), "https://"+host+"/x", Options{}); !Is(err, ForbiddenAddress) {
			t.Errorf("%s: %v, want ForbiddenAddress", host, err)
		}
	}
	if p.all() != "" {
		t.Errorf("the proxy got the requests %q", p.all())
	}
	for _, host := range []string{
		"example.com", "packages.example.com.", "203.0.113.7", "2001:db8::1", "1.example.com",
	} {
		if !publicdial.IsPublicHost(host) {
			t.Errorf("%s is refused", host)
		}
	}
}

func TestMalformedProxies(t *testing.T) {
	t.Parallel()
	for value, good := range map[string]bool{
		"": true, "proxy.example.com:3128": true, "http://proxy": true, "https://u:p@proxy:1": true,
		"socks5://secret:1": false, "http://": false, "http://secret\x00": false, "file:///secret": false,
	} {
		for _, name := range []string{"HTTPS_PROXY", "http_proxy"} {
			_, err := Open(Config{
				Environment: func(asked string) string { return map[string]string{name: value}[asked] },
			})
			if (err == nil) != good ||
				err != nil &&
					(!strings.Contains(err.Error(), strings.ToUpper(name)) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
}
