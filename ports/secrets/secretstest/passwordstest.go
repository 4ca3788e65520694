// Package secretstest has the contract tests of ports/secrets. They test what callers rely on, not
// the cost of a hash or the format of a token.
package secretstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// RunPasswordHasher runs the tests of a password hasher. open returns one that lets at least eight
// calls wait.
func RunPasswordHasher(t *testing.T, open func(t *testing.T) secrets.PasswordHasher) {
	t.Helper()
	t.Run("a hash matches only the password that it was made of", func(t *testing.T) { matchesPassword(t, open(t)) })
	t.Run("two hashes of one password differ", func(t *testing.T) { usesFreshSalts(t, open(t)) })
	t.Run("a password that is too long is refused", func(t *testing.T) { refusesLongPassword(t, open(t)) })
	t.Run("a hash that cannot be read is reported as an error", func(t *testing.T) { reportsBrokenHash(t, open(t)) })
	t.Run("a call with a cancelled context fails", func(t *testing.T) { passwordHeedsCancel(t, open(t)) })
	t.Run("passwords are hashed in parallel", func(t *testing.T) { hashesInParallel(t, open(t)) })
}

// Password returns a password for tests.
func Password(t *testing.T, s string) auth.Password {
	t.Helper()
	p, err := auth.NewPassword("password", s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func hashPassword(t *testing.T, h secrets.PasswordHasher, s string) auth.PasswordHash {
	t.Helper()
	hashed, err := h.Hash(context.Background(), Password(t, s))
	if err != nil {
		t.Fatalf("hash: %v", err)
	}
	return hashed
}

func matchesPassword(t *testing.T, h secrets.PasswordHasher) {
	for _, c := range []struct {
		set, tried string
		want       bool
	}{
		{"Correct Horse 9!", "Correct Horse 9!", true},
		{"Correct Horse 9!", "correct Horse 9!", false},
		{"Correct Horse 9!", "Correct Horse 9! ", false},
		// composed and not: one password
		{"Gr\u00fc\u00dfe aus K\u00f6ln 1!", "Gru\u0308\u00dfe aus Ko\u0308ln 1!", true},
		{strings.Repeat("\u20ac", auth.MaxPassword), strings.Repeat("\u20ac", auth.MaxPassword), true},
		{strings.Repeat("x", auth.MaxPassword), strings.Repeat("x", auth.MaxPassword-1), false},
	} {
		match, stale, err := h.Verify(context.Background(), hashPassword(t, h, c.set), Password(t, c.tried))
		if err != nil || match != c.want || stale {
			t.Errorf("set %q, tried %q: match %v, stale %v, error %v; want match %v", c.set, c.tried, match,
				stale, err, c.want)
		}
	}
}

func usesFreshSalts(t *testing.T, h secrets.PasswordHasher) {
	if a, b := hashPassword(t, h, "Same Secret 1!"), hashPassword(t, h, "Same Secret 1!"); a == b {
		t.Error("one password gave the same hash twice")
	}
	if a := hashPassword(t, h, "Same Secret 1!"); strings.Contains(string(a), "Secret") {
		t.Error("the hash holds the password")
	}
}

func refusesLongPassword(t *testing.T, h secrets.PasswordHasher) {
	ctx, long := context.Background(), Password(t, strings.Repeat("x", auth.MaxPassword+1))
	if _, err := h.Hash(ctx, long); !fault.Is(err, fault.Invalid) {
		t.Errorf("hash of a password that is too long: %v, want fault.Invalid", err)
	}
	if match, _, err := h.Verify(ctx, hashPassword(t, h, "Short Enough 1!"), long); match || err != nil {
		t.Errorf("verify of a password that is too long: match %v, error %v", match, err)
	}
	if match, _, err := h.Verify(ctx, hashPassword(t, h, "Short Enough 1!"),
		Password(t, strings.Repeat("y", 1<<16))); match || err != nil {
		t.Errorf("verify of a huge password: match %v, error %v", match, err)
	}
	if err := h.VerifyNone(ctx, long); err != nil {
		t.Errorf("verify of a long password without an account: %v", err)
	}
}

func reportsBrokenHash(t *testing.T, h secrets.PasswordHasher) {
	for _, broken := range []auth.PasswordHash{
		"", "x", "$argon2id$v=19$", auth.PasswordHash(strings.Repeat("$", 10000)),
	} {
		match, _, err := h.Verify(context.Background(), broken, Password(t, "Any Secret 1!"))
		if match || !fault.Is(err, fault.Internal) {
			t.Errorf("hash %.20q: match %v, error %v; want fault.Internal", broken, match, err)
		}
	}
}

func passwordHeedsCancel(t *testing.T, h secrets.PasswordHasher) {
	stored := hashPassword(t, h, "Any Secret 1!")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := h.Verify(ctx, stored, Password(t, "Any Secret 1!")); !errors.Is(err, context.Canceled) {
		t.Errorf("verify: %v, want context.Canceled", err)
	}
	if err := h.VerifyNone(ctx, Password(t, "Any Secret 1!")); !errors.Is(err, context.Canceled) {
		t.Errorf("verify none: %v, want context.Canceled", err)
	}
}

func hashesInParallel(t *testing.T, h secrets.PasswordHasher) {
	var wait sync.WaitGroup
	for i := range 8 {
		own := Password(t, fmt.Sprintf("Own Secret %d!", i))
		wait.Go(func() {
			stored, err := h.Hash(context.Background(), own)
			if err != nil {
				t.Errorf("hash: %v", err)
				return
			}
			if match, _, err := h.Verify(context.Background(), stored, own); !match || err != nil {
				t.Errorf("verify: match %v, error %v", match, err)
			}
		})
	}
	wait.Wait()
}
