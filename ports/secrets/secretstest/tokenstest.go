package secretstest

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// TokenSubject is the signer and the verifier of one adapter.
type TokenSubject struct {
	secrets.TokenSigner
	secrets.TokenVerifier
	authstore.PublishedKeys
	Audience string // of tokens of sessions
}

// NewClock returns a clock at a whole second.
func NewClock() *clocktest.Manual {
	return clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
}

// SampleClaims returns valid claims that are issued now and expire after a minute.
func SampleClaims(c *clocktest.Manual) secrets.TokenClaims {
	return secrets.TokenClaims{
		ID:        "0b0e6d8a-5c3e-4f0c-9d1a-2b3c4d5e6f70",
		UserID:    "11111111-2222-4333-8444-555555555555",
		SessionID: "66666666-7777-4888-8999-aaaaaaaaaaaa",
		IssuedAt:  c.Now(), ExpiresAt: c.Now().Add(time.Minute),
	}
}

// RunTokens runs the tests of a signer and its verifier. open returns them with the given clock.
func RunTokens(t *testing.T, open func(t *testing.T, c *clocktest.Manual) TokenSubject) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s TokenSubject, c *clocktest.Manual){
		"a verified token returns the claims that it was issued with": returnsClaims,
		"a verified token of a publisher returns the publisher":       returnsPublisher,
		"a verified token of a grant returns the grant":               returnsGrant,
		"a grant that cannot be told from a session has no token":     refusesConfusion,
		"an altered token of a grant is refused":                      refusesAlteredGrant,
		"an expired token is refused with the code for expiry":        reportsExpired,
		"an altered token is refused":                                 refusesAltered,
		"a text that is not a token is refused":                       refusesOtherTexts,
		"a token names the key that it was signed with":               namesSigningKey,
		"tokens are verified in parallel":                             verifiesInParallel,
	} {
		t.Run(name, func(t *testing.T) {
			c := NewClock()
			test(t, open(t, c), c)
		})
	}
}

func signToken(t *testing.T, s TokenSubject, c secrets.TokenClaims) auth.AccessToken {
	t.Helper()
	token, err := s.Sign(context.Background(), c)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return token
}

// WantCode fails the test unless err is fault.Unauthenticated with the code.
func WantCode(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Kind != fault.Unauthenticated || f.Code != code {
		t.Errorf("%s: %v, want fault.Unauthenticated with code %s", what, err, code)
	}
}

func returnsClaims(t *testing.T, s TokenSubject, c *clocktest.Manual) {
	want := SampleClaims(c)
	token := signToken(t, s, want)
	for range 2 { // the second may come from a memory
		got, err := s.Verify(context.Background(), token)
		if err != nil {
			t.Fatalf("verify: %v", err)
		}
		if got.ID != want.ID || got.UserID != want.UserID || got.SessionID != want.SessionID ||
			!got.IssuedAt.Equal(want.IssuedAt) || !got.ExpiresAt.Equal(want.ExpiresAt) {
			t.Errorf("claims %+v, want %+v", got, want)
		}
	}
}

// PublisherClaims returns the claims of a publisher with a number of permissions, as long as they
// can be.
func PublisherClaims(c *clocktest.Manual, permissions int) secrets.TokenClaims {
	p := &auth.Publisher{Method: "github-oidc", Subject: "https://ci.example repo:acme/tools:ref:refs/heads/main"}
	for range permissions {
		p.Permissions = append(p.Permissions, auth.PublisherPermission{
			Actions: []string{"publish", "status"}, Pattern: "io.github.acme/" + strings.Repeat("a", 184) + "*",
			Policy: "77777777-7777-4888-8999-aaaaaaaaaaaa",
		})
	}
	claims := SampleClaims(c)
	claims.UserID, claims.SessionID, claims.Publisher = "", "", p
	return claims
}

// returnsPublisher checks a token of the greatest number of permissions (contract P-15), and one
// that does not depend on a policy.
func returnsPublisher(t *testing.T, s TokenSubject, c *clocktest.Manual) {
	want := PublisherClaims(c, 32)
	want.Publisher.Permissions[0].Policy = ""
	token := signToken(t, s, want)
	for range 2 {
		got, err := s.Verify(context.Background(), token)
		if err != nil {
			t.Fatalf("verify: %v", err)
		}
		if got.ID != want.ID || got.UserID != "" || got.SessionID != "" ||
			!reflect.DeepEqual(got.Publisher, want.Publisher) ||
			!got.IssuedAt.Equal(want.IssuedAt) || !got.ExpiresAt.Equal(want.ExpiresAt) {
			t.Errorf("claims %+v, want %+v", got, want)
		}
	}
	c.Advance(time.Minute)
	_, err := s.Verify(context.Background(), token)
	WantCode(t, "an expired token of a publisher", err, auth.CodeTokenExpired)
}

// GrantClaims returns the claims of a grant.
func GrantClaims(c *clocktest.Manual) secrets.TokenClaims {
	f := &oauth.Family{
		ID: "99999999-7777-4888-8999-bbbbbbbbbbbb", UserID: SampleClaims(c).UserID, SessionID: SampleClaims(c).SessionID,
	}
	return secrets.NewGrantClaims(&Entropy{}, f, oauth.Claims{
		Family: f.ID, Client: "https://client.example.com/mcp.json", Resource: "https://weather.example.com/mcp/",
		Scopes: []string{"read", "write:all"}, Level: auth.LimitedTrust, AuthTime: c.Now().Add(-time.Hour),
	}, c.Now(), time.Minute)
}

