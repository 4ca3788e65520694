// Package oidc implements the port for identities with OpenID Connect: it reads the keys of issuers,
// verifies signature, audience and times of the tokens of workloads (contract P-9), and talks to the
// providers of company sign-in. It neither decides what an identity may do nor remembers which tokens
// were used.
package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/wire"
	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/adapters/internal/signed"
	"github.com/tollgate-dev/tollgate/adapters/internal/urlorigin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

const (
	maxAhead = 24 * time.Hour // how far in the future a token may expire, because it is remembered until then
	leeway   = time.Minute    // how much the clock of an issuer may be fast
	maxUnix  = 253402300799   // the last second of the year 9999
)

// checkClaims returns when a token expires. It returns fault.Unauthenticated with the reason if the
// token is not for this audience or not valid now (contract P-9).
func (t idToken) checkClaims(audience string, now time.Time) (expires time.Time, err error) {
	if t.textClaim("sub") == "" {
		return time.Time{}, refusef("the token has no sub")
	}
	if !t.hasAudience(audience) {
		return time.Time{}, refusef("the token is not for this service: its audience (aud) must be %q", audience)
	}
	expires, err = t.requireTime("exp")
	if err != nil {
		return time.Time{}, err
	}
	issued, err := t.requireTime("iat")
	if err != nil {
		return time.Time{}, err
	}
	start, present, err := t.timeClaim("nbf")
	switch {
	case err != nil:
		return time.Time{}, err
	case !now.Before(expires):
		return time.Time{}, refusef("the token has expired: its exp is %s, the time of the service is %s",
			formatTime(expires),
			formatTime(now))
	case expires.Sub(now) > maxAhead:
		return time.Time{}, refusef("the token expires in more than 24 hours; use one that expires earlier")
	case issued.After(now.Add(leeway)):
		return time.Time{}, refusef("the token was issued in the future: its iat is %s, the time of the service is %s",
			formatTime(issued), formatTime(now))
	case present && start.After(now.Add(leeway)):
		return time.Time{}, refusef("the token is not valid yet: its nbf is %s, the time of the service is %s",
			formatTime(start),
			formatTime(now))
	}
	return expires, nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// hasAudience reports whether aud is or contains a text (RFC 7519, section 4.1.3).
func (t idToken) hasAudience(want string) bool {
	switch aud := t.Claims["aud"].(type) {
	case string:
		return aud == want
	case []any:
		return slices.Contains(aud, any(want))
	}
	return false
}

func (t idToken) requireTime(name string) (time.Time, error) {
	at, present, err := t.timeClaim(name)
	if err == nil && !present {
		err = refusef("the token has no %s", name)
	}
	return at, err
}

// timeClaim returns a claim that is a time: seconds since 1970, of which a fraction is cut off (RFC
// 7519, section 2).
func (t idToken) timeClaim(name string) (at time.Time, present bool, err error) {
	value, present := t.Claims[name]
	if !present {
		return time.Time{}, false, nil
	}
	number, _ := value.(json.Number)
	seconds, err := number.Float64()
	if err != nil || math.Abs(seconds) > maxUnix {
		return time.Time{}, true, refusef("%s of the token is not a time in seconds since 1970", name)
	}
	return time.Unix(int64(math.Floor(seconds)), 0), true, nil
}

// idToken is an ID token, or another token of an issuer. Nothing in it is verified.
type idToken struct{ signed.Token }

// parseToken returns the parts of a token. The errors are those of signed.Parse.
func parseToken(text string) (idToken, error) {
	t, err := signed.Parse(text)
	return idToken{t}, err
}

// identity returns what the claims say. A claim that is neither a string, a number nor a boolean is
// left out; a number keeps its digits.
func (t idToken) identity() publisher.Identity {
	claims := make(map[string]string, len(t.Claims))
	for name, value := range t.Claims {
		switch v := value.(type) {
		case string:
			claims[name] = v
		case json.Number:
			claims[name] = v.String()
		case bool:
			claims[name] = strconv.FormatBool(v)
		}
	}
	return publisher.Identity{Issuer: t.textClaim("iss"), Subject: t.textClaim("sub"), Claims: claims}
}

// textClaim returns a claim that is a text; empty if it is missing or something else.
func (t idToken) textClaim(name string) string {
	text, _ := t.Claims[name].(string)
	return text
}

// id returns the ID of a token among those of its issuer: jti, or a hash. The signature is not in
// the hash, because anybody can make a second valid signature from one by ECDSA.
func (t idToken) id() string {
	if id := t.textClaim("jti"); id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(t.Signed))
	return hex.EncodeToString(sum[:])
}

// refusef returns fault.Unauthenticated with a message from a format.
func refusef(format string, args ...any) error {
	return fault.Newf(fault.Unauthenticated, format, args...)
}

// Set provides a Verifier of ID tokens.
var Set = wire.NewSet(New, wire.Bind(new(identity.Verifier), new(*Verifier)))

// ProvidersSet provides the providers of company sign-in.
var ProvidersSet = wire.NewSet(NewProviders, wire.Bind(new(identity.Providers), new(*Providers)), NewAccessTokens, NewAssertions)

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
	if v.audience, err = urlorigin.Of(c.PublicURL); err != nil {
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
	signer, err := v.issuers[claimed.Issuer].verifySignature(ctx, t, claimed.Issuer, signed.Asymmetric())
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
	if !slices.Contains(accepted, t.Algorithm) {
		return nil, refusef("the signature algorithm %q of the token is not accepted", registry.Clip(t.Algorithm))
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	keys, err := c.currentKeys(ctx)
	if err != nil {
		return nil, errUnavailable(issuer, err)
	}
	if keys.keys.HaveSigned(ctx, t.Token) {
		return keys, nil
	}
	if keys.keys.Have(t.Token) {
		return nil, refusef("the signature of the token is not valid")
	}
	if keys, err = c.newerKeys(ctx, keys); err != nil { // the issuer may have a new key
		return nil, errUnavailable(issuer, err)
	}
	if !keys.keys.HaveSigned(ctx, t.Token) {
		return nil, refusef("the token is not signed by a known key of issuer %s", issuer)
	}
	return keys, nil
}

// checkAlgorithm returns fault.Unauthenticated if the issuer does not sign ID tokens with the
// algorithm of a token.
func (k *keySet) checkAlgorithm(t idToken, issuer string) error {
	if !slices.Contains(k.Algorithms, t.Algorithm) {
		return refusef("issuer %s does not sign ID tokens with the algorithm %s", issuer, t.Algorithm)
	}
	return nil
}

func errUnavailable(issuer string, cause error) error {
	return fault.Wrap(fault.Unavailable,
		fmt.Sprintf("the keys of issuer %s cannot be read now; try again later", issuer), cause)
}
