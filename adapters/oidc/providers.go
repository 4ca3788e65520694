package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

// unknownKeyEvery is the time between two readings of the keys of a provider because of unknown
// keys.
const unknownKeyEvery = 30 * time.Second

// maxKept is how many providers are kept, with those that are not configured any more.
const maxKept = 64

// accepted returns the algorithms of the ID tokens of people.
func accepted() []string {
	return []string{oidc.RS256, oidc.PS256, oidc.ES256, oidc.ES384, oidc.EdDSA}
}

// Providers talks to the providers of company sign-in. It implements [identity.Providers].
type Providers struct {
	caFile  string
	clock   clock.Clock
	timeout time.Duration

	mu   sync.Mutex
	kept map[string]*provider // by issuer and networks
}

var _ identity.Providers = (*Providers)(nil)

// provider is an issuer with the client that may connect to it.
type provider struct {
	*keyCache

	issuer string
	client *http.Client
}

// NewProviders returns Providers. It reads nothing from providers before the first sign-in.
func NewProviders(c Config, clk clock.Clock) *Providers {
	return &Providers{caFile: c.CAFile, clock: clk, timeout: maxWait, kept: map[string]*provider{}}
}

// of returns what is kept about a provider.
func (s *Providers) of(p *company.Provider) (*provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s %v", p.Issuer, p.Networks)
	if found := s.kept[key]; found != nil {
		return found, nil
	}
	client, err := newGuardedClient(s.caFile, s.timeout, p.Networks)
	if err != nil {
		return nil, err
	}
	if len(s.kept) >= maxKept {
		clear(s.kept)
	}
	issuer := p.Issuer
	made := &provider{issuer: issuer, client: client, keyCache: newKeyCache(s.clock, s.timeout,
		rate.NewLimiter(rate.Every(unknownKeyEvery), 1), func(ctx context.Context) (*keySet, error) {
			found, err := readKeys(ctx, client, issuer)
			if err == nil {
				err = found.checkProvider(issuer)
			}
			return found, err
		})}
	s.kept[key] = made
	return made, nil
}

// checkProvider returns an error if the discovery document lacks an endpoint of sign-in.
func (d *discovery) checkProvider(issuer string) error {
	err := errors.Join(checkEndpoint("authorization_endpoint", d.AuthURL, issuer),
		checkEndpoint("token_endpoint", d.TokenURL, issuer))
	if d.UserinfoURL != "" {
		err = errors.Join(err, checkEndpoint("userinfo_endpoint", d.UserinfoURL, issuer))
	}
	return err
}

// discovered returns a provider with its discovery document, which is kept for a day.
func (s *Providers) discovered(ctx context.Context, p *company.Provider) (*provider, *discovery, error) {
	found, err := s.of(p)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	keys, err := found.currentKeys(ctx)
	if err == nil && !isWithin(maxKeyLife, keys.readAt, s.clock.Now()) {
		err = errors.New("its discovery document was not read for a day")
	}
	if err != nil {
		return nil, nil, errAway(err)
	}
	return found, &keys.discovery, nil
}

// errAway is the error of a provider that does not work.
func errAway(cause error) error {
	return fault.Wrap(fault.Unavailable, company.ProblemAway, cause)
}

// config returns the configuration of the OAuth 2.0 client.
func (d *discovery) config(c identity.Client) *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if c.ClientSecret != "" && (d.TokenAuth == nil || slices.Contains(d.TokenAuth, "client_secret_basic")) {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, RedirectURL: c.Redirect, Scopes: c.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: d.AuthURL, TokenURL: d.TokenURL, AuthStyle: style},
	}
}

// Authorize implements [identity.Providers].
func (s *Providers) Authorize(ctx context.Context, c identity.Client, r identity.Request) (string, error) {
	_, d, err := s.discovered(ctx, c.Provider)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(r.Verifier), oidc.Nonce(r.Nonce)}
	if c.AsksForRefresh() && !isEntra(c.Issuer) { // OpenID Connect Core 1.0, section 11
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	for name, value := range r.Extra {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	return d.config(c).AuthCodeURL(r.State, options...), nil
}

// isEntra reports whether an issuer is Microsoft Entra ID, which gives refresh tokens without consent, and
// lets only administrators in where people may not consent themselves.
func isEntra(issuer string) bool {
	return strings.HasPrefix(issuer, "https://login.microsoftonline.") || // .com and .us
		strings.HasPrefix(issuer, "https://login.partner.microsoftonline.cn/")
}

// CheckIssuer implements [identity.Providers].
func (s *Providers) CheckIssuer(ctx context.Context, c identity.Client, iss string) error {
	_, d, err := s.discovered(ctx, c.Provider)
	switch {
	case err != nil:
		return err
	case iss != "" && iss != c.Issuer, iss == "" && d.AnnouncesIssuer:
		return fault.New(fault.Invalid, "the answer is not one of the company's sign-in")
	}
	return nil
}

// Exchange implements [identity.Providers].
func (s *Providers) Exchange(ctx context.Context, c identity.Client, code, verifier string) (identity.Tokens, error) {
	p, d, err := s.discovered(ctx, c.Provider)
	if err != nil {
		return identity.Tokens{}, err
	}
	token, err := d.config(c).Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return identity.Tokens{}, refusalOf(err)
	}
	return p.tokens(ctx, d, token)
}

