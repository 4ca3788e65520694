package authstoretest

import (
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// passkeySample returns a passkey of a person.
func passkeySample(user, n int) auth.Passkey {
	return auth.Passkey{
		ID: auth.NewUUID[auth.PasskeyID]([16]byte{byte(user), byte(n)}), UserID: Account(user).ID, Name: "Büro",
		Credential: auth.Credential{
			ID: auth.CredentialID("\x00\xffcredential " + string(rune('a'+n)) + string(rune('a'+user))), PublicKey: []byte{1, 0, 255},
			SignCount: 1<<32 - 1, Transports: []string{"internal", "hybrid"}, AAGUID: [16]byte{1, 15: 255},
			BackupEligible: true,
		},
		CreatedAt: time.Date(2026, time.November, 21, 12, n, 0, 0, time.UTC),
	}
}

func runPasskeys(t *testing.T, open func(t *testing.T) Stores) {
	testCases(t, withAccounts(open), map[string]func(t *testing.T, s Stores){
		"kept whole and in order": keepsPasskeys, "one credential id": keepsOneCredential, "changes": changesPasskeys,
		"removed by its person": removesPasskeys,
	})
}

func keepsPasskeys(t *testing.T, s Stores) {
	first, second, others := passkeySample(0, 0), passkeySample(0, 1), passkeySample(1, 2)
	second.Transports, second.LastUsedAt = nil, second.CreatedAt.Add(time.Microsecond)
	for _, p := range []auth.Passkey{second, others, first} {
		recordtest.OK(t, s.Passkeys.Add(t.Context(), p))
	}
	recordtest.Equal(t, recordtest.Must(s.Passkeys.Of(t.Context(), first.UserID))(t), []auth.Passkey{first, second})
	recordtest.Equal(t, recordtest.Must(s.Passkeys.Find(t.Context(), others.Credential.ID))(t), others)
	if _, err := s.Passkeys.Find(t.Context(), "\x00\xffcredential"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown credential: %v", err)
	}
}

func keepsOneCredential(t *testing.T, s Stores) {
	p, same := passkeySample(0, 0), passkeySample(1, 1)
	same.Credential.ID = p.Credential.ID
	recordtest.OK(t, s.Passkeys.Add(t.Context(), p))
	if err := s.Passkeys.Add(t.Context(), same); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same credential of another person: %v", err)
	}
}

func changesPasskeys(t *testing.T, s Stores) {
	p := passkeySample(0, 0)
	recordtest.OK(t, s.Passkeys.Add(t.Context(), p))
	p.Name, p.SignCount, p.BackedUp = "Handy", 7, true
	p.LastUsedAt, p.SuspendedAt = p.CreatedAt.Add(time.Hour), p.CreatedAt.Add(2*time.Hour)
	recordtest.OK(t, s.Passkeys.Update(t.Context(), p.ID, func(stored *auth.Passkey) error { *stored = p; return nil }))
	recordtest.Equal(t, recordtest.Must(s.Passkeys.Find(t.Context(), p.Credential.ID))(t), p)
	refused := errors.New("refused")
	err := s.Passkeys.Update(t.Context(), p.ID, func(stored *auth.Passkey) error { stored.Name = "x"; return refused })
	if !errors.Is(err, refused) {
		t.Errorf("a refused change: %v", err)
	}
	recordtest.Equal(t, recordtest.Must(s.Passkeys.Find(t.Context(), p.Credential.ID))(t), p)
	err = s.Passkeys.Update(t.Context(), passkeySample(1, 1).ID, func(*auth.Passkey) error { return nil })
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("a change of none: %v", err)
	}
}

func removesPasskeys(t *testing.T, s Stores) {
	p := passkeySample(0, 0)
	recordtest.OK(t, s.Passkeys.Add(t.Context(), p))
	if err := s.Passkeys.Remove(t.Context(), Account(1).ID, p.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed by another person: %v", err)
	}
	recordtest.OK(t, s.Passkeys.Remove(t.Context(), p.UserID, p.ID))
	if err := s.Passkeys.Remove(t.Context(), p.UserID, p.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed again: %v", err)
	}
}
