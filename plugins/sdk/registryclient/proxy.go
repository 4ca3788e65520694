package registryclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxies returns, for a URL, the proxy through which it is reached; nil for none.
type proxies func(*url.URL) (*url.URL, error)

// proxiesOf reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, also in lower case, as most programs do. Nil means that no proxy is
// set. The error names the variable, and shows no value: it may hold a password.
func proxiesOf(environment func(string) string) (proxies, error) {
	either := func(name string) string { return cmp.Or(environment(name), environment(strings.ToLower(name))) }
	settings := httpproxy.Config{HTTPSProxy: either("HTTPS_PROXY"), HTTPProxy: either("HTTP_PROXY"), NoProxy: either("NO_PROXY")}
	for name, value := range map[string]string{"HTTPS_PROXY": settings.HTTPSProxy, "HTTP_PROXY": settings.HTTPProxy} {
		if !isProxy(value) {
			return nil, fmt.Errorf("%s is not the http or https URL of a proxy", name)
		}
	}
	if settings.HTTPSProxy == "" && settings.HTTPProxy == "" {
		return nil, nil
	}
	return settings.ProxyFunc(), nil
}

// isProxy reports whether value is empty, or a proxy's URL, whose scheme may be left out.
func isProxy(value string) bool {
	if value == "" {
		return true
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	at, err := url.Parse(value)
	return err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Hostname() != ""
}

// proxied makes each request through its proxy, if it has one, and else directly. Connections to proxies are made without the
// guard of direct ones, because the operator configured them. Requests for hosts that reachable refuses do not get to a proxy,
// which would resolve the name where we cannot see it.
type proxied struct {
	direct, through *http.Transport
	find            proxies
	reachable       func(host string) bool
}

// withProxies returns a transport whose direct connections are made by dial; find may be nil.
func withProxies(dial func(context.Context, string, string) (net.Conn, error), find proxies, reachable func(host string) bool) http.RoundTripper {
	direct := transport(dial)
	if find == nil {
		return direct
	}
	through := transport((&net.Dialer{Timeout: dialTimeout}).DialContext)
	through.Proxy = func(r *http.Request) (*url.URL, error) { return find(r.URL) }
	return &proxied{direct: direct, through: through, find: find, reachable: reachable}
}

// RoundTrip implements [http.RoundTripper].
func (p *proxied) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := p.find(r.URL)
	switch {
	case err != nil:
		return nil, errors.New("no proxy can be chosen") // the cause may show the proxy's password
	case proxy == nil:
		return p.direct.RoundTrip(r) //nolint:wrapcheck // what the transport returns, as a RoundTripper must
	case !p.reachable(r.URL.Hostname()):
		return nil, &errPrivate{address: r.URL.Host}
	}
	return p.through.RoundTrip(r) //nolint:wrapcheck // what the transport returns, as a RoundTripper must
}

// anyHost is for the hosts that the operator configured.
func anyHost(string) bool { return true }

// publicHost reports whether a host may be asked for at a proxy: a public address, or a name that does not by itself mean a
// machine of an inside network. What the name leads to is for the proxy to judge.
func publicHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(host); err == nil {
		return public(address)
	}
	labels := strings.Split(host, ".")
	top := labels[len(labels)-1]
	switch {
	case len(labels) < 2 || slices.Contains(labels, ""):
		return false
	case top[0] >= '0' && top[0] <= '9': // an IPv4 address in one of the forms that only some programs read, such as 127.1 or 0x7f.1
		return false
	case strings.HasSuffix(host, ".home.arpa"):
		return false
	}
	return !slices.Contains([]string{"localhost", "localdomain", "local", "internal", "lan"}, top)
}
