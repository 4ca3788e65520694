// Package identitytest has the contract tests of ports/identity. They test what callers rely on,
// not how an adapter reads the keys of an issuer.
package identitytest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

// Subject is a verifier under test, which has not seen a token yet.
type Subject struct {
	Verifier identity.Verifier
	Clock    *clocktest.Manual // of the verifier
	Audience string            // of tokens for this service
	OIDC     Issuer            // the configured issuer of the method OIDC
	GitHub   Issuer            // the issuer of the method GitHubOIDC
	// Unconfigured is a verifier that is not configured for the method OIDC.
	Unconfigured identity.Verifier
}

// Issuer is an issuer of ID tokens.
type Issuer struct {
	URL string
	// Sign returns a token with exactly these claims.
	Sign func(t testing.TB, claims map[string]any) string
	// Fail makes the keys of the issuer unreadable.
	Fail func()
}

const subject = "repo:example/server:ref:refs/heads/main"

// Run runs the suite. open returns a subject and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Subject){
		"a valid token returns its issuer, subject and claims":      returnsContent,
		"claims of any type are returned as text":                   convertsClaims,
		"a token with several audiences is accepted if one is ours": acceptsAudiences,
		"a token for another audience is accepted if that is given": acceptsGivenAudience,
		"a token without an ID gets one from its content":           identifiesToken,
		"a token whose claims are not valid is refused":             refusesInvalidClaims,
		"a token is accepted until it expires":                      acceptsUntilExpiry,
		"a malformed token is refused":                              refusesMalformed,
		"an altered token is refused":                               refusesAltered,
		"a token of one method is refused by another":               keepsMethodsApart,
		"an issuer that fails is reported as unavailable":           reportsFailure,
		"a method that is off is reported as not found":             reportsUnconfigured,
		"a call ends when its context is cancelled":                 endsWithContext,
		"other callers get a result after one caller has given up":  survivesOneCaller,
		"tokens are verified in parallel":                           verifiesInParallel,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// claims returns valid claims of an issuer, changed by changes; a nil value removes a claim.
