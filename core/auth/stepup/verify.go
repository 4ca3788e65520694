package stepup

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

// Answer is what a person sends to pass a challenge.
type Answer struct {
	ID          auth.ChallengeID
	Code        auth.OTP
	TrustDevice bool // marks the device as TRUSTED (contract A-38)
	// Check decides about the answer of a provider, for COMPANY instead of a code. An error of kind
	// fault.Unauthenticated counts as a wrong code, with its message.
	Check func(ctx context.Context, c *auth.Challenge) error

	// For PASSKEY, instead of a code.
	Session  auth.SessionID // of the caller, which must be that of the challenge
	Party    webauthn.Party
	Response []byte // of the authenticator
}

// Passed is the result of a verification whose code was right.
type Passed struct {
	TrustLevel  auth.TrustLevel
	DeviceToken auth.DeviceSecret // the new token of the device (contract A-37)
	AccessToken auth.AccessToken  // a new one of the session; the earlier ones stay good (contract A-43)
}

// Verify checks a code against a challenge. The right code raises the session of the challenge to
// FULL_TRUST, confirms its device, and returns a new device token and a new access token (contract
//
//
// The error is fault.Invalid with code invalid_input if the challenge is unknown, used, expired or
// void, or its session has ended. It is fault.Unauthenticated with code invalid_otp if the code is
// wrong. If no attempt is left, it is fault.Exhausted with code rate_limit_exceeded, even for the
// right code; its detail retryAfter is the time until the challenge expires. Each attempt is
// counted while the row of the challenge is locked, so concurrent guesses get no extra attempts
// (contract A-42).
func (s *Service) Verify(ctx context.Context, in Answer) (Passed, error) {
	verify := func(learn bool) (verification, error) {
		return transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (verification, error) {
			t := verification{Answer: in, now: s.ports.Clock.Now(), learn: learn}
			err := s.verifyCode(ctx, &t)
			return t, err
		})
	}
	t, err := verify(s.config.Learn)
	if failed := (*assessment.HistoryError)(nil); errors.As(err, &failed) && ctx.Err() == nil {
		t, err = verify(false) // a step-up does not fail because nothing can be learnt from it (contract A-60)
	}
	switch {
	case err != nil:
		return Passed{}, err
	case t.refusal != nil:
		if s.ports.Passkeys != nil {
			s.ports.Passkeys.Notify(t.checked)
		}
		return Passed{}, t.refusal
	}
	s.ports.Cache.Drop(ctx, t.session.ID)
	return t.passed, nil
}

// verification is the state of one call of Verify.
type verification struct {
	Answer

	now       time.Time
	learn     bool // the session is learnt from if the code is right
	challenge auth.Challenge
	session   auth.Session
	passed    Passed
	checked   passkeys.Checked
	confirms  bool         // the code confirms a telephone number, and proves nothing else
	refusal   error        // the error to return although the transaction is committed
	reason    string       // the reason of the refusal in the audit log
	wrong     *fault.Error // why the answer of a provider is wrong; nil for a code
}

