// Package tokenstest is the contract suite of the token port: every adapter runs it. It tests what callers rely on, not the form
// of a token.
package tokenstest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/tokens"
)

// Subject is what one adapter answers the port with.
type Subject struct {
	tokens.Signer
	tokens.Verifier
	authstore.PublishedKeys
}

// NewClock returns a clock at a whole second.
func NewClock() *clocktest.Manual {
	return clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
}

// Claims returns good claims, issued now and good for a minute.
func Claims(c *clocktest.Manual) tokens.Claims {
	return tokens.Claims{
		ID:        "0b0e6d8a-5c3e-4f0c-9d1a-2b3c4d5e6f70",
		UserID:    "11111111-2222-4333-8444-555555555555",
		SessionID: "66666666-7777-4888-8999-aaaaaaaaaaaa",
		IssuedAt:  c.Now(), ExpiresAt: c.Now().Add(time.Minute),
	}
}

// Run runs the suite. open returns an adapter that goes by the clock.
func Run(t *testing.T, open func(t *testing.T, c *clocktest.Manual) Subject) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s Subject, c *clocktest.Manual){
		"returns the claims":      returnsClaims,
		"tells expired":           tellsExpired,
		"refuses what is altered": refusesAltered,
		"refuses what is none":    refusesNone,
		"names its keys":          namesKeys,
		"works in parallel":       parallel,
	} {
		t.Run(name, func(t *testing.T) {
			c := NewClock()
			test(t, open(t, c), c)
		})
	}
}

func sign(t *testing.T, s Subject, c tokens.Claims) auth.AccessToken {
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

func returnsClaims(t *testing.T, s Subject, c *clocktest.Manual) {
	want := Claims(c)
	token := sign(t, s, want)
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

func tellsExpired(t *testing.T, s Subject, c *clocktest.Manual) {
	seen, unseen := sign(t, s, Claims(c)), sign(t, s, Claims(c))
	if _, err := s.Verify(context.Background(), seen); err != nil {
		t.Fatalf("verify: %v", err)
	}
	c.Advance(time.Minute)
	_, err := s.Verify(context.Background(), seen)
	WantCode(t, "a token that was verified before", err, auth.CodeTokenExpired)
	_, err = s.Verify(context.Background(), unseen)
	WantCode(t, "a token that was not", err, auth.CodeTokenExpired)
}

func refusesAltered(t *testing.T, s Subject, c *clocktest.Manual) {
	token := sign(t, s, Claims(c))
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

func refusesNone(t *testing.T, s Subject, _ *clocktest.Manual) {
	for _, text := range []string{"", ".", "..", "x.y.z", "\x00", strings.Repeat("a", 1<<20), strings.Repeat(".", 10000)} {
		_, err := s.Verify(context.Background(), auth.AccessToken(text))
		WantCode(t, "what is no token", err, auth.CodeInvalidToken)
	}
}

func namesKeys(t *testing.T, s Subject, _ *clocktest.Manual) {
	keys, err := s.PublicKeys(context.Background())
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys %v, error %v; want at least one", keys, err)
	}
	if !slices.IsSortedFunc(keys, func(a, b authstore.PublicKey) int { return cmp.Compare(a.ID, b.ID) }) {
		t.Errorf("keys are not in order: %v", keys)
	}
}

func parallel(t *testing.T, s Subject, c *clocktest.Manual) {
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			token, err := s.Sign(context.Background(), Claims(c))
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