// Refresh implements [identity.Providers].
func (s *Providers) Refresh(ctx context.Context, c identity.Client, refresh string) (identity.Tokens, error) {
	p, d, err := s.discovered(ctx, c.Provider)
	if err != nil {
		return identity.Tokens{}, err
	}
	token, err := d.config(c).TokenSource(oidc.ClientContext(ctx, p.client), &oauth2.Token{RefreshToken: refresh}).Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode == "invalid_grant":
		return identity.Tokens{}, company.Reject("invalid_grant", "the company's sign-in does not know the session any more")
	case err != nil:
		if err = refusalOf(err); !fault.Is(err, fault.Unavailable) {
			err = errAway(errors.New("the refresh token was not exchanged"))
		}
		return identity.Tokens{}, err
	}
	if _, given := token.Extra("id_token").(string); !given {
		return p.userinfo(d, token), nil
	}
	return p.tokens(ctx, d, token)
}

// VerifyLogout implements [identity.Providers].
func (s *Providers) VerifyLogout(ctx context.Context, c *company.Provider, token string) ([]byte, error) {
	p, _, err := s.discovered(ctx, c)
	if err != nil {
		return nil, err
	}
	t, err := parseToken(token)
	if kind := strings.ToLower(t.Kind); err == nil && kind != "" && kind != "jwt" && kind != "logout+jwt" {
		return nil, company.Reject("type", "the token is of another type")
	}
	return p.verify(ctx, token)
}

// NewAccessTokens returns what verifies the access tokens of the providers.
func NewAccessTokens(p *Providers) identity.AccessTokens { return p }

// NewAssertions returns what verifies the assertions of the providers.
func NewAssertions(p *Providers) identity.Assertions { return p }

// ReadAccess implements [identity.AccessTokens]. Besides the type of RFC 9068, section 2.1, it accepts
// that of tokens in the form of a provider.
func (s *Providers) ReadAccess(token string) ([]byte, error) {
	return readTyped(token, "", "jwt", "at+jwt")
}

// ReadAssertion implements [identity.Assertions].
func (s *Providers) ReadAssertion(token string) ([]byte, error) {
	return readTyped(token, "oauth-id-jag+jwt")
}

// readTyped returns the payload of a token of one of some types. Nothing of it is verified.
func readTyped(token string, types ...string) ([]byte, error) {
	t, err := parseToken(token)
	if err != nil {
		return nil, company.Reject("malformed", fault.PublicMessage(err))
	}
	if !slices.Contains(types, strings.TrimPrefix(strings.ToLower(t.Kind), "application/")) {
		return nil, company.Reject("type", "the token is of another type")
	}
	return t.Payload, nil
}

// VerifyAccess implements [identity.AccessTokens].
func (s *Providers) VerifyAccess(ctx context.Context, c *company.Provider, token string) error {
	p, _, err := s.discovered(ctx, c)
	if err == nil {
		// The discovery document names algorithms of ID tokens only: for others, those of its keys count.
		_, _, err = p.verifyBy(ctx, token)
	}
	return err
}

// VerifyAssertion implements [identity.Assertions].
func (s *Providers) VerifyAssertion(ctx context.Context, c *company.Provider, token string) error {
	if _, err := s.ReadAssertion(token); err != nil {
		return err
	}
	return s.VerifyAccess(ctx, c, token)
}