func (s Subject) claims(i Issuer, changes map[string]any) map[string]any {
	now := s.Clock.Now()
	c := map[string]any{
		"iss": i.URL, "sub": subject, "aud": s.Audience, "jti": "first",
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (s Subject) verify(t *testing.T, token string) identity.Token {
	t.Helper()
	got, err := s.Verifier.Verify(t.Context(), publisher.OIDC, token)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return got
}

// checkRefused fails the test if a token is not refused with a reason that contains a text.
func (s Subject) checkRefused(t *testing.T, m publisher.Method, token, reason string) identity.Token {
	t.Helper()
	got, err := s.Verifier.Verify(t.Context(), m, token)
	if !fault.Is(err, fault.Unauthenticated) || !strings.Contains(err.Error(), reason) {
		t.Errorf("verify: %v, want fault.Unauthenticated with %q", err, reason)
	}
	if got.ID != "" || got.Claims != nil || !got.ExpiresAt.IsZero() {
		t.Errorf("a refused token returned %+v, want at most issuer and subject", got)
	}
	return got
}

func returnsContent(t *testing.T, s Subject) {
	for m, i := range map[publisher.Method]Issuer{publisher.OIDC: s.OIDC, publisher.GitHubOIDC: s.GitHub} {
		got, err := s.Verifier.Verify(t.Context(), m,
			i.Sign(t, s.claims(i, map[string]any{"repository": "example/server"})))
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		if got.Issuer != i.URL || got.Subject != subject || got.ID != "first" ||
			got.Claims["repository"] != "example/server" {
			t.Errorf("%s: the token is %+v", m, got)
		}
		if want := s.Clock.Now().Add(5 * time.Minute); !got.ExpiresAt.Equal(want) {
			t.Errorf("%s: the token expires at %v, want %v", m, got.ExpiresAt, want)
		}
	}
}

func convertsClaims(t *testing.T, s Subject) {
	got := s.verify(t, s.OIDC.Sign(t, s.claims(s.OIDC, map[string]any{
		"text": "Ä b", "empty": "", "number": uint64(9007199254740993), "yes": true, "no": false,
		"list": []string{"a"}, "object": map[string]any{"a": "b"},
	})))
	for name, want := range map[string]string{
		"text": "Ä b", "empty": "", "number": "9007199254740993", "yes": "true", "no": "false", "sub": subject,
	} {
		if value, present := got.Claims[name]; !present || value != want {
			t.Errorf("claim %s is %q (present: %v), want %q", name, value, present, want)
		}
	}
	for _, name := range []string{"list", "object", "missing"} {
		if value, present := got.Claims[name]; present {
			t.Errorf("claim %s is %q, want none", name, value)
		}
	}
}

func acceptsAudiences(t *testing.T, s Subject) {
	s.verify(t, s.OIDC.Sign(t, s.claims(s.OIDC, map[string]any{"aud": []string{"https://other.example", s.Audience}})))
}

func acceptsGivenAudience(t *testing.T, s Subject) {
	const other = "https://other.example.com"
	token := s.OIDC.Sign(t, s.claims(s.OIDC, map[string]any{"aud": other}))
	if _, err := s.Verifier.Verify(t.Context(), publisher.OIDC, token, other); err != nil {
		t.Errorf("a token for the given audience: %v", err)
	}
	ours := s.OIDC.Sign(t, s.claims(s.OIDC, nil))
	for name, err := range map[string]error{
		"for another audience than ours": verifyError(t, s, token), "for ours, with another given": verifyError(t, s, ours, other),
	} {
		if !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("a token %s: %v", name, err)
		}
	}
}

func verifyError(t *testing.T, s Subject, token string, audience ...string) error {
	_, err := s.Verifier.Verify(t.Context(), publisher.OIDC, token, audience...)
	return err
}

func identifiesToken(t *testing.T, s Subject) {
	for _, without := range []any{nil, "", 7} {
		one := s.OIDC.Sign(t, s.claims(s.OIDC, map[string]any{"jti": without, "n": 1}))
		two := s.OIDC.Sign(t, s.claims(s.OIDC, map[string]any{"jti": without, "n": 2}))
		first, again, other := s.verify(t, one).ID, s.verify(t, one).ID, s.verify(t, two).ID
		if first == "" || first != again || first == other {
			t.Errorf("jti %v: the IDs are %q and %q for one token, %q for another", without, first, again, other)
		}
	}
}

func refusesInvalidClaims(t *testing.T, s Subject) {
	now := s.Clock.Now()
	s.verify(t, s.OIDC.Sign(t, s.claims(s.OIDC, nil)))
	for name, c := range map[string]struct {
		changes map[string]any
		reason  string
	}{
		"no issuer":                {map[string]any{"iss": nil}, "iss"},
		"issuer is a number":       {map[string]any{"iss": 7}, "iss"},
		"another issuer":           {map[string]any{"iss": "https://issuer.example"}, `"https://issuer.example"`},
		"issuer with a slash":      {map[string]any{"iss": s.OIDC.URL + "/"}, "does not accept"},
		"no subject":               {map[string]any{"sub": nil}, "sub"},
		"empty subject":            {map[string]any{"sub": ""}, "sub"},
		"no audience":              {map[string]any{"aud": nil}, s.Audience},
		"another audience":         {map[string]any{"aud": "https://other.example"}, s.Audience},
		"longer audience":          {map[string]any{"aud": s.Audience + "/"}, s.Audience},
		"other audiences":          {map[string]any{"aud": []string{"a", "b"}}, s.Audience},
		"audience is an object":    {map[string]any{"aud": map[string]any{s.Audience: true}}, s.Audience},
		"no expiry":                {map[string]any{"exp": nil}, "exp"},
		"expiry is a text":         {map[string]any{"exp": "tomorrow"}, "exp"},
		"expiry is out of range":   {map[string]any{"exp": 1e300}, "exp"},
		"expired":                  {map[string]any{"exp": now.Add(-time.Second).Unix()}, "expired"},
		"expires now":              {map[string]any{"exp": now.Unix()}, "expired"},
		"expires too late":         {map[string]any{"exp": now.Add(24*time.Hour + time.Second).Unix()}, "24 hours"},
		"no time of issue":         {map[string]any{"iat": nil}, "iat"},
		"time of issue is a list":  {map[string]any{"iat": []int{1}}, "iat"},
		"issued in the future":     {map[string]any{"iat": now.Add(61 * time.Second).Unix()}, "future"},
		"not valid yet":            {map[string]any{"nbf": now.Add(61 * time.Second).Unix()}, "not valid yet"},
		"start of time is a text":  {map[string]any{"nbf": "now"}, "nbf"},
		"start of time is nothing": {map[string]any{"nbf": map[string]any{}}, "nbf"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := s.claims(s.OIDC, c.changes)
			got := s.checkRefused(t, publisher.OIDC, s.OIDC.Sign(t, claims), c.reason)
			wantIssuer, _ := claims["iss"].(string)
			wantSubject, _ := claims["sub"].(string)
			if got.Issuer != wantIssuer || got.Subject != wantSubject {
				t.Errorf("the refused token has issuer %q and subject %q, want %q and %q", got.Issuer, got.Subject,
					wantIssuer, wantSubject)
			}
		})
	}
}

func acceptsUntilExpiry(t *testing.T, s Subject) {
	now := s.Clock.Now()
	token := s.OIDC.Sign(t, s.claims(s.OIDC, map[string]any{
		"iat": now.Add(time.Minute).Unix(), "nbf": now.Add(time.Minute).Unix(), "exp": now.Add(24 * time.Hour).Unix(),
	}))
	s.verify(t, token)
	s.Clock.Advance(24*time.Hour - time.Second)
	s.verify(t, token)
	s.Clock.Advance(time.Second)
	s.checkRefused(t, publisher.OIDC, token, "expired")
}

