package signin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// LoginByPasskey begins a session for the person of a passkey. The error is fault.Unauthenticated with
// code invalid_credentials for whatever is wrong with the answer, the passkey or the account (contract
// K-4); it is recorded and counts against no lock (contract K-8). The other errors are those of Start.
// The device is that of passkeys.Service.BeginSignIn.
func (s *Service) LoginByPasskey(ctx context.Context, in passkeys.Answer, from Origin) (Result, error) {
	device, user, err := s.ports.Passkeys.CheckSignIn(ctx, in)
	if err == nil {
		from.Device, err = auth.NewDeviceInfo(device)
	}
	var r Result
	if err == nil {
		r, err = s.startPasskey(ctx, from, user)
	}
	if fault.Is(err, fault.Unauthenticated) {
		err = s.refusePasskey(ctx, from, user)
	}
	return r, err
}

// startPasskey begins a session for a person whose passkey was checked, which counts as password
// and second factor in one (contract K-6). It ignores the lock after failures. It returns
// fault.Unauthenticated if the account has no sign-in, an operator has locked it, or the person's
// company has not confirmed them for too long.
func (s *Service) startPasskey(ctx context.Context, from Origin, user auth.UserID) (Result, error) {
	return s.Start(ctx, from, func(ctx context.Context) (Admitted, error) {
		person := Admitted{Factor: auth.FactorPasskey}
		err := s.ports.Accounts.Update(ctx, user, func(a *auth.Account) error {
			if person.Account = *a; a.State != auth.AccountActive {
				return errPasskey()
			}
			return nil
		})
		if fault.Is(err, fault.NotFound) {
			err = errPasskey()
		}
		if err == nil {
			err = s.bindCompany(ctx, &person)
		}
		return person, err
	})
}

// bindCompany makes the session of a person with an identity of a provider one that came from there:
// it ends with the others, and at the latest when a session at the provider ends that began when the
// provider last confirmed the person. It returns fault.Unauthenticated after that (contract K-9).
func (s *Service) bindCompany(ctx context.Context, person *Admitted) error {
	linked, err := s.ports.Identities.Of(ctx, person.Account.ID)
	if err != nil || len(linked) == 0 {
		return err
	}
	all, err := s.ports.Providers.List(ctx)
	if err != nil {
		return err
	}
	found := false
	person.Until = s.ports.Clock.Now()
	for _, i := range linked {
		for k := range all {
			if all[k].Issuer != i.Issuer {
				continue
			}
			found = true
			if ends := i.ConfirmedAt.Add(all[k].MaxSession); !i.ConfirmedAt.IsZero() && ends.After(person.Until) {
				person.Login = company.Login{IdentityID: i.ID, Provider: all[k].Name, AnsweredAt: i.ConfirmedAt}
				person.Until = ends
			}
		}
	}
	switch {
	case !found:
		person.Until = time.Time{}
		return nil
	case person.Login.Provider == "":
		return errPasskey()
	}
	person.Login.ID = secrets.NewUUID[company.LoginID](s.ports.Entropy)
	return nil
}

// refusePasskey records a passkey that was refused, and returns the error for it. The user is empty
// if the passkey is not known.
func (s *Service) refusePasskey(ctx context.Context, from Origin, user auth.UserID) error {
	if err := s.recordRefused(ctx, from, user, "factor", audit.Text(auth.FactorPasskey)); err != nil {
		return err
	}
	return errPasskey()
}

// RecordCode records a code for a command that was refused. The user is empty if the code is not known.
func (s *Service) RecordCode(ctx context.Context, from Origin, user auth.UserID) error {
	return s.recordRefused(ctx, from, user, "method", "browser")
}

// recordRefused records a refused sign-in without a password, with a detail that says by what.
func (s *Service) recordRefused(
	ctx context.Context, from Origin, user auth.UserID, detail string, by audit.Text,
) error {
	attempt := loginAttempt{account: auth.Account{ID: user}, accountKnown: user != ""}
	if user != "" {
		attempt.identity = s.deviceIdentity(from.Device, user)
	}
	change := newRefusal(from, &attempt, auth.CodeInvalidCredentials)
	change.Details[detail] = by
	return s.ports.Trail.RecordChanges(ctx, change)
}

func errPasskey() error {
	return fault.New(fault.Unauthenticated, "the passkey is not accepted").WithCode(auth.CodeInvalidCredentials)
}
