package oidc

import (
	"encoding/json"
	"math"
	"slices"
	"time"
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
	switch aud := t.claims["aud"].(type) {
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
	value, present := t.claims[name]
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
