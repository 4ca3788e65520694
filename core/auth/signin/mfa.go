package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// MFAPolicy decides when a person with an authenticator must enter a code (contract A-17).
type MFAPolicy string

// The policies.
const (
	MFAAlways MFAPolicy = "always"
	MFARisk   MFAPolicy = "risk" // when the risk score is above the bound of FULL_TRUST
)

// MFAAnswer is what a person sends at the second step of a login.
type MFAAnswer struct {
	UserID auth.UserID
	Code   auth.OTP // of the authenticator, or a recovery code
	Origin

	TrustDevice bool // marks the device as TRUSTED (contract A-38)
}

// VerifyMFA completes a login that waits for its second factor (contract A-18): a session begins,
// its device is confirmed and gets a token. After a code of the authenticator the session is at
// FULL_TRUST, as after a step-up, unless the score says HIGH_RISK.
//
// It requires a login of the same person on the same device, with the right password, within
// MFAPendingTTL. Without one it returns fault.Unauthenticated with code invalid_mfa, as for an
// unknown person and for a wrong code, and counts no failure. A wrong code is counted together with
// wrong passwords. The other errors are those of Login. A code is valid once across all instances.
func (s *Service) VerifyMFA(ctx context.Context, in MFAAnswer) (Result, error) {
	attempt := loginAttempt{
		account: auth.Account{ID: in.UserID}, identity: s.deviceIdentity(in.Device, in.UserID), secondStep: true,
		trustDevice: in.TrustDevice,
	}
	leave, err := s.queues.waitTurn(ctx, auth.LockoutKey("mfa:"+string(attempt.identity)))
	if err != nil {
		return Result{}, err
	}
	defer leave()
	if err := s.resumeLogin(ctx, in, &attempt); err != nil {
		return Result{}, s.handleFailure(ctx, in.Origin, &attempt, err)
	}
	return s.withLockout(ctx, in.Origin, &attempt, func() (Result, error) {
		r, err := s.completeMFA(ctx, in, &attempt)
		if isWrongSecret(err) {
			err = s.forgetCompletedLogin(ctx, in, &attempt, err)
		}
		return r, err
	})
}

// forgetCompletedLogin returns wrong. If the pending login is gone, it clears the account and the
// subject of the attempt, so that the failure is not counted: of two simultaneous requests with the
// right code, the second finds the login or the code taken and is not a guess.
func (s *Service) forgetCompletedLogin(ctx context.Context, in MFAAnswer, attempt *loginAttempt, wrong error) error {
	_, err := s.ports.Pending.Find(ctx, in.UserID, attempt.identity)
	switch {
	case fault.Is(err, fault.NotFound):
		attempt.accountKnown, attempt.subject = false, ""
	case err != nil:
		return err
	}
	return wrong
}

// resumeLogin loads the pending login of an attempt. If it does not exist, it returns errWrongCode
// and leaves the account unknown, so that the attempt is not recorded or counted for any account.
func (s *Service) resumeLogin(ctx context.Context, in MFAAnswer, attempt *loginAttempt) error {
	p, err := s.ports.Pending.Find(ctx, in.UserID, attempt.identity)
	if fault.Is(err, fault.NotFound) || err == nil && !p.Open(s.ports.Clock.Now(), s.config.MFAPendingTTL) {
		return errWrongCode()
	}
	if err != nil {
		return err
	}
	attempt.accountKnown, attempt.subject, attempt.company = true, p.Subject, p.Company
	if err := s.loadDevice(ctx, attempt, in.DeviceToken); err != nil {
		return err
	}
	// The device token is required at one of the two steps only. A device that was first seen after
	// the first step is not the device of that token, which was revoked in the meantime.
	attempt.deviceProven = attempt.deviceProven || p.Proven && !attempt.device.FirstSeen.After(p.CreatedAt)
	return nil
}

// completeMFA uses up the code, begins the session and confirms the device, in one transaction.
func (s *Service) completeMFA(ctx context.Context, in MFAAnswer, attempt *loginAttempt) (Result, error) {
	return s.atomically(ctx, in.Origin, attempt, func(ctx context.Context) (step, error) {
		now := s.ports.Clock.Now()
		if err := s.takeSecondFactor(ctx, attempt, in.Code, now); err != nil {
			return step{}, err
		}
		err := s.ports.Pending.Take(ctx, in.UserID, attempt.identity)
		if fault.Is(err, fault.NotFound) {
			return step{}, errWrongCode() // another request was faster
		}
		if err != nil {
			return step{}, err
		}
		return s.startSession(ctx, in.Origin, attempt, now)
	})
}

// takeSecondFactor checks the state of the account and uses up the code. It locks the row of the
// account for the transaction, so that of two requests with one code only one succeeds, also on
// different instances.
func (s *Service) takeSecondFactor(ctx context.Context, attempt *loginAttempt, code auth.OTP, now time.Time) error {
	err := s.ports.Accounts.Update(ctx, attempt.account.ID, func(a *auth.Account) error {
		switch {
		case !a.State.HasSignIn():
			return errWrongCode()
		case a.State == auth.AccountLocked: // checked before the code, so that the response cannot confirm the code
			return errLockedByOperator()
		}
		factor, err := s.secondFactor.Take(a, code, now)
		switch {
		case err != nil:
			return err
		case factor == "":
			return errWrongCode()
		}
		attempt.factor, attempt.account = factor, *a
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return errWrongCode()
	}
	return err
}

// needsSecondFactor reports whether a login needs a code before a session begins.
func (s *Service) needsSecondFactor(
	ctx context.Context, from Origin, attempt *loginAttempt, now time.Time,
) (bool, error) {
	if !attempt.account.MFA.Active || attempt.factor != "" {
		return false, nil
	}
	if s.config.MFAPolicy == MFAAlways {
		return true, nil
	}
	verdict, err := s.assessor.Assess(ctx, assessment.SignIn{
		At: now, User: attempt.account.ID, Address: from.Address,
		Device: deviceTrust(&attempt.device, attempt.deviceProven),
		Info:   from.Device, WithoutHistory: attempt.noHistory,
	})
	return verdict.Conspicuous, err
}

// newPendingLogin stores a login that waits for its second factor. It does not record the device,
// because a password alone does not prove who owns it, and does not reset the count of failures,
// which only a complete login does.
func (s *Service) newPendingLogin(ctx context.Context, from Origin, attempt *loginAttempt, now time.Time) error {
	if err := s.guard.Check(ctx, attempt.subject); err != nil {
		return err
	}
	if attempt.login.ID != "" {
		if err := s.ports.Logins.Add(ctx, attempt.login); err != nil {
			return err
		}
	}
	err := s.ports.Pending.Put(ctx, auth.PendingLogin{
		UserID: attempt.account.ID, DeviceIdentity: attempt.identity, Subject: attempt.subject,
		Proven: attempt.deviceProven, Company: attempt.company,
		CreatedAt: now, ExpiresAt: now.Add(s.config.MFAPendingTTL),
	})
	if err != nil {
		return err
	}
	return s.ports.Trail.RecordChanges(ctx, newFirstStep(from, attempt))
}

func errWrongCode() error {
	return fault.New(fault.Unauthenticated, "the code is wrong or too old: enter a new one, or sign in again").
		WithCode(auth.CodeInvalidMFA)
}
