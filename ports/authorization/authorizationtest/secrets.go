package authorizationtest

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

func secretTests() map[string]func(t *testing.T, s Stores) {
	return map[string]func(t *testing.T, s Stores){
		"a stored secret has the value of every field":   secretKeepsEveryField,
		"any secret is returned as it was stored":        secretRoundTrips,
		"a secret can be spent once":                     spendsOnce,
		"one of several parallel uses spends a secret":   spendsOnceInParallel,
		"a failed transaction spends and adds no secret": secretRollsBack,
		"a call with a cancelled context fails":          secretHeedsCancel,
	}
}

// secret returns an unspent sample of a family with every other field set.
func secret(f oauth.Family, n int) oauth.Secret {
	return oauth.Secret{
		Hash: hashOf(n), Family: f.ID, Code: true, IssuedAt: minutes(n), ExpiresAt: minutes(n).Add(oauth.CodeTTL),
	}
}

func addSecrets(t *testing.T, s Stores, all ...oauth.Secret) {
	t.Helper()
	for _, secret := range all {
		recordtest.OK(t, s.Secrets.Add(t.Context(), secret))
	}
}

// wantSecrets fails the test unless the store has each of the secrets, and no others.
func wantSecrets(t *testing.T, s Stores, all []oauth.Secret, others ...oauth.Secret) {
	t.Helper()
	for _, want := range all {
		recordtest.Equal(t, recordtest.Must(s.Secrets.Find(t.Context(), want.Hash))(t), want)
	}
	for _, other := range others {
		if got, err := s.Secrets.Find(t.Context(), other.Hash); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find returned %+v, %v, want fault.NotFound", got, err)
		}
	}
}

func secretKeepsEveryField(t *testing.T, s Stores) {
	addFamilies(t, s, active(0, 1))
	code, token := secret(active(0, 1), 1), secret(active(0, 1), 2)
	code.SpentAt, token.Code = minutes(3), false
	recordtest.Whole(t, code)
	addSecrets(t, s, code, token)
	wantSecrets(t, s, []oauth.Secret{code, token}, secret(active(0, 1), 3))
	if err := s.Secrets.Add(t.Context(), code); err == nil {
		t.Error("a secret is added twice")
	}
	if err := s.Secrets.Add(t.Context(), secret(active(0, 2), 3)); err == nil {
		t.Error("a secret of an unknown family is kept")
	}
}

func secretRoundTrips(t *testing.T, s Stores) {
	addFamilies(t, s, active(0, 1))
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		at, code := recordtest.Instant(), secret(active(0, 1), n)
		code.Code = rapid.Bool().Draw(r, "code")
		code.IssuedAt, code.ExpiresAt = at.Draw(r, "issued"), at.Draw(r, "expires")
		code.SpentAt = recordtest.Optional(at).Draw(r, "spent")
		recordtest.OK(r, s.Secrets.Add(t.Context(), code))
		recordtest.Equal(r, recordtest.Must(s.Secrets.Find(t.Context(), code.Hash))(r), code)
	})
}

func spendsOnce(t *testing.T, s Stores) {
	addFamilies(t, s, active(0, 1))
	code, other := secret(active(0, 1), 1), secret(active(0, 1), 2)
	addSecrets(t, s, code, other)
	recordtest.OK(t, s.Secrets.Spend(t.Context(), code.Hash, minutes(5)))
	if err := s.Secrets.Spend(t.Context(), code.Hash, minutes(6)); !fault.Is(err, fault.Conflict) {
		t.Errorf("Spend again returned %v", err)
	}
	if err := s.Secrets.Spend(t.Context(), hashOf(3), minutes(5)); !fault.Is(err, fault.NotFound) {
		t.Errorf("Spend of an unknown secret returned %v", err)
	}
	code.SpentAt = minutes(5)
	wantSecrets(t, s, []oauth.Secret{code, other})
}

func spendsOnceInParallel(t *testing.T, s Stores) {
	addFamilies(t, s, active(0, 1))
	code := secret(active(0, 1), 1)
	addSecrets(t, s, code)
	recordtest.WantOne(t, racing(t, s, func(ctx context.Context) error {
		return s.Secrets.Spend(ctx, code.Hash, minutes(5))
	}), fault.Conflict)
	code.SpentAt = minutes(5)
	wantSecrets(t, s, []oauth.Secret{code})
}

func secretRollsBack(t *testing.T, s Stores) {
	addFamilies(t, s, active(0, 1))
	code, next := secret(active(0, 1), 1), secret(active(0, 1), 2)
	addSecrets(t, s, code)
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		recordtest.OK(t, s.Secrets.Add(ctx, next))
		return s.Secrets.Spend(ctx, code.Hash, minutes(5))
	})
	wantSecrets(t, s, []oauth.Secret{code}, next)
}

func secretHeedsCancel(t *testing.T, s Stores) {
	addFamilies(t, s, active(0, 1))
	code, next := secret(active(0, 1), 1), secret(active(0, 1), 2)
	addSecrets(t, s, code)
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Add":   func(ctx context.Context) error { return s.Secrets.Add(ctx, next) },
		"Find":  func(ctx context.Context) error { _, err := s.Secrets.Find(ctx, code.Hash); return err },
		"Spend": func(ctx context.Context) error { return s.Secrets.Spend(ctx, code.Hash, later(time.Hour)) },
	})
	wantSecrets(t, s, []oauth.Secret{code}, next)
}
