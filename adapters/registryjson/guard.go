package registryjson

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// Limits of the connections to the registries that mirrors read.
const (
	maxDial   = 10 * time.Second // resolving a name and connecting; also a TLS handshake
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

func newTransport() *http.Transport {
	return &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: maxDial, MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: maxKept,
	}
}

// RoundTrip implements http.RoundTripper.
func (g *redirectGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil { // http.Client sets it for redirects only
		return g.redirected.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
	}
	return g.chosen.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
}
