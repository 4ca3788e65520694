package oidc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/adapters/internal/urlorigin"
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

// Config contains the settings of proofs by ID token (contract P-9).
type Config struct {
	Issuers      []string `env:"OIDC_ISSUERS" desc:"issuers of ID tokens with which publishers may prove who they are: their URLs as in the claim iss, https, separated by commas"`
	GitHubIssuer string   `env:"GITHUB_OIDC_ISSUER" envDefault:"https://token.actions.githubusercontent.com" desc:"issuer of the ID tokens of GitHub Actions; that of GitHub Enterprise Server is https://HOST/_services/token"`
	CAFile       string   `env:"OIDC_CA" desc:"PEM file with certificate authorities of issuers, in addition to those of the system"`
	// AuthorizationServers are for clients of the registry; the service itself does not use them.
	AuthorizationServers []string `env:"OAUTH_AUTHORIZATION_SERVERS" desc:"issuers of access tokens that clients of the registry may use, for its metadata (RFC 9728): https URLs, separated by commas; PUBLIC_URL must be set"`
	PublicURL            string   `env:"PUBLIC_URL" desc:"the URL under which clients reach the API, for example https://tools.example.com; its origin is the audience of ID tokens; without it there are no proofs by ID token"`
}

// Validate returns an error that names the variable whose value is out of range.
func (c Config) Validate() error {
	for i, issuer := range c.Issuers {
		if err := checkIssuer(issuer); err != nil {
			return fmt.Errorf("OIDC_ISSUERS: %q %w", issuer, err)
		}
		if slices.Contains(c.Issuers[:i], issuer) {
			return fmt.Errorf("OIDC_ISSUERS: %q is there twice", issuer)
		}
	}
	for _, issuer := range c.AuthorizationServers {
		if err := checkIssuer(issuer); err != nil {
			return fmt.Errorf("OAUTH_AUTHORIZATION_SERVERS: %q %w", issuer, err)
		}
	}
	if err := checkIssuer(c.GitHubIssuer); err != nil {
		return fmt.Errorf("GITHUB_OIDC_ISSUER: %q %w", c.GitHubIssuer, err)
	}
	if c.PublicURL != "" {
		if _, err := urlorigin.Of(c.PublicURL); err != nil {
			return fmt.Errorf("PUBLIC_URL: %w", err)
		}
	}
	return nil
}

// checkIssuer returns an error if a text is not the URL of an issuer: https, or http on this
// machine, without user, query and fragment (OpenID Connect Discovery 1.0, section 3).
func checkIssuer(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("must be a URL with a host, for example https://ci.example.com")
	case u.Scheme != "https" && (u.Scheme != "http" || !publicdial.IsLoopback(u.Hostname())):
		return errors.New("must begin with https://; http:// is possible on localhost only")
	case u.User != nil:
		return errors.New("must not have a user")
	case strings.ContainsAny(text, "?#"):
		return errors.New("must not have a query or a fragment")
	}
	return nil
}
