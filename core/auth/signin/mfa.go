package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assess"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// MFAPolicy says when a person with an authenticator must give a code (contract A-17, MFA_POLICY).
type MFAPolicy string

// The policies.
const (
	MFAAlways MFAPolicy = "always"
	MFARisk   MFAPolicy = "risk" // when the risk score is above the bound of FULL_TRUST
)

// Answer is what a person sends at the second step of a login.
type Answer struct {
	UserID auth.UserID
	Code   auth.OTP // of the authenticator, or a recovery code
	Visit
}

// VerifyMFA completes a login that waits for its second factor (contract A-18): a session begins,
// its device is confirmed and gets a token.
//
// It needs a login of the same person on the same device, with the right password, within
// MFAPendingTTL. Otherwise it returns fault.Unauthenticated with code invalid_mfa, as for an
// unknown person and for a wrong code, and counts nothing. A wrong code counts as a wrong password
// does, in the same count. The other errors are those of Login. A code is good once, on all
// instances together.
func (s *Service) VerifyMFA(ctx context.Context, in Answer) (Result, error) {
	v := visitor{account: auth.Account{ID: in.UserID}, identity: s.identify(in.Device, in.UserID), second: true}
	leave, err := s.gate.enter(ctx, auth.LockoutKey("mfa:"+string(v.identity)))
	if err != nil {
		return Result{}, err
	}
	defer leave()
	if err := s.resume(ctx, in, &v); err != nil {
		return Result{}, s.refuse(ctx, in.Visit, &v, err)
	}
	return s.guarded(ctx, in.Visit, &v, func() (Result, error) {
		r, err := s.completeMFA(ctx, in, &v)
		if isWrong(err) {
			err = s.disown(ctx, in, &v, err)
		}
		return r, err
	})
}

// disown returns the failure of a wrong answer, and lets it count for nobody where its login no longer waits: of two right
// answers at once the second finds the login or its code taken, and is not a guess.
func (s *Service) disown(ctx context.Context, in Answer, v *visitor, wrong error) error {
	_, err := s.ports.Pending.Find(ctx, in.UserID, v.identity)
	switch {
	case fault.Is(err, fault.NotFound):
		v.known, v.subject = false, ""
	case err != nil:
		return err
	}
	return wrong
}

// resume finds the login that an answer belongs to. Without one the person stays unknown, so that what a stranger sends is
// neither told nor counted to anybody.
func (s *Service) resume(ctx context.Context, in Answer, v *visitor) error {
	p, err := s.ports.Pending.Find(ctx, in.UserID, v.identity)
	if fault.Is(err, fault.NotFound) || err == nil && !p.Open(s.ports.Clock.Now()) {
		return errMFA()
	}
	if err != nil {
		return err
	}
	v.known, v.subject = true, p.Subject
	if err := s.meetAgain(ctx, v, in.DeviceToken); err != nil {
		return err
	}
	// Shown at one of the two steps suffices. A device that was first seen after the first step is another one than showed its
	// token there: that one was revoked meanwhile.
	v.proven = v.proven || p.Proven && !v.device.FirstSeen.After(p.CreatedAt)
	return nil
}

// completeMFA takes the code and makes the session, and whatever goes with it, in one transaction.
func (s *Service) completeMFA(ctx context.Context, in Answer, v *visitor) (Result, error) {
	var r Result
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		now := s.ports.Clock.Now()
		if err := s.admitMFA(ctx, v, in.Code, now); err != nil {
			return err
		}
		err := s.ports.Pending.Take(ctx, in.UserID, v.identity)
		if fault.Is(err, fault.NotFound) {
			return errMFA() // another answer was faster
		}
		if err != nil {
			return err
		}
		var session auth.Session
		if session, r, err = s.begin(ctx, in.Visit, v, now); err != nil {
			return err
		}
		r.DeviceToken, err = devices.Confirm(ctx, devices.Confirmation{
			Devices: s.ports.Devices, Tokens: s.ports.DeviceTokens, Entropy: s.ports.Entropy,
		}, session.DeviceID, now)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if v.fresh {
		s.tell(notices.NewDevice, in.Visit, v)
	}
	return r, nil
}

// admitMFA holds the account for the transaction and takes the code, so that of two answers with one code, on whatever
// instances, one finds it taken.
func (s *Service) admitMFA(ctx context.Context, v *visitor, code auth.OTP, now time.Time) error {
	err := s.ports.Accounts.Update(ctx, v.account.ID, func(a *auth.Account) error {
		switch a.State {
		case auth.AccountDisabled:
			return errMFA()
		case auth.AccountLocked: // before the code is looked at, so that the answer cannot confirm it
			return errLockedByOperator()
		}
		factor, err := s.secondFactor.Take(a, code, now)
		switch {
		case err != nil:
			return err
		case factor == "":
			return errMFA()
		}
		v.factor, v.account = factor, *a
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return errMFA()
	}
	return err
}

// secondFactorDue tells whether a login needs a code before a session begins.
func (s *Service) secondFactorDue(ctx context.Context, from Visit, v *visitor, now time.Time) (bool, error) {
	if !v.account.MFA.Active {
		return false, nil
	}
	if s.config.MFAPolicy == MFAAlways {
		return true, nil
	}
	verdict, err := s.assessor.Assess(ctx, assess.Visit{
		At: now, User: v.account.ID, Address: from.Address, Device: standing(&v.device, v.proven),
	})
	return verdict.Score > s.config.Bounds.Full, err
}

// pend lets a login wait for its second factor. The device is not recorded: that somebody knows a password makes none theirs. The
// count of failures stays as it is: only a complete login resets it.
func (s *Service) pend(ctx context.Context, from Visit, v *visitor, now time.Time) error {
	if err := s.guard.Check(ctx, v.subject); err != nil {
		return err
	}
	err := s.ports.Pending.Put(ctx, auth.PendingLogin{
		UserID: v.account.ID, DeviceIdentity: v.identity, Subject: v.subject, Proven: v.proven,
		CreatedAt: now, ExpiresAt: now.Add(s.config.MFAPendingTTL),
	})
	if err != nil {
		return err
	}
	return s.ports.Trail.Record(ctx, audit.Entry{
		Type: auth.LoginAttempt, UserID: v.account.ID, Success: true, Details: map[string]any{
			"ipAddress": address(from.Address), "deviceIdentity": string(v.identity), "mfaRequired": true,
		},
	})
}

func errMFA() error {
	return fault.New(fault.Unauthenticated, auth.CodeInvalidMFA, "the code is wrong, or no login waits for one: sign in again")
}
