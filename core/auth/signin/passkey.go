package signin

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// StartPasskey begins a session for a person whose passkey was checked, which counts as password
// and second factor in one (contract K-6). It ignores the lock after failures. It returns
// fault.Unauthenticated if the account has no sign-in or an operator has locked it.
func (s *Service) StartPasskey(ctx context.Context, from Origin, user auth.UserID) (Result, error) {
	attempt := loginAttempt{accountKnown: true, factor: auth.FactorPasskey, identity: s.deviceIdentity(from.Device, user)}
	return s.atomically(ctx, from, &attempt, func(ctx context.Context) (step, error) {
		err := s.ports.Accounts.Update(ctx, user, func(a *auth.Account) error {
			if attempt.account = *a; a.State != auth.AccountActive {
				return errPasskey()
			}
			return nil
		})
		if fault.Is(err, fault.NotFound) {
			err = errPasskey()
		}
		if err == nil {
			err = s.loadDevice(ctx, &attempt, from.DeviceToken)
		}
		if err != nil {
			return step{}, err
		}
		now := s.ports.Clock.Now()
		session, newDevice, err := s.createSession(ctx, from, &attempt, now)
		if err != nil {
			return step{}, err
		}
		r, err := s.issueTokens(ctx, &session, &attempt, now)
		return step{r, newDevice}, err
	})
}

// RefusePasskey records a passkey that was refused, and returns the error for it. The user is empty
// if the passkey is not known.
func (s *Service) RefusePasskey(ctx context.Context, from Origin, user auth.UserID) error {
	attempt := loginAttempt{account: auth.Account{ID: user}, accountKnown: user != ""}
	if user != "" {
		attempt.identity = s.deviceIdentity(from.Device, user)
	}
	change := newRefusal(from, &attempt, auth.CodeInvalidCredentials)
	change.Details["factor"] = audit.Text(auth.FactorPasskey)
	return cmp.Or(s.ports.Trail.RecordChanges(ctx, change), errPasskey())
}

func errPasskey() error {
	return fault.New(fault.Unauthenticated, "the passkey is not accepted").WithCode(auth.CodeInvalidCredentials)
}
