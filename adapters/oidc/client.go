package oidc

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

const (
	maxDocument  = 1 << 20  // bytes of a document of an issuer
	maxHeaders   = 64 << 10 // bytes of the header of a response
	maxRedirects = 3
)

// newClient returns a client for the documents of issuers. It trusts the authorities of the system
// and of a file. The operator has chosen the issuers, so that they may have internal addresses.
func newClient(caFile string, timeout time.Duration) (*http.Client, error) {
	return newClientBy(caFile, timeout, &http.Transport{Proxy: http.ProxyFromEnvironment})
}

// newGuardedClient returns a client for a provider that somebody has configured: it connects to
// public addresses and to those of the networks, without a proxy, which would resolve names itself.
func newGuardedClient(caFile string, timeout time.Duration, networks []netip.Prefix) (*http.Client, error) {
	return newClientBy(caFile, timeout, &http.Transport{
		DialContext: publicdial.New(publicdial.Config{Allowed: networks, Timeout: timeout}),
	})
}

func newClientBy(caFile string, timeout time.Duration, t *http.Transport) (*http.Client, error) {
	config, err := tlsfiles.ClientFiles{CA: tlsfiles.ClientFile{Setting: "OIDC_CA", Path: caFile}}.Config()
	if err != nil {
		return nil, err
	}
	t.TLSClientConfig, t.ForceAttemptHTTP2, t.MaxResponseHeaderBytes = config, true, maxHeaders
	return &http.Client{Timeout: timeout, CheckRedirect: checkRedirect, Transport: boundedTransport{t}}, nil
}

// checkRedirect returns an error for a redirect to another host, which could be anybody's.
func checkRedirect(next *http.Request, before []*http.Request) error {
	switch first := before[0].URL; {
	case next.URL.Scheme != first.Scheme || next.URL.Host != first.Host:
		return errors.New("the issuer redirects to another host")
	case len(before) > maxRedirects:
		return errors.New("the issuer redirects too often")
	}
	return nil
}

// boundedTransport bounds the bodies of responses. It drops the body of a response that is not a
// success, because the OpenID Connect library would copy it into its error, except for the token
// endpoint, which says there why it refuses. It reads the responses of that one, because the OAuth 2.0
// library does not tell an answer that ends early from one that is wrong.
type boundedTransport struct{ *http.Transport }

// RoundTrip sends a request and returns the response (http.RoundTripper).
func (b boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Client wraps it
	}
	if response.StatusCode != http.StatusOK && r.Method != http.MethodPost {
		_ = response.Body.Close() // it is not read
		response.Body = http.NoBody
		return response, nil
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxDocument)
	if r.Method != http.MethodPost {
		return response, nil
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was only read
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, nil
}
