package stepup

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Passed is what a right code brings.
type Passed struct {
	TrustLevel  auth.TrustLevel
	DeviceToken auth.DeviceSecret // by which the device proves itself (contract A-37)
}

// Verify compares a code with that of a challenge. The right one raises the session that asked to
// FULL_TRUST, confirms its device and gives it a token (contract A-43).
//
// It returns fault.Invalid with code invalid_input when the challenge is unknown, used, expired or
// void, or its session has ended; fault.Unauthenticated with code invalid_otp for a wrong code;
// fault.Exhausted with code rate_limit_exceeded and the detail retryAfter, to the challenge's end,
// when no try is left, whatever the code. Each try is counted while the challenge is locked, so
// concurrent guesses get no more tries than others (contract A-42).
func (s *Service) Verify(ctx context.Context, id auth.ChallengeID, code auth.OTP) (Passed, error) {
	var t trial
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		t = trial{now: s.ports.Clock.Now(), id: id, code: code} // a retried transaction begins anew
		return s.attempt(ctx, &t)
	})
	switch {
	case err != nil:
		return Passed{}, err
	case t.refusal != nil:
		return Passed{}, t.refusal
	}
	s.ports.Cache.Drop(ctx, t.session.ID)
	return t.passed, nil
}

// trial is one verification under way.
type trial struct {
	now  time.Time
	id   auth.ChallengeID
	code auth.OTP

	challenge auth.Challenge
	session   auth.Session
	passed    Passed
	refusal   error // what must be stored and is refused nevertheless
	reason    string
}

// attempt takes one try.
func (s *Service) attempt(ctx context.Context, t *trial) error {
	right := false
	err := s.ports.Challenges.Update(ctx, t.id, func(c *auth.Challenge) error {
		switch {
		case c.State != auth.ChallengeOpen, !t.now.Before(c.ExpiresAt):
			t.refusal, t.reason = errChallenge(), ReasonClosed
		case c.Attempts >= s.config.Attempts:
			t.refusal, t.reason = s.errNoTry(c.ExpiresAt.Sub(t.now)), ReasonUsedUp
		case c.Method == auth.AuthenticatorApp:
			count(c, false) // before the code is looked at, which is not to be done while the store changes the challenge
		default:
			right = s.isCode(c, t.code)
			count(c, right)
		}
		t.challenge = *c
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return errChallenge()
	}
	if err == nil && t.refusal == nil && t.challenge.Method == auth.AuthenticatorApp {
		right, err = s.authenticate(ctx, t)
	}
	if err != nil {
		return err
	}
	if right {
		return s.raise(ctx, t)
	}
	return s.miss(ctx, t)
}

// authenticate takes a code of the person's authenticator, which is good once, here or at a login,
// and passes the challenge. Recovery codes are for logins only (contract A-19).
func (s *Service) authenticate(ctx context.Context, t *trial) (right bool, err error) {
	err = s.ports.Accounts.Update(ctx, t.challenge.UserID, func(a *auth.Account) (err error) {
		right, err = s.secondFactor.TakeTOTP(a, t.code, t.now)
		return err
	})
	if err != nil || !right {
		return false, err
	}
	return true, s.ports.Challenges.Update(ctx, t.id, func(c *auth.Challenge) error {
		c.Attempts--
		count(c, true)
		return nil
	})
}

// count marks a challenge passed, or a try of it used.
func count(c *auth.Challenge, right bool) {
	if right {
		c.State = auth.ChallengePassed
		return
	}
	c.Attempts++
}

// raise gives the session and its device what the right code brings. It changes the device before the session, as devices does,
// so that neither waits for the other.
func (s *Service) raise(ctx context.Context, t *trial) error {
	session, err := s.ports.Sessions.Get(ctx, t.challenge.SessionID)
	if err != nil {
		return err
	}
	t.passed.DeviceToken, err = devices.Confirm(ctx, devices.Confirmation{
		Devices: s.ports.Devices, Tokens: s.ports.DeviceTokens, Entropy: s.ports.Entropy,
	}, session.DeviceID, t.now)
	if err != nil {
		return err
	}
	err = s.ports.Sessions.Update(ctx, t.challenge.SessionID, func(stored *auth.Session) error {
		if !stored.Active(t.now) {
			return errChallenge()
		}
		stored.TrustLevel = auth.FullTrust
		t.session = *stored
		return nil
	})
	if err != nil {
		return err
	}
	t.passed.TrustLevel = auth.FullTrust
	return s.ports.Trail.Record(ctx, event(&t.session, t.id, true, map[string]any{
		"action": ActionVerify, "method": string(t.challenge.Method), "trustLevel": auth.FullTrust.String(),
	}))
}

// miss stores a try that failed: a wrong code, or any code when the challenge is closed or no try is left.
func (s *Service) miss(ctx context.Context, t *trial) error {
	var err error
	if t.session, err = s.ports.Sessions.Get(ctx, t.challenge.SessionID); err != nil {
		return err
	}
	if !t.session.Active(t.now) {
		return errChallenge()
	}
	tell := func(reason string) audit.Entry {
		return event(&t.session, t.id, false, map[string]any{
			"action": ActionVerify, "method": string(t.challenge.Method), "reason": reason,
		})
	}
	if t.refusal != nil {
		return s.ports.Trail.Record(ctx, tell(t.reason))
	}
	remaining := s.config.Attempts - t.challenge.Attempts
	t.refusal = fault.New(fault.Unauthenticated, auth.CodeInvalidOTP, "the code is wrong").
		WithDetail("attemptsRemaining", remaining)
	entries := []audit.Entry{tell(ReasonWrongCode)}
	if remaining <= 0 {
		used := tell(ReasonUsedUp)
		used.Type = auth.SuspiciousActivity
		entries = append(entries, used)
	}
	return s.ports.Trail.Record(ctx, entries...)
}

func errChallenge() error {
	return auth.InvalidField(auth.CodeInvalidInput, "challengeId", "is unknown, used or expired")
}
