package oidc

import (
	"errors"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
)

const (
	maxDocument  = 1 << 20  // bytes of a document of an issuer
	maxHeaders   = 64 << 10 // bytes of the header of a response
	maxRedirects = 3
)

// newClient returns a client for the documents of issuers. It trusts the authorities of the system
// and of a file. The operator has chosen the issuers, so that they may have internal addresses.
func newClient(caFile string, timeout time.Duration) (*http.Client, error) {
	config, err := tlsfiles.ClientFiles{CA: tlsfiles.ClientFile{Setting: "OIDC_CA", Path: caFile}}.Config()
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: checkRedirect,
		Transport: boundedTransport{&http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: maxHeaders,
		}},
	}, nil
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
// success, because the OpenID Connect library would copy it into its error.
type boundedTransport struct{ *http.Transport }

// RoundTrip sends a request and returns the response (http.RoundTripper).
func (b boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Client wraps it
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // it is not read
		response.Body = http.NoBody
		return response, nil
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxDocument)
	return response, nil
}
