package jwt

import (
	"slices"
	"strings"

	jwt "github.com/golang-jwt/jwt/v5"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// maxRememberedGrant is the greatest length of a token of a grant that is remembered after its
// verification. Most have about 1,000 characters.
const maxRememberedGrant = 1536

// algorithms returns those of all keys.
func algorithms() []string { return []string{authstore.EdDSA, authstore.ES256, authstore.RS256} }

// grantClaims are the claims of a token of a grant, whose audience is one text.
type grantClaims struct {
	accessClaims

	Audience string `json:"aud"`
}

// newGrantClaims returns the claims of a grant in the form of a token (contract T-16).
func (i *Issuer) newGrantClaims(c secrets.TokenClaims) (grantClaims, error) {
	g := c.Granted
	claims := grantClaims{accessClaims: i.newClaims(c), Audience: g.Resource}
	claims.Issuer, claims.ClientID = i.config.OAuthIssuer, string(g.Client)
	claims.Scope, claims.Level = strings.Join(g.Scopes, " "), g.Level.String()
	if !g.AuthTime.IsZero() {
		claims.AuthTime = jwt.NewNumericDate(g.AuthTime)
	}
	family, ok := oauth.FamilyOf(c.ID)
	if i.config.OAuthIssuer == "" || g.Resource == i.config.Audience || !ok || family != g.Family {
		return grantClaims{}, fault.New(fault.Internal, "the grant cannot have a token")
	}
	return claims, nil
}

// isGrant reports whether a token is of a grant: of the issuer of grants, and not for the audience of
// sessions, whatever else it says.
func (i *Issuer) isGrant(c *accessClaims) bool {
	return i.config.OAuthIssuer != "" && c.Issuer == i.config.OAuthIssuer &&
		!slices.Contains(c.Audience, i.config.Audience)
}

// convertGrantClaims returns the claims of a grant, whose token has all that newGrantClaims sets.
func convertGrantClaims(c *accessClaims) (secrets.TokenClaims, error) {
	family, isGrant := oauth.FamilyOf(c.ID)
	user, err := auth.ParseUUID[auth.UserID]("sub", c.Subject)
	level, levelErr := auth.ParseTrustLevel(c.Level)
	if !isGrant || err != nil || levelErr != nil || c.IssuedAt == nil || c.ClientID == "" || c.Method != "" ||
		len(c.Audience) != 1 || c.Audience[0] == "" {
		return secrets.TokenClaims{}, errInvalidToken()
	}
	got := secrets.TokenClaims{
		ID: c.ID, UserID: user, SessionID: auth.SessionID(c.SessionID), IssuedAt: c.IssuedAt.Time, ExpiresAt: c.ExpiresAt.Time,
		Granted: &oauth.Claims{
			Family: family, Client: oauth.ClientID(c.ClientID), Resource: c.Audience[0], Level: level,
		},
	}
	if c.SessionID != "" {
		if got.SessionID, err = auth.ParseUUID[auth.SessionID]("sid", c.SessionID); err != nil {
			return secrets.TokenClaims{}, errInvalidToken()
		}
	}
	if c.Scope != "" {
		got.Granted.Scopes = strings.Split(c.Scope, " ")
	}
	if c.AuthTime != nil {
		got.Granted.AuthTime = c.AuthTime.Time
	}
	return got, nil
}
