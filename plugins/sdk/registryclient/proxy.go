package registryclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// proxyFinder returns the proxy for a URL, or nil for a direct connection.
type proxyFinder func(*url.URL) (*url.URL, error)

// parseProxies returns the proxies of HTTPS_PROXY, HTTP_PROXY and NO_PROXY in upper or lower case,
// or nil if no proxy is set. It returns an error that names a malformed variable. The error does
// not show the value, which may contain a password.
func parseProxies(environment func(string) string) (proxyFinder, error) {
	either := func(name string) string { return cmp.Or(environment(name), environment(strings.ToLower(name))) }
	settings := httpproxy.Config{
		HTTPSProxy: either("HTTPS_PROXY"), HTTPProxy: either("HTTP_PROXY"), NoProxy: either("NO_PROXY"),
	}
	for _, proxy := range []struct{ name, value string }{
		{"HTTPS_PROXY", settings.HTTPSProxy}, {"HTTP_PROXY", settings.HTTPProxy},
	} {
		if !isProxyURL(proxy.value) {
			return nil, fmt.Errorf("%s must be the http or https URL of a proxy", proxy.name)
		}
	}
	if settings.HTTPSProxy == "" && settings.HTTPProxy == "" {
		return nil, nil
	}
	return settings.ProxyFunc(), nil
}

// isProxyURL reports whether value is empty or the URL of a proxy, with or without its scheme.
func isProxyURL(value string) bool {
	if value == "" {
		return true
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	at, err := url.Parse(value)
	return err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Hostname() != ""
}

// proxyTransport sends each request through its proxy, or directly if it has no proxy. A proxy may
// have any address because the operator configured it. The proxy resolves the name of the host, so
// the addresses cannot be checked here; proxyTransport therefore refuses hosts for which reachable
// returns false.
type proxyTransport struct {
	direct, through *http.Transport
	find            proxyFinder
	reachable       func(host string) bool
}

// withProxies returns a transport that uses dial for direct connections; find may be nil.
func withProxies(
	dial func(context.Context, string, string) (net.Conn, error), find proxyFinder, reachable func(host string) bool,
) http.RoundTripper {
	direct := newTransport(dial)
	if find == nil {
		return direct
	}
	through := newTransport((&net.Dialer{Timeout: dialTimeout}).DialContext)
	through.Proxy = func(r *http.Request) (*url.URL, error) { return find(r.URL) }
	return &proxyTransport{direct: direct, through: through, find: find, reachable: reachable}
}

// RoundTrip implements [http.RoundTripper].
func (p *proxyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := p.find(r.URL)
	switch {
	case err != nil:
		return nil, errors.New("choosing a proxy failed") // the cause may show the proxy's password
	case proxy == nil:
		return p.direct.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
	case !p.reachable(r.URL.Hostname()):
		return nil, &publicdial.RefusedError{Address: r.URL.Host}
	}
	return p.through.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
}

// allowAnyHost returns true: the operator configured the host.
func allowAnyHost(string) bool { return true }
