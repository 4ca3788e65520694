package company

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// FindForAccess returns the provider that has made an access token for this service, with what the token
// says, which is not verified: that of its issuer with one of the audiences. It returns fault.NotFound if
// the issuer makes no access tokens for it, and otherwise the error of Reject for a token
// that is not valid now.
func FindForAccess(all []Provider, payload []byte, now time.Time) (*Provider, Claims, error) {
	p, c, err := findProvider(all, payload, func(p *Provider) bool { return len(p.Audiences) > 0 })
	switch {
	case err != nil:
		return nil, Claims{}, err
	case !p.hasAudience(c.audience):
		return nil, Claims{}, Reject("audience", "the token is for another audience")
	case c.isIDToken(p):
		return p, c, Reject("type", "the token is an ID token, which says who signed in and allows nothing")
	}
	return p, c, c.checkAccess(now)
}

// FindVerified returns the provider of an access token whose payload somebody has verified whom the
// service trusts, with what it says: that of its issuer, if possible with one of the audiences. The
// errors are those of FindForAccess.
func FindVerified(all []Provider, payload []byte, now time.Time) (*Provider, Claims, error) {
	p, c, err := findProvider(all, payload, func(*Provider) bool { return true })
	if err != nil {
		return nil, Claims{}, err
	}
	return p, c, c.checkVerified(now)
}

// findProvider returns the provider of the issuer of a token that has one of its audiences, or else
// one of the issuer that fits, with what the token says; fault.NotFound without one.
func findProvider(all []Provider, payload []byte, fits func(*Provider) bool) (found *Provider, c Claims, err error) {
	object, err := readObject(payload)
	if err != nil {
		return nil, Claims{}, err
	}
	audience, _ := textsOf(object["aud"])
	for i := range all {
		p := &all[i]
		if p.Issuer != object.Text("iss") {
			continue
		}
		if p.hasAudience(audience) {
			return p, p.claimsOf(object), nil
		}
		if found == nil && fits(p) {
			found = p
		}
	}
	if found == nil {
		return nil, Claims{}, fault.New(fault.NotFound, "the token is of another issuer")
	}
	return found, found.claimsOf(object), nil
}

func (p *Provider) hasAudience(audience []string) bool {
	return slices.ContainsFunc(audience, func(a string) bool {
		a = canonicalAudience(a)
		return slices.ContainsFunc(p.Audiences, func(own string) bool { return canonicalAudience(own) == a })
	})
}

// canonicalAudience returns an audience that is an address in one of its spellings (RFC 3986, section
// 6.2.2 and 6.2.3): clients write the resource that they request (RFC 8707) through a parser of URLs. Scheme
// and host are in lower case, without the port of the scheme, and the path has one slash less at its
// end. Other audiences stay as they are.
func canonicalAudience(a string) string {
	scheme, rest, _ := strings.Cut(a, "://")
	end := strings.IndexAny(rest+"/", `/?#\`)
	isOther := func(r rune) bool { return r == '@' || r > unicode.MaxASCII } // the sign for Kelvin has a lower case in ASCII
	port := map[string]string{"https": ":443", "http": ":80"}[strings.ToLower(scheme)]
	host, path := strings.TrimSuffix(strings.ToLower(rest[:end]), port), rest[end:]
	if port == "" || host == "" || strings.ContainsFunc(rest[:end], isOther) {
		return a
	}
	if end = strings.IndexAny(path, "?#"); end < 0 {
		end = len(path)
	}
	return strings.ToLower(scheme) + "://" + host + strings.TrimSuffix(path[:end], "/") + path[end:]
}

// checkAccess returns the error of Reject unless the claims are those of an access token that is valid
// now.
func (c *Claims) checkAccess(now time.Time) error {
	if _, isLogout := c.all.Inner("events")[logoutEvent]; isLogout {
		return Reject("type", "the token is of another type")
	}
	if c.Subject == "" || !isIdentifier(c.Subject) {
		return Reject("subject", "the token has no subject of 1 to 255 characters")
	}
	return c.checkTimes(now)
}

// isIDToken reports whether the claims are those of an ID token: hashes of what was issued with it (OpenID
// Connect Core 1.0, section 3.3.2.11), the types that Cognito and Keycloak write, or the nonce of a
// sign-in, without a scope, for the client of the provider, which somebody has named as an audience.
func (c *Claims) isIDToken(p *Provider) bool {
	has := func(name string) bool { return c.all[name] != nil }
	return has("at_hash") || has("c_hash") || c.all.Text("token_use") == "id" || c.all.Text("typ") == "ID" ||
		has("nonce") && slices.Contains(c.audience, p.ClientID) && !has(p.ScopeClaim) && !has("scope") && !has("scp")
}

// checkVerified is checkAccess for a token that somebody else has verified, who may leave out the time
// of issue.
func (c *Claims) checkVerified(now time.Time) error {
	if c.Subject == "" || !isIdentifier(c.Subject) {
		return Reject("subject", "the token has no subject of 1 to 255 characters")
	}
	if expires, given := timeOf(c.all["exp"]); given && !now.Before(expires.Add(leeway)) {
		return Reject("expired", "the token has expired")
	}
	return nil
}

// ExpiresAt returns when the token ends; zero if it does not say so.
func (c *Claims) ExpiresAt() time.Time {
	at, _ := timeOf(c.all["exp"])
	return at
}

// HasScope reports whether the token has a scope: a word of the claim that the provider names, or an
// element if that is an array.
func (c *Claims) HasScope(p *Provider, scope string) bool {
	switch v := c.all[p.ScopeClaim].(type) {
	case jsonvalue.Text:
		return slices.Contains(strings.Fields(string(v)), scope)
	case jsonvalue.List:
		return slices.Contains(v, jsonvalue.Value(jsonvalue.Text(scope)))
	}
	return false
}

// NamesGroups reports whether the claims say in which groups the person is.
func (c *Claims) NamesGroups() bool { return c.Groups.present }
