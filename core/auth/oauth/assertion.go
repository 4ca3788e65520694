package oauth

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

const (
	leeway     = time.Minute // between the clocks of the service and of those who sign assertions
	maxClient  = 5 * time.Minute
	maxIDJAG   = 10 * time.Minute
	maxPayload = 16 << 10
	maxUnix    = 253402300799 // the last second of the year 9999
)

// One is an assertion that is good once, until a time.
type One struct {
	ID    string
	Until time.Time
}

// SubjectOf returns the subject of a JWT of which nothing is verified; empty without one.
func SubjectOf(token string) string { return unverified(token).Text("sub") }

// IsElsewhere reports whether a token says of itself that it is one of an issuer, which is this service, for
// another resource than this registry. Nothing is verified: a forged one is good for nothing either. The
// audience of a session is a list.
func IsElsewhere(token, issuer string) bool {
	claims := unverified(token)
	audience := claims.Text("aud")
	return claims.Text("iss") == issuer && audience != "" && audience != issuer
}

// unverified returns the claims of a JWT; nil without any.
func unverified(token string) jsonvalue.Object {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxPayload { //nolint:mnd // header, payload and signature
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	return readClaims(payload)
}

// readClaims returns the members of a payload; nil if it is no object.
func readClaims(payload []byte) (all jsonvalue.Object) {
	if json.Unmarshal(payload, &all) != nil {
		return nil
	}
	return all
}

// CheckClientAssertion returns the one use of a JWT by which a client proves who it is (RFC 7523, section
// 3; contract T-15), from its verified payload. The audience is one of some. The error has
// CodeInvalidClient.
func CheckClientAssertion(payload []byte, client ClientID, audiences []string, now time.Time) (One, error) {
	claims := readClaims(payload)
	use, problem := claimsOnce(claims, maxClient, now)
	switch {
	case claims.Text("iss") != string(client) || claims.Text("sub") != string(client):
		problem = "iss and sub of the assertion must be the client"
	case !slices.Contains(audiences, oneText(claims["aud"])):
		problem = "aud of the assertion must be the issuer or the token endpoint"
	}
	if problem != "" {
		return One{}, Refuse(CodeInvalidClient, "%s", problem)
	}
	return use, nil
}

// claimsOnce returns the one use of claims that are good for a time at most, or what is wrong with their
// times or their jti.
func claimsOnce(claims jsonvalue.Object, most time.Duration, now time.Time) (One, string) {
	expires, ends := secondsOf(claims, "exp")
	issued, begins := secondsOf(claims, "iat")
	start, starts := secondsOf(claims, "nbf")
	id := claims.Text("jti")
	switch {
	case claims == nil:
		return One{}, "the assertion is not a JSON object"
	case !ends || !now.Before(expires.Add(leeway)):
		return One{}, "the assertion has expired"
	case expires.After(now.Add(most+leeway)) || begins && expires.Sub(issued) > most:
		return One{}, "the assertion is good for too long"
	case issued.After(now.Add(leeway)), claims["iat"] != nil && !begins,
		start.After(now.Add(leeway)), claims["nbf"] != nil && !starts:
		return One{}, "the assertion is not good yet"
	case !fields.IsText(id, fields.MaxText):
		return One{}, "the assertion has no jti of 1 to 255 characters"
	}
	return One{ID: id, Until: expires.Add(leeway)}, ""
}

// secondsOf returns a time in seconds since 1970; ok is false for anything else.
func secondsOf(claims jsonvalue.Object, name string) (at time.Time, ok bool) {
	n, isNumber := claims[name].(jsonvalue.Number)
	if !isNumber || n < 0 || n > maxUnix {
		return time.Time{}, false
	}
	return time.Unix(int64(n), 0).UTC(), true
}

// oneText returns a text, or that of a list of one; empty for anything else.
func oneText(v jsonvalue.Value) string {
	if list, ok := v.(jsonvalue.List); ok && len(list) == 1 {
		v = list[0]
	}
	text, _ := v.(jsonvalue.Text)
	return string(text)
}

// IDJAG is what an identity assertion says about the grant (contract T-18), besides the person.
type IDJAG struct {
	One

	Resource string // empty if it does not say
	Scopes   []string
	Limited  bool // to the scopes
}

// CheckIDJAG returns what the payload of an identity assertion for a client says, at an issuer. The
// error has CodeInvalidGrant.
func CheckIDJAG(payload []byte, client ClientID, issuer string, now time.Time) (IDJAG, error) {
	claims := readClaims(payload)
	use, problem := claimsOnce(claims, maxIDJAG, now)
	subject := claims.Text("sub")
	found := IDJAG{One: use, Resource: oneText(claims["resource"]), Limited: claims["scope"] != nil}
	scopes, err := ParseScopes(claims.Text("scope"))
	switch {
	case problem != "":
	case claims["iat"] == nil:
		problem = "the assertion has no time of issue"
	case oneText(claims["aud"]) != issuer:
		problem = "the assertion is for another authorization server"
	case claims.Text(ParameterClient) != string(client):
		problem = "the assertion was given to another client"
	case !fields.IsText(subject, fields.MaxText):
		problem = "the assertion has no subject of 1 to 255 characters"
	case found.Resource == "" && claims["resource"] != nil:
		problem = "resource of the assertion must be one URL"
	case err != nil, found.Limited && claims.Text("scope") == "" && claims["scope"] != jsonvalue.Text(""):
		problem = "scope of the assertion cannot be read"
	}
	if problem != "" {
		return IDJAG{}, Refuse(CodeInvalidGrant, "%s", problem)
	}
	found.Scopes = scopes
	return found, nil
}
