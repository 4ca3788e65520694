package person

import (
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
)

// The variables from which a job gets its ID token.
const (
	githubURLVariable   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	githubTokenVariable = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
	idTokenVariable     = "TOLLGATE_ID_TOKEN"
)

// exchangeIdentity returns the token of a publisher for the identity of the job that runs the
// command: for an ID token of GitHub Actions, or else for that in TOLLGATE_ID_TOKEN.
func (u *publisherRun) exchangeIdentity(ctx context.Context, client *tollgateclient.Client) (string, error) {
	address, requestToken := u.Getenv(githubURLVariable), u.Getenv(githubTokenVariable)
	if address != "" && requestToken != "" {
		idToken, err := client.RequestGitHubToken(ctx, address, requestToken)
		if err != nil {
			return "", err
		}
		return client.ExchangeIDToken(ctx, tollgateclient.GitHubOIDC, idToken)
	}
	idToken := u.Getenv(idTokenVariable)
	if idToken == "" {
		audience, err := client.Audience()
		if err != nil {
			return "", err
		}
		return "",
			errors.New("there is no ID token: in GitHub Actions the job needs the permission id-token: write; elsewhere set " +
				idTokenVariable + " to an ID token whose audience is " + audience)
	}
	return client.ExchangeIDToken(ctx, tollgateclient.OIDC, idToken)
}
