// Package oidc implements the port for identities with OpenID Connect: it reads the keys of issuers,
// verifies signature, audience and times of the tokens of workloads (contract P-9), and talks to the
// providers of company sign-in. It neither decides what an identity may do nor remembers which tokens
// were used.
package oidc

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/wire"
	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/adapters/internal/origin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

// Set provides a Verifier of ID tokens.
var Set = wire.NewSet(New, wire.Bind(new(identity.Verifier), new(*Verifier)))

// ProvidersSet provides the providers of company sign-in.
var ProvidersSet = wire.NewSet(NewProviders, wire.Bind(new(identity.Providers), new(*Providers)), NewAccessTokens)

// maxWait is the maximum time for which one call waits for an issuer.
const maxWait = 10 * time.Second

// Verifier verifies the ID tokens of configured issuers. It is safe for concurrent use.
type Verifier struct {
	config   Config
	audience string // empty if proofs by ID token are switched off
	clock    clock.Clock
	timeout  time.Duration
	issuers  map[string]*keyCache // by issuer
}

// New returns a verifier. It reads the file of certificate authorities, but nothing from issuers
// before the first token. It returns an error that names the variable whose value is wrong.
func New(c Config, clk clock.Clock) (*Verifier, error) { return newVerifier(c, clk, maxWait) }

func newVerifier(c Config, clk clock.Clock, timeout time.Duration) (*Verifier, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	v := &Verifier{config: c, clock: clk, timeout: timeout, issuers: map[string]*keyCache{}}
	if c.PublicURL == "" {
		return v, nil
	}
	var err error
	if v.audience, err = origin.Of(c.PublicURL); err != nil {
		return nil, fmt.Errorf("PUBLIC_URL: %w", err)
	}
	client, err := newClient(c.CAFile, timeout)
	if err != nil {
		return nil, err
	}
	for _, issuer := range append(slices.Clone(c.Issuers), c.GitHubIssuer) {
		v.issuers[issuer] = newIssuer(issuer, client, clk, timeout)
	}
	return v, nil
}

func newIssuer(issuer string, client *http.Client, clk clock.Clock, timeout time.Duration) *keyCache {
	rereads := rate.NewLimiter(rate.Every(rereadEvery), rereadsBurst)
	return newKeyCache(clk, timeout, rereads, func(ctx context.Context) (*keySet, error) {
		return readKeys(ctx, client, issuer)
	})
}

// Verify returns the content of a token (identity.Verifier). What a refusal needs no keys for is
// checked first, so that a token of the wrong service causes no request to its issuer.
func (v *Verifier) Verify(
	ctx context.Context, m publisher.Method, token string, audience ...string,
) (identity.Token, error) {
	accepted, err := v.issuersOf(m)
	if err != nil {
		return identity.Token{}, err
	}
	t, err := parseToken(token)
	claimed := t.identity()
	refused := identity.Token{Identity: publisher.Identity{Issuer: claimed.Issuer, Subject: claimed.Subject}}
	if err != nil {
		return refused, err
	}
	if err := checkIssuerClaim(claimed.Issuer, accepted); err != nil {
		return refused, err
	}
	expires, err := t.checkClaims(append(audience, v.audience)[0], v.clock.Now())
	if err != nil {
		return refused, err
	}
	signer, err := v.issuers[claimed.Issuer].verifySignature(ctx, t, claimed.Issuer, asymmetric())
	if err == nil {
		err = signer.checkAlgorithm(t, claimed.Issuer)
	}
	if err != nil {
		return refused, err
	}
	return identity.Token{Identity: claimed, ID: t.id(), ExpiresAt: expires}, nil
}

// issuersOf returns the issuers of a method. It returns fault.NotFound if the service is not
// configured for the method.
func (v *Verifier) issuersOf(m publisher.Method) ([]string, error) {
	switch {
	case m != publisher.OIDC && m != publisher.GitHubOIDC:
		return nil, fault.Newf(fault.NotFound, "proofs by %s have no ID token", m)
	case v.audience == "":
		return nil, fault.New(
			fault.NotFound, "proofs by ID token are switched off on this service: PUBLIC_URL is not set")
	case m == publisher.GitHubOIDC:
		return []string{v.config.GitHubIssuer}, nil
	case len(v.config.Issuers) == 0:
		return nil, fault.New(fault.NotFound,
			"proofs by ID token of other issuers than GitHub are switched off on this service: OIDC_ISSUERS is not set")
	}
	return v.config.Issuers, nil
}

func checkIssuerClaim(issuer string, accepted []string) error {
	switch {
	case issuer == "":
		return refusef("the token has no iss")
	case !slices.Contains(accepted, issuer):
		return refusef("the token is of issuer %q, which this service does not accept", registry.Clip(issuer))
	}
	return nil
}

// verifySignature returns the key set that has signed the token. It returns fault.Unauthenticated if
// the issuer has not signed it, and fault.Unavailable if its keys cannot be read.
func (c *keyCache) verifySignature(ctx context.Context, t idToken, issuer string, accepted []string) (*keySet, error) {
	if !slices.Contains(accepted, t.algorithm) {
		return nil, refusef("the signature algorithm %q of the token is not accepted", registry.Clip(t.algorithm))
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	keys, err := c.currentKeys(ctx)
	if err != nil {
		return nil, errUnavailable(issuer, err)
	}
	if keys.hasSigned(ctx, t) {
		return keys, nil
	}
	if keys.hasKeyOf(t) {
		return nil, refusef("the signature of the token is not valid")
	}
	if keys, err = c.newerKeys(ctx, keys); err != nil { // the issuer may have a new key
		return nil, errUnavailable(issuer, err)
	}
	if !keys.hasSigned(ctx, t) {
		return nil, refusef("the token is not signed by a known key of issuer %s", issuer)
	}
	return keys, nil
}

// checkAlgorithm returns fault.Unauthenticated if the issuer does not sign ID tokens with the
// algorithm of a token.
func (k *keySet) checkAlgorithm(t idToken, issuer string) error {
	if !slices.Contains(k.Algorithms, t.algorithm) {
		return refusef("issuer %s does not sign ID tokens with the algorithm %s", issuer, t.algorithm)
	}
	return nil
}

func errUnavailable(issuer string, cause error) error {
	return fault.Wrap(fault.Unavailable,
		fmt.Sprintf("the keys of issuer %s cannot be read now; try again later", issuer), cause)
}
