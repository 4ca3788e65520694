package passkeys

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

// BeginSignIn begins a sign-in from a device. It names no credential, because the person is not
// known yet.
func (s *Service) BeginSignIn(party webauthn.Party, device auth.DeviceFields) (Started, error) {
	if _, err := auth.NewDeviceInfo(device); err != nil {
		return Started{}, err
	}
	return s.start(party, ceremony{Device: device})
}

// Answer is the response of an authenticator to a ceremony.
type Answer struct {
	Party    webauthn.Party
	Ceremony CeremonyID
	Response []byte
}

// CheckSignIn returns the device of BeginSignIn, and the person of the passkey that has answered. The
// error is fault.Unauthenticated for whatever is wrong with the answer or the passkey; it comes with
// what is known.
func (s *Service) CheckSignIn(ctx context.Context, in Answer) (auth.DeviceFields, auth.UserID, error) {
	begun, err := s.take(ctx, in.Ceremony, "")
	if err != nil {
		return auth.DeviceFields{}, "", err
	}
	checked, err := s.Check(ctx, Signature{Party: in.Party, Challenge: begun.challenge(), Response: in.Response})
	s.Notify(checked)
	return begun.Device, checked.User, err
}

// StepUpOptions returns the options of a step-up, whose challenge is derived from its id. The error
// is fault.NotFound if the person has no passkey.
func (s *Service) StepUpOptions(
	ctx context.Context, party webauthn.Party, user auth.UserID, id auth.ChallengeID,
) (Options, error) {
	all, err := s.ports.Passkeys.Of(ctx, user)
	good := auth.CredentialsOf(all)
	if err == nil && len(good) == 0 {
		err = auth.NotFound("passkey")
	}
	return Options{Party: party, Challenge: s.StepUpChallenge(id), Credentials: good}, err
}

// StepUpChallenge returns the challenge of a step-up.
func (s *Service) StepUpChallenge(id auth.ChallengeID) [32]byte {
	return s.key.Sum("step-up " + string(id))
}

// Signature is a response of an authenticator for a challenge.
type Signature struct {
	Party     webauthn.Party
	Challenge [32]byte
	Response  []byte
	User      auth.UserID // whose passkey it must be; anyone's if empty, which the response must name
}

// Checked is the result of a check.
type Checked struct {
	User      auth.UserID // whose passkey it is; empty if it is not known
	Suspended bool        // its sign count went back
}

// Check returns the person of the passkey that has signed a challenge, and records the use. A
// passkey whose sign count goes back is suspended, with an event; the caller calls Notify after the
// transaction (contract K-5). The error is fault.Unauthenticated for whatever is wrong; it comes with
// what is known.
func (s *Service) Check(ctx context.Context, in Signature) (c Checked, err error) {
	if len(in.Response) > auth.MaxCredential {
		return c, errRefused()
	}
	named, err := s.ports.Verifier.Identify(in.Response)
	if err != nil {
		return c, err
	}
	p, err := s.ports.Passkeys.Find(ctx, named.Credential)
	if fault.Is(err, fault.NotFound) || err == nil && in.User != "" && p.UserID != in.User {
		return c, errRefused()
	}
	if err != nil {
		return c, err
	}
	c.User = p.UserID
	handle := s.handle(p.UserID)
	if in.User == "" && string(named.Handle) != string(handle[:]) {
		return c, errRefused()
	}
	signed, err := s.ports.Verifier.Verify(webauthn.Expected{
		Party: in.Party, Challenge: in.Challenge, Handle: handle,
	}, p.Credential, in.Response)
	if err != nil {
		return c, err
	}
	c.Suspended, err = s.use(ctx, p, signed)
	return c, err
}

// Notify sends the notice of a passkey that a check has suspended.
func (s *Service) Notify(c Checked) {
	if c.Suspended {
		s.ports.Notices.Notify(notices.Event{Kind: notices.PasskeySuspended, UserID: c.User, At: s.ports.Clock.Now()})
	}
}

// use records a use, or suspends the passkey.
func (s *Service) use(ctx context.Context, p auth.Passkey, signed auth.Credential) (suspended bool, err error) {
	good := false
	err = s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		err := s.ports.Passkeys.Update(ctx, p.ID, func(stored *auth.Passkey) error {
			if good, suspended = stored.SuspendedAt.IsZero(), false; good {
				good = stored.Use(signed, s.ports.Clock.Now())
				suspended = !good
			}
			return nil
		})
		if err != nil || !suspended {
			return err
		}
		return s.ports.Trail.RecordChanges(ctx, audit.Change{
			Category: audit.SuspiciousActivity, Subject: audit.Subject(p.UserID), Failed: true,
			Details: audit.Details{
				"reason": audit.Text("passkey_sign_count"), detailPasskey: audit.Text(p.ID), detailName: audit.Text(p.Name),
			},
		})
	})
	if fault.Is(err, fault.NotFound) || err == nil && !good {
		return suspended, errRefused()
	}
	return false, err
}
