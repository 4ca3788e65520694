package identitytest

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

// AssertionSubject verifies assertions, and has not seen one yet.
type AssertionSubject struct {
	identity.Assertions

	Provider *company.Provider
	// Sign returns a token of the provider with a type in its header and these claims.
	Sign func(t testing.TB, kind string, claims map[string]any) string
	// Stranger is Sign by a key that the provider does not have.
	Stranger func(t testing.TB, kind string, claims map[string]any) string
	// Fail makes the keys of the provider unreadable.
	Fail func()
}

// assertionType is the type of assertions.
const assertionType = "oauth-id-jag+jwt"

// RunAssertions runs the suite of assertions. open returns a subject and registers its own cleanup.
func RunAssertions(t *testing.T, open func(t *testing.T) AssertionSubject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, AssertionSubject){
		"an assertion returns its payload":                       readsAssertion,
		"a token of another type is refused":                     refusesOtherTypes,
		"a malformed assertion is refused":                       refusesMalformedAssertion,
		"an assertion that the provider did not sign is refused": refusesUnsigned,
		"a provider that fails is reported as unavailable":       reportsProvider,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func assertionClaims() map[string]any { return map[string]any{"iss": "x", "sub": "u1"} }

func (s AssertionSubject) checkRefused(t *testing.T, what, token string, reason fault.Code) {
	t.Helper()
	_, readErr := s.ReadAssertion(token)
	err := s.VerifyAssertion(t.Context(), s.Provider, token)
	if f, _ := fault.As(err); !fault.Is(err, fault.Unauthenticated) || f.Code != reason {
		t.Errorf("%s: verify: %v, want fault.Unauthenticated with the code %s", what, err, reason)
	}
	if f, _ := fault.As(readErr); (reason != "signature") != (f != nil && f.Code == reason) {
		t.Errorf("%s: read: %v", what, readErr)
	}
}

func readsAssertion(t *testing.T, s AssertionSubject) {
	for _, kind := range []string{assertionType, "application/" + assertionType, "OAuth-ID-JAG+JWT"} {
		token := s.Sign(t, kind, assertionClaims())
		payload, err := s.ReadAssertion(token)
		if err != nil || string(payload) != `{"iss":"x","sub":"u1"}` {
			t.Errorf("%s: read: %s, %v", kind, payload, err)
		}
		if err := s.VerifyAssertion(t.Context(), s.Provider, token); err != nil {
			t.Errorf("%s: verify: %v", kind, err)
		}
	}
}

func refusesOtherTypes(t *testing.T, s AssertionSubject) {
	for _, kind := range []string{"", "JWT", "at+jwt", "logout+jwt", "oauth-id-jag", assertionType + "x", "text/" + assertionType} {
		s.checkRefused(t, "the type "+kind, s.Sign(t, kind, assertionClaims()), "type")
	}
}

func refusesMalformedAssertion(t *testing.T, s AssertionSubject) {
	good := s.Sign(t, assertionType, assertionClaims())
	parts := strings.Split(good, ".")
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"oauth-id-jag+jwt","crit":["b64"],"b64":true}`))
	long := assertionClaims()
	long["long"] = strings.Repeat("x", 16<<10)
	for name, token := range map[string]string{
		"empty": "", "two parts": parts[0] + "." + parts[1], "four parts": good + ".AA", "padding": good + "=",
		"a line end": good + "\n", "an extension": header + "." + parts[1] + "." + parts[2],
		"longer than 16 KiB": s.Sign(t, assertionType, long),
	} {
		s.checkRefused(t, name, token, "malformed")
	}
}

func refusesUnsigned(t *testing.T, s AssertionSubject) {
	good := s.Sign(t, assertionType, assertionClaims())
	parts := strings.Split(good, ".")
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for name, token := range map[string]string{
		"of a stranger":   s.Stranger(t, assertionType, assertionClaims()),
		"another payload": parts[0] + "." + encode(`{"iss":"x","sub":"u2"}`) + "." + parts[2],
		"no algorithm":    encode(`{"alg":"none","typ":"oauth-id-jag+jwt"}`) + "." + parts[1] + ".",
		"a symmetric one": encode(`{"alg":"HS256","typ":"oauth-id-jag+jwt"}`) + "." + parts[1] + "." + parts[2],
	} {
		s.checkRefused(t, name, token, "signature")
	}
}

func reportsProvider(t *testing.T, s AssertionSubject) {
	s.Fail()
	token := s.Sign(t, assertionType, assertionClaims())
	if err := s.VerifyAssertion(t.Context(), s.Provider, token); !fault.Is(err, fault.Unavailable) {
		t.Errorf("verify: %v, want fault.Unavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.VerifyAssertion(ctx, s.Provider, token); !fault.Is(err, fault.Unavailable) && !errors.Is(err, context.Canceled) {
		t.Errorf("verify with an ended context: %v", err)
	}
}
