package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// StartPasskey begins a session for a person whose passkey was checked, which counts as password
// and second factor in one (contract K-6). It ignores the lock after failures. It returns
// fault.Unauthenticated if the account has no sign-in, an operator has locked it, or the person's
// company has not confirmed them for too long.
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
		now := s.ports.Clock.Now()
		if err == nil {
			err = s.bindCompany(ctx, &attempt, now)
		}
		if err != nil {
			return step{}, err
		}
		session, newDevice, err := s.createSession(ctx, from, &attempt, now)
		if err != nil {
			return step{}, err
		}
		r, err := s.issueTokens(ctx, &session, &attempt, now)
		return step{r, newDevice}, err
	})
}

// bindCompany makes the session of a person with an identity of a provider one that came from there:
// it ends with the others, and at the latest when a session at the provider ends that began when the
// provider last confirmed the person. It returns fault.Unauthenticated after that (contract K-9).
func (s *Service) bindCompany(ctx context.Context, attempt *loginAttempt, now time.Time) error {
	linked, err := s.ports.Identities.Of(ctx, attempt.account.ID)
	if err != nil || len(linked) == 0 {
		return err
	}
	all, err := s.ports.Providers.List(ctx)
	if err != nil {
		return err
	}
	found, login, until := false, company.Login{}, now
	for _, i := range linked {
		for k := range all {
			if all[k].Issuer != i.Issuer {
				continue
			}
			found = true
			if ends := i.ConfirmedAt.Add(all[k].MaxSession); !i.ConfirmedAt.IsZero() && ends.After(until) {
				login = company.Login{IdentityID: i.ID, Provider: all[k].Name, AnsweredAt: i.ConfirmedAt}
				until = ends
			}
		}
	}
	switch {
	case !found:
		return nil
	case login.Provider == "":
		return errPasskey()
	}
	login.ID = secrets.NewUUID[company.LoginID](s.ports.Entropy)
	attempt.company = auth.CompanyLogin{ID: string(login.ID), Until: until}
	return s.ports.Logins.Add(ctx, login)
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
	if err := s.ports.Trail.RecordChanges(ctx, change); err != nil {
		return err
	}
	return errPasskey()
}

func errPasskey() error {
	return fault.New(fault.Unauthenticated, "the passkey is not accepted").WithCode(auth.CodeInvalidCredentials)
}