func returnsGrant(t *testing.T, s TokenSubject, c *clocktest.Manual) {
	for name, change := range map[string]func(*secrets.TokenClaims){
		"of a session":            func(*secrets.TokenClaims) {},
		"of an assertion":         func(c *secrets.TokenClaims) { c.SessionID = "" },
		"without scopes":          func(c *secrets.TokenClaims) { c.Granted.Scopes = nil },
		"without time of sign-in": func(c *secrets.TokenClaims) { c.Granted.AuthTime = time.Time{} },
		"at the highest level":    func(c *secrets.TokenClaims) { c.Granted.Level = auth.FullTrust },
		"too long to remember": func(c *secrets.TokenClaims) {
			c.Granted.Resource = "https://weather.example.com/" + strings.Repeat("a", 2000)
		},
	} {
		want := GrantClaims(c)
		change(&want)
		token := signToken(t, s, want)
		for range 2 { // the second may come from a memory
			got, err := s.Verify(context.Background(), token)
			if err != nil {
				t.Fatalf("%s: verify: %v", name, err)
			}
			if !got.Granted.AuthTime.Equal(want.Granted.AuthTime) || !got.IssuedAt.Equal(want.IssuedAt) ||
				!got.ExpiresAt.Equal(want.ExpiresAt) {
				t.Errorf("%s: the times are those of %+v, want those of %+v", name, got, want)
			}
			got.IssuedAt, got.ExpiresAt, got.Granted.AuthTime = want.IssuedAt, want.ExpiresAt, want.Granted.AuthTime
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: claims %+v of %+v, want %+v of %+v", name, got, got.Granted, want, want.Granted)
			}
		}
	}
	token := signToken(t, s, GrantClaims(c))
	c.Advance(time.Minute)
	_, err := s.Verify(context.Background(), token)
	WantCode(t, "an expired token of a grant", err, auth.CodeTokenExpired)
}

// refusesConfusion checks that no token is signed whose resource is the audience of sessions, or whose id
// is not of its family.
func refusesConfusion(t *testing.T, s TokenSubject, c *clocktest.Manual) {
	for name, change := range map[string]func(*secrets.TokenClaims){
		"the audience of sessions": func(c *secrets.TokenClaims) { c.Granted.Resource = s.Audience },
		"the id of a session":      func(c *secrets.TokenClaims) { c.ID = "0b0e6d8a-5c3e-4f0c-9d1a-2b3c4d5e6f70" },
		"another family": func(c *secrets.TokenClaims) {
			c.Granted.Family = "99999999-7777-4888-8999-cccccccccccc"
		},
	} {
		claims := GrantClaims(c)
		change(&claims)
		if token, err := s.Sign(context.Background(), claims); err == nil {
			t.Errorf("%s: the token is %s", name, token)
		}
	}
}

func refusesAlteredGrant(t *testing.T, s TokenSubject, c *clocktest.Manual) {
	alter(t, s, GrantClaims(c))
}

func reportsExpired(t *testing.T, s TokenSubject, c *clocktest.Manual) {
	seen, unseen := signToken(t, s, SampleClaims(c)), signToken(t, s, SampleClaims(c))
	if _, err := s.Verify(context.Background(), seen); err != nil {
		t.Fatalf("verify: %v", err)
	}
	c.Advance(time.Minute)
	_, err := s.Verify(context.Background(), seen)
	WantCode(t, "a token that was verified before", err, auth.CodeTokenExpired)
	_, err = s.Verify(context.Background(), unseen)
	WantCode(t, "a token that was not", err, auth.CodeTokenExpired)
}

func refusesAltered(t *testing.T, s TokenSubject, c *clocktest.Manual) {
	alter(t, s, SampleClaims(c))
}

// alter changes each character of a token.
func alter(t *testing.T, s TokenSubject, c secrets.TokenClaims) {
	t.Helper()
	token := signToken(t, s, c)
	for i := range len(token) {
		altered := []byte(token)
		if altered[i]++; altered[i] == 'z'+1 {
			altered[i] = 'a'
		}
		_, err := s.Verify(context.Background(), auth.AccessToken(altered))
		if err == nil {
			t.Fatalf("character %d altered: the token still passes", i)
		}
		WantCode(t, "an altered token", err, auth.CodeInvalidToken)
	}
}

func refusesOtherTexts(t *testing.T, s TokenSubject, _ *clocktest.Manual) {
	for _, text := range []string{
		"", ".", "..", "x.y.z", "\x00", strings.Repeat("a", 1<<20), strings.Repeat(".", 10000),
	} {
		_, err := s.Verify(context.Background(), auth.AccessToken(text))
		WantCode(t, "what is no token", err, auth.CodeInvalidToken)
	}
}

func namesSigningKey(t *testing.T, s TokenSubject, _ *clocktest.Manual) {
	keys, err := s.PublicKeys(context.Background())
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys %v, error %v; want at least one", keys, err)
	}
	if !slices.IsSortedFunc(keys, func(a, b authstore.PublicKey) int { return cmp.Compare(a.ID, b.ID) }) {
		t.Errorf("keys are not in order: %v", keys)
	}
}

func verifiesInParallel(t *testing.T, s TokenSubject, c *clocktest.Manual) {
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			token, err := s.Sign(context.Background(), SampleClaims(c))
			if err != nil {
				t.Errorf("sign: %v", err)
			}
			if _, err := s.Verify(context.Background(), token); err != nil {
				t.Errorf("verify: %v", err)
			}
		})
	}
	wait.Wait()
}