// refusalOf returns the error for one of the token endpoint, without what the provider says.
func refusalOf(err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case isTransport(err):
		return errAway(err)
	case !errors.As(err, &refused):
		return fault.New(fault.Invalid, "the answer of the company's sign-in cannot be read")
	}
	status, code := refused.Response.StatusCode, refused.ErrorCode
	switch {
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests:
		return errAway(fmt.Errorf("the token endpoint answers with status %d", status))
	case code == "invalid_client", code == "unauthorized_client", code == "" && status == http.StatusUnauthorized:
		return fault.New(fault.Unavailable, company.ProblemClient).WithCode(company.CodeClient)
	}
	return fault.New(fault.Invalid, "the company's sign-in refuses the code")
}

// tokens returns the tokens of an answer, with the payload of the verified ID token. With an error,
// they have the refresh token all the same.
func (p *provider) tokens(ctx context.Context, d *discovery, token *oauth2.Token) (got identity.Tokens, err error) {
	got = p.userinfo(d, token)
	text, _ := token.Extra("id_token").(string)
	if text == "" {
		return got, company.Reject("missing", "the company's sign-in gives no ID token")
	}
	got.Payload, err = p.verify(ctx, text)
	return got, err
}

// userinfo returns the tokens of an answer without its ID token.
func (p *provider) userinfo(d *discovery, token *oauth2.Token) identity.Tokens {
	got := identity.Tokens{Refresh: token.RefreshToken}
	if d.UserinfoURL != "" {
		address, access := d.UserinfoURL, token.AccessToken
		got.More = func(ctx context.Context) ([]byte, error) { return p.readPerson(ctx, address, access) }
	}
	return got
}

// verify returns the payload of an ID token or a logout token that the provider has signed.
func (p *provider) verify(ctx context.Context, text string) ([]byte, error) {
	t, signer, err := p.verifyBy(ctx, text)
	if err == nil {
		err = errSignature(signer.checkAlgorithm(t, p.issuer))
	}
	return t.Payload, err
}

// verifyBy returns a token that the provider has signed, and its keys.
func (p *provider) verifyBy(ctx context.Context, text string) (idToken, *keySet, error) {
	t, err := parseToken(text)
	if err != nil {
		return t, nil, company.Reject("malformed", fault.PublicMessage(err))
	}
	signer, err := p.verifySignature(ctx, t, p.issuer, accepted())
	return t, signer, errSignature(err)
}

// errSignature returns the error of a signature as callers get it.
func errSignature(err error) error {
	switch {
	case fault.Is(err, fault.Unauthenticated):
		return company.Reject("signature", fault.PublicMessage(err))
	case err != nil:
		return errAway(err)
	}
	return nil
}

// readPerson reads the document of the userinfo endpoint.
func (p *provider) readPerson(ctx context.Context, address, access string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errAway(err)
	}
	request.Header.Set("Authorization", "Bearer "+access)
	request.Header.Set("Accept", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return nil, errAway(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil, response.StatusCode >= http.StatusInternalServerError:
		return nil, errAway(errors.Join(err, fmt.Errorf("the userinfo endpoint answers with status %d", response.StatusCode)))
	case response.StatusCode != http.StatusOK:
		return nil, company.Reject("userinfo", "the company's sign-in does not say who the person is")
	}
	return text, nil
}

// Test implements [identity.Providers].
func (s *Providers) Test(ctx context.Context, p *company.Provider) []identity.Step {
	steps := []identity.Step{{Name: "discovery"}, {Name: "keys", Message: "not tried"}}
	client, err := newGuardedClient(s.caFile, s.timeout, p.Networks)
	if err != nil {
		steps[0] = failed(steps[0], err)
		return steps
	}
	defer client.CloseIdleConnections()
	document, err := discover(ctx, client, p.Issuer)
	if err == nil {
		err = document.checkProvider(p.Issuer)
	}
	if err != nil {
		steps[0] = failed(steps[0], err)
		return steps
	}
	steps[0].OK, steps[0].Message = true, "the discovery document is that of "+p.Issuer
	keys, err := fetchKeys(ctx, client, document)
	switch {
	case err != nil:
		steps[1] = failed(steps[1], err)
	case len(keys.keys) == 0:
		steps[1].Message = "there is no key that can be used"
	default:
		steps[1].OK, steps[1].Message = true, fmt.Sprintf("%d keys can be used", len(keys.keys))
		if len(keys.keys) == 1 {
			steps[1].Message = "1 key can be used"
		}
	}
	return steps
}

// failed returns a step that failed, with the field that would help.
func failed(step identity.Step, err error) identity.Step {
	step.Message = err.Error()
	if refused := (*publicdial.RefusedError)(nil); errors.As(err, &refused) {
		step.Field = "networks"
	}
	return step
}
