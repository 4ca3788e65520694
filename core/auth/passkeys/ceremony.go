package passkeys

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

// CeremonyID names a registration or a sign-in that has begun. The service keeps nothing about it:
// the id is sealed, and good once.
type CeremonyID string

// Options are what a browser needs to call an authenticator.
type Options struct {
	Party     webauthn.Party
	Challenge [32]byte
	// Credentials are those that must not be registered again, or that may sign. None may be named
	// at a sign-in, because the person is not known.
	Credentials []auth.Credential
	Handle      auth.PasskeyHandle // of a registration
	Person      auth.Account       // of a registration
}

// Started is a ceremony that has begun.
type Started struct {
	Options

	ID        CeremonyID
	ExpiresAt time.Time
}

// ceremony is what a CeremonyID holds.
type ceremony struct {
	Session   auth.SessionID    // in which a passkey is registered; empty for a sign-in
	Device    auth.DeviceFields // of a sign-in
	Challenge []byte
	At        time.Time
}

const (
	ceremonyPurpose = "ceremony"
	challengeLength = 32
)

func (s *Service) start(party webauthn.Party, c ceremony) (Started, error) {
	c.Challenge, c.At = make([]byte, challengeLength), s.ports.Clock.Now()
	s.ports.Entropy.Fill(c.Challenge)
	text, err := json.Marshal(c)
	if err != nil {
		return Started{}, err
	}
	sealed, err := s.key.Seal(secrets.NewNonce(s.ports.Entropy), text, ceremonyPurpose)
	return Started{
		Options: Options{Party: party, Challenge: c.challenge()},
		ID:      CeremonyID(base64.RawURLEncoding.EncodeToString(sealed)), ExpiresAt: c.At.Add(auth.PasskeyTTL),
	}, err
}

// take uses up a ceremony of a session, or of a sign-in, and returns it. Of parallel
// calls, on all instances, one succeeds. The error is fault.Unauthenticated for any other ceremony.
func (s *Service) take(ctx context.Context, id CeremonyID, session auth.SessionID) (c ceremony, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(string(id))
	if err == nil {
		var text []byte
		if text, err = s.key.Open(sealed, ceremonyPurpose); err == nil {
			err = json.Unmarshal(text, &c)
		}
	}
	alive := auth.Alive(c.At.Add(auth.PasskeyTTL), s.ports.Clock.Now(), auth.PasskeyTTL)
	if err != nil || c.Session != session || !alive || len(c.Challenge) != challengeLength {
		return ceremony{}, errRefused()
	}
	first, err := s.ports.Used.Claim(ctx, "passkey:"+string(c.Challenge), auth.PasskeyTTL+auth.ClockTolerance)
	if err == nil && !first {
		err = errRefused()
	}
	return c, err
}

func (c *ceremony) challenge() [challengeLength]byte { return [challengeLength]byte(c.Challenge) }

func errRefused() error { return fault.New(fault.Unauthenticated, "the passkey is not accepted") }