// verifyCode counts one attempt and handles its result.
func (s *Service) verifyCode(ctx context.Context, t *verification) error {
	right := false
	err := s.ports.Challenges.Update(ctx, t.ID, func(c *auth.Challenge) error {
		switch {
		case c.State != auth.ChallengeOpen, !auth.Alive(c.ExpiresAt, t.now, s.config.CodeTTL):
			t.refusal, t.reason = errChallenge(), ReasonClosed
		case c.Method == auth.PasskeyMethod && c.SessionID != t.Session:
			t.refusal, t.reason = errChallenge(), ReasonClosed
		case c.Attempts >= s.config.Attempts:
			t.refusal, t.reason = s.errNoAttemptLeft(c.ExpiresAt.Sub(t.now)), ReasonUsedUp
		case !c.Method.Sends():
			// The code must not be checked while the challenge is locked. Until
			// verifyAuthenticator has checked it, the attempt counts as wrong.
			countAttempt(c, false)
		default:
			right = s.isCode(c, t.Code)
			countAttempt(c, right)
		}
		t.challenge = *c
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return errChallenge()
	}
	if err == nil && t.refusal == nil && !t.challenge.Method.Sends() {
		right, err = s.verifyAuthenticator(ctx, t)
	}
	if err != nil {
		return err
	}
	if right {
		return s.raiseTrust(ctx, t)
	}
	return s.recordFailure(ctx, t)
}

// verifyAuthenticator reports whether the answer is one of the person's authenticator, passkey or
// provider. It uses up a code, which is valid once, here or at a login, and marks the challenge as
// passed. Recovery codes are for logins only (contract A-19).
func (s *Service) verifyAuthenticator(ctx context.Context, t *verification) (right bool, err error) {
	switch t.challenge.Method {
	case auth.PasskeyMethod:
		right, err = s.verifyPasskey(ctx, t)
	case auth.CompanySignIn:
		right, err = t.checkCompany(ctx)
	default:
		err = s.ports.Accounts.Update(ctx, t.challenge.UserID, func(a *auth.Account) (err error) {
			right, err = s.secondFactor.TakeTOTP(a, t.Code, t.now)
			return err
		})
	}
	if err != nil || !right {
		return false, err
	}
	return true, s.ports.Challenges.Update(ctx, t.ID, func(c *auth.Challenge) error {
		c.Attempts-- // verifyCode has counted the attempt as wrong
		countAttempt(c, true)
		return nil
	})
}

// verifyPasskey reports whether a passkey of the person has signed the challenge.
func (s *Service) verifyPasskey(ctx context.Context, t *verification) (bool, error) {
	var err error
	t.checked, err = s.ports.Passkeys.Check(ctx, passkeys.Signature{
		Party: t.Party, Challenge: s.ports.Passkeys.StepUpChallenge(t.ID), Response: t.Response, User: t.challenge.UserID,
	})
	if fault.Is(err, fault.Unauthenticated) {
		return false, nil
	}
	return err == nil, err
}

// countAttempt marks a challenge as passed, or counts a wrong code.
func countAttempt(c *auth.Challenge, right bool) {
	if right {
		c.State = auth.ChallengePassed
		return
	}
	c.Attempts++
}

// confirmPhone confirms the number to which a code was sent. It returns errChallenge unless the session has
// proven itself otherwise, and if the account has changed since: the code may have gone elsewhere.
func (s *Service) confirmPhone(ctx context.Context, t *verification, session *auth.Session) error {
	if t.challenge.Method != auth.SMSOTP {
		return nil
	}
	return s.ports.Accounts.Update(ctx, session.UserID, func(a *auth.Account) error {
		if t.confirms = a.PhonePending; !t.confirms {
			return nil
		}
		if session.TrustLevel != auth.FullTrust || a.UpdatedAt.After(t.challenge.CreatedAt) {
			return errChallenge()
		}
		a.PhonePending = false
		return nil
	})
}

// raiseTrust confirms the device, raises the session to FULL_TRUST and learns from it. It changes
// the device before the session, in the same order as package devices, so that there is no
// deadlock.
func (s *Service) raiseTrust(ctx context.Context, t *verification) error {
	session, err := s.ports.Sessions.Get(ctx, t.challenge.SessionID)
	if err == nil {
		err = s.confirmPhone(ctx, t, &session)
	}
	if err != nil {
		return err
	}
	t.passed.DeviceToken, err = devices.Confirm(ctx, devices.Confirmation{
		Devices: s.ports.Devices, Tokens: s.ports.DeviceTokens, Entropy: s.ports.Entropy, Trail: s.ports.Trail,
	}, &session, t.TrustDevice, t.now)
	if err != nil {
		return err
	}
	err = s.ports.Sessions.Update(ctx, t.challenge.SessionID, func(stored *auth.Session) error {
		if !stored.Active(t.now) {
			return errChallenge()
		}
		if stored.TrustLevel = auth.FullTrust; !t.confirms {
			stored.ReauthenticatedAt = t.now
		}
		t.session = *stored
		return nil
	})
	if err != nil {
		return err
	}
	if t.learn {
		if err := s.ports.Deferrals.Confirm(ctx, t.session.ID); err != nil {
			return &assessment.HistoryError{Cause: err}
		}
	}
	t.passed.TrustLevel = auth.FullTrust
	claims := secrets.NewSessionClaims(s.ports.Entropy, &t.session, t.now, s.config.AccessTokenTTL)
	if t.passed.AccessToken, err = s.ports.Tokens.Sign(ctx, claims); err != nil {
		return err
	}
	return s.ports.Trail.RecordChanges(ctx, newPass(&t.session, &t.challenge))
}

// recordFailure writes a failed attempt to the audit log: a wrong code, or any code if the
// challenge is closed or has no attempt left. For a wrong code it also sets the refusal.
func (s *Service) recordFailure(ctx context.Context, t *verification) error {
	var err error
	if t.session, err = s.ports.Sessions.Get(ctx, t.challenge.SessionID); err != nil {
		return err
	}
	if !t.session.Active(t.now) {
		return errChallenge()
	}
	if t.refusal != nil {
		return s.ports.Trail.RecordChanges(ctx, newFailure(ActionVerify, &t.session, &t.challenge, t.reason))
	}
	remaining := s.config.Attempts - t.challenge.Attempts
	message, wrong := wrongAnswer(t.challenge.Method), newFailure(ActionVerify, &t.session, &t.challenge, ReasonWrongCode)
	if t.wrong != nil {
		message = t.wrong.Message
		wrong.Details["problem"] = audit.Text(t.wrong.Code)
	}
	t.refusal = fault.New(fault.Unauthenticated, message).WithCode(auth.CodeInvalidOTP).
		WithDetail("attemptsRemaining", jsonvalue.Number(remaining))
	changes := []audit.Change{wrong}
	if remaining <= 0 {
		used := newFailure(ActionVerify, &t.session, &t.challenge, ReasonUsedUp)
		used.Category = audit.SuspiciousActivity
		changes = append(changes, used)
	}
	return s.ports.Trail.RecordChanges(ctx, changes...)
}

func wrongAnswer(m auth.StepUpMethod) string {
	if m == auth.PasskeyMethod {
		return "the passkey is not accepted"
	}
	return "the code is wrong"
}

func errChallenge() error {
	return auth.InvalidField(auth.CodeInvalidInput, "challengeId", "is unknown, used or expired")
}