func refusesMalformed(t *testing.T, s Subject) {
	good := s.OIDC.Sign(t, s.claims(s.OIDC, nil))
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"empty":              "",
		"one part":           "token",
		"two parts":          parts[0] + "." + parts[1],
		"four parts":         good + ".AAAA",
		"no header":          "." + parts[1] + "." + parts[2],
		"no payload":         parts[0] + ".." + parts[2],
		"no signature":       parts[0] + "." + parts[1] + ".",
		"white space":        good + "\n",
		"line end inside":    parts[0] + "." + parts[1] + "\r\n." + parts[2],
		"padding":            parts[0] + "." + parts[1] + "=." + parts[2],
		"payload is a list":  parts[0] + ".W10." + parts[2],
		"payload is null":    parts[0] + ".bnVsbA." + parts[2],
		"header is a number": "Nw." + parts[1] + "." + parts[2],
		"JSON serialization": `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` +
			parts[2] + `"}`,
		"too long": good + strings.Repeat("A", 16<<10),
	} {
		t.Run(name, func(t *testing.T) { s.checkRefused(t, publisher.OIDC, token, "token") })
	}
}

// refusesAltered changes each character of a token. A character has several spellings of the same
// bits only in a lax base64, so that each change makes another token.
func refusesAltered(t *testing.T, s Subject) {
	good := s.OIDC.Sign(t, s.claims(s.OIDC, nil))
	s.verify(t, good)
	for at := range good {
		for _, with := range []byte{'A', 'B'} {
			altered := good[:at] + string(with) + good[at+1:]
			if altered == good {
				continue
			}
			if _, err := s.Verifier.Verify(t.Context(), publisher.OIDC, altered); !fault.Is(err,
				fault.Unauthenticated) {
				t.Errorf("character %d is %c: %v, want fault.Unauthenticated", at, with, err)
			}
		}
	}
}

func keepsMethodsApart(t *testing.T, s Subject) {
	s.checkRefused(t, publisher.OIDC, s.GitHub.Sign(t, s.claims(s.GitHub, nil)), s.GitHub.URL)
	s.checkRefused(t, publisher.GitHubOIDC, s.OIDC.Sign(t, s.claims(s.OIDC, nil)), s.OIDC.URL)
	s.checkRefused(t, publisher.OIDC, s.GitHub.Sign(t, s.claims(s.OIDC, nil)), "key")
	if _, err := s.Verifier.Verify(t.Context(), publisher.DNS, s.OIDC.Sign(t, s.claims(s.OIDC, nil))); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("method dns: %v, want fault.NotFound", err)
	}
}

func reportsFailure(t *testing.T, s Subject) {
	s.OIDC.Fail()
	got, err := s.Verifier.Verify(t.Context(), publisher.OIDC, s.OIDC.Sign(t, s.claims(s.OIDC, nil)))
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), s.OIDC.URL) {
		t.Errorf("verify: %v, want fault.Unavailable with the issuer", err)
	}
	if got.ID != "" || got.Claims != nil {
		t.Errorf("a token that was not verified returned %+v", got)
	}
	if _, err := s.Verifier.Verify(t.Context(), publisher.GitHubOIDC,
		s.GitHub.Sign(t, s.claims(s.GitHub, nil))); err != nil {
		t.Errorf("a token of the other issuer: %v", err)
	}
}

func reportsUnconfigured(t *testing.T, s Subject) {
	if _, err := s.Unconfigured.Verify(t.Context(), publisher.OIDC,
		s.OIDC.Sign(t, s.claims(s.OIDC, nil))); !fault.Is(err, fault.NotFound) {
		t.Errorf("verify: %v, want fault.NotFound", err)
	}
}

func endsWithContext(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Verifier.Verify(ctx, publisher.OIDC, s.OIDC.Sign(t, s.claims(s.OIDC, nil)))
	if !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("verify: %v, want fault.Unavailable because of context.Canceled", err)
	}
}

func survivesOneCaller(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	token := s.OIDC.Sign(t, s.claims(s.OIDC, nil))
	_, _ = s.Verifier.Verify(ctx, publisher.OIDC, token) // may start to read the keys
	s.verify(t, token)
}

func verifiesInParallel(t *testing.T, s Subject) {
	token := s.OIDC.Sign(t, s.claims(s.OIDC, nil))
	wrong := s.GitHub.Sign(t, s.claims(s.OIDC, nil))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := s.Verifier.Verify(t.Context(), publisher.OIDC, token); err != nil {
				t.Errorf("verify: %v", err)
			}
			if _, err := s.Verifier.Verify(t.Context(), publisher.OIDC, wrong); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("a token of another signer: %v, want fault.Unauthenticated", err)
			}
		})
	}
	wait.Wait()
}
