package tollgateclient

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/tollgate-dev/tollgate/adapters/internal/origin"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// The methods of proofs by ID token.
const (
	OIDC       = "oidc"
	GitHubOIDC = "github-oidc"
)

// ExchangeIDToken returns a token of a publisher for an ID token (contract P-2). The method is OIDC
// or GitHubOIDC.
func (c *Client) ExchangeIDToken(ctx context.Context, method, idToken string) (string, error) {
	var a struct {
		Token string `json:"registry_token"`
	}
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/v0.1/auth/" + method, body: map[string]string{"oidc_token": idToken},
		member: "registry_token",
	}, &a)
	return a.Token, err
}

// Audience returns the audience of ID tokens for the service: the origin of its address. It returns
// fault.Invalid if the address has no domain.
func (c *Client) Audience() (string, error) {
	audience, err := origin.Of(c.base.String())
	if err != nil {
		return "", fault.Wrap(fault.Invalid, "the address of the service has no origin: "+err.Error(), err)
	}
	return audience, nil
}

// RequestGitHubToken requests an ID token for the service from GitHub Actions. The address and the
// token of the request are those that a job with the permission id-token: write has in its
// environment. It returns fault.Unavailable if it gets none.
func (c *Client) RequestGitHubToken(ctx context.Context, address, requestToken string) (string, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return "", fault.New(fault.Invalid, "the address in ACTIONS_ID_TOKEN_REQUEST_URL is not a URL")
	}
	audience, err := c.Audience()
	if err != nil {
		return "", err
	}
	query := at.Query()
	query.Set("audience", audience)
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, "the address in ACTIONS_ID_TOKEN_REQUEST_URL is not a URL", err)
	}
	r.Header.Set("Authorization", "Bearer "+requestToken)
	r.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, "GitHub did not answer the request for an ID token", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	var a struct {
		Value string `json:"value"`
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(text, &a) != nil || a.Value == "" {
		return "", fault.Newf(fault.Unavailable,
			"GitHub gave no ID token (status %d): the job needs the permission id-token: write", resp.StatusCode)
	}
	return a.Value, nil
}
