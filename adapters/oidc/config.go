package oidc

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/internal/origin"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

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
		if _, err := origin.Of(c.PublicURL); err != nil {
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
