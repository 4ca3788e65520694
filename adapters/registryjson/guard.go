package registryjson

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// Limits of the connections to the registries that mirrors read.
const (
	maxDial   = 10 * time.Second // resolving a name and connecting; also a TLS handshake
	maxLookup = 2 * time.Second  // resolving a name that a proxy resolves again
	maxHeader = 64 << 10         // of the header of a response, in bytes
	maxKept   = time.Minute      // for an unused connection
)

// redirectGuard sends requests to URLs that an operator has chosen with one transport, and
// redirected requests, whose URLs a server has chosen, with another one. They share no connections.
type redirectGuard struct {
	chosen, redirected *http.Transport
}

// newRedirectGuard returns a guard whose redirected requests connect to public addresses only. They
// do not use a proxy, because a proxy would resolve the names itself. The other requests use the
// proxies of the environment.
func newRedirectGuard() *redirectGuard {
	chosen := newTransport()
	chosen.Proxy = http.ProxyFromEnvironment
	chosen.DialContext = (&net.Dialer{Timeout: maxDial}).DialContext
	redirected := newTransport()
	redirected.DialContext = publicdial.New(publicdial.Config{Timeout: maxDial})
	return &redirectGuard{chosen, redirected}
}

// publicGuard sends requests to URLs that people have chosen, to public addresses only. It uses the
// proxies of the environment.
type publicGuard struct {
	direct, proxied *http.Transport
	proxyOf         func(*http.Request) (*url.URL, error)
}

func newPublicGuard(public publicdial.Config) *publicGuard {
	g := &publicGuard{newTransport(), newTransport(), http.ProxyFromEnvironment}
	g.direct.DialContext = publicdial.New(public)
	g.proxied.DialContext = (&net.Dialer{Timeout: maxDial}).DialContext // the operator chose the proxy
	g.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return g.proxyOf(r) }
	return g
}

// RoundTrip implements http.RoundTripper. A proxy resolves names itself, so a host must not be a name
// of inner networks, and every address that it has here must be public.
func (g *publicGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := g.proxyOf(r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find the proxy: %w", err)
	case proxy == nil:
		return g.direct.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
	}
	host := r.URL.Hostname()
	if !publicdial.IsPublicHost(host) {
		return nil, &publicdial.RefusedError{Address: host}
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxLookup)
	defer cancel()
	known, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // the proxy may resolve it
	for _, a := range known {
		if !publicdial.IsPublic(a) {
			return nil, &publicdial.RefusedError{Address: a.String()}
		}
	}
	return g.proxied.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
}

func newTransport() *http.Transport {
	return &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: maxDial, MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: maxKept,
	}
}

func (g *redirectGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil { // http.Client sets it for redirects only
		return g.redirected.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
	}
	return g.chosen.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
}
