package passkeys

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

// The details of events.
const (
	detailPasskey = "passkeyId"
	detailName    = "name"
)

// BeginRegistration begins the registration of a passkey of the caller. It returns the errors of
// trust.RequireProven, and fault.Conflict if the person has auth.MaxPasskeys.
func (s *Service) BeginRegistration(
	ctx context.Context, caller auth.Session, party webauthn.Party,
) (Started, error) {
	session, err := s.ports.Sessions.Get(ctx, caller.ID)
	if err == nil {
		err = trust.RequireProven(&session, s.ports.Clock.Now(), s.ReauthenticationMaxAge)
	}
	if err != nil {
		return Started{}, err
	}
	account, err := s.ports.Accounts.Get(ctx, caller.UserID)
	if err != nil {
		return Started{}, err
	}
	all, err := s.ports.Passkeys.Of(ctx, caller.UserID)
	if err != nil {
		return Started{}, err
	}
	if len(all) >= auth.MaxPasskeys {
		return Started{}, errTooMany()
	}
	started, err := s.start(party, ceremony{Session: caller.ID})
	started.Handle, started.Person = s.handle(caller.UserID), account
	for _, p := range all {
		started.Credentials = append(started.Credentials, p.Credential)
	}
	return started, err
}

// Register stores the passkey that an authenticator has made. The error is fault.Invalid with code
// validation_error for a wrong name and for whatever is wrong with the answer (contract K-4), and
// fault.Conflict if the passkey exists or the person has auth.MaxPasskeys. The other errors are
// those of BeginRegistration.
func (s *Service) Register(ctx context.Context, caller auth.Session, in Answer, name string) (auth.Passkey, error) {
	name, err := auth.ParsePasskeyName(name)
	if err != nil {
		return auth.Passkey{}, err
	}
	ceremony, err := s.take(ctx, in.Ceremony, caller.ID)
	var c auth.Credential
	if err == nil && len(in.Response) > auth.MaxCredential {
		err = errRefused()
	}
	if err == nil {
		c, err = s.ports.Verifier.Register(webauthn.Expected{
			Party: in.Party, Challenge: ceremony.challenge(), Handle: s.handle(caller.UserID),
		}, in.Response)
	}
	if fault.Is(err, fault.Unauthenticated) {
		err = auth.InvalidField(auth.CodeValidation, "credential", "is not accepted: begin again")
	}
	if err != nil {
		return auth.Passkey{}, err
	}
	p := auth.Passkey{
		ID: secrets.NewUUID[auth.PasskeyID](s.ports.Entropy), UserID: caller.UserID, Name: name, Credential: c,
		CreatedAt: s.ports.Clock.Now(),
	}
	_, err = s.change(ctx, caller, "passkey_add", func(ctx context.Context, _ auth.Account, session auth.Session) (auth.Passkey, error) {
		// What the beginning needed counts for the end too.
		if err := trust.RequireRecent(&session, p.CreatedAt, s.ReauthenticationMaxAge+auth.PasskeyTTL); err != nil {
			return p, err
		}
		all, err := s.ports.Passkeys.Of(ctx, caller.UserID)
		if err == nil && len(all) >= auth.MaxPasskeys {
			err = errTooMany()
		}
		if err != nil {
			return p, err
		}
		return p, s.ports.Passkeys.Add(ctx, p)
	})
	if err == nil {
		s.notify(notices.PasskeyAdded, caller)
	}
	return p, err
}

// Rename gives a passkey of the caller another name. It returns fault.NotFound for a passkey of
// somebody else too.
func (s *Service) Rename(
	ctx context.Context, caller auth.Session, id auth.PasskeyID, name string,
) (auth.Passkey, error) {
	name, err := auth.ParsePasskeyName(name)
	if err != nil {
		return auth.Passkey{}, err
	}
	rename := func(ctx context.Context, _ auth.Account, _ auth.Session) (p auth.Passkey, err error) {
		err = s.ports.Passkeys.Update(ctx, id, func(stored *auth.Passkey) error {
			if stored.UserID != caller.UserID {
				return auth.NotFound("passkey")
			}
			stored.Name = name
			p = *stored
			return nil
		})
		return p, err
	}
	return s.change(ctx, caller, "passkey_rename", rename)
}

// Remove removes a passkey of the caller and returns it, and ends the caller's other sessions (contract
// It returns fault.Conflict if it is the person's only way to sign in.
func (s *Service) Remove(ctx context.Context, caller auth.Session, id auth.PasskeyID) (auth.Passkey, error) {
	var ended []auth.SessionID
	removed, err := s.change(ctx, caller, "passkey_remove", func(ctx context.Context, a auth.Account, _ auth.Session) (p auth.Passkey, _ error) {
		all, err := s.ports.Passkeys.Of(ctx, caller.UserID)
		if err != nil {
			return p, err
		}
		n := slices.IndexFunc(all, func(one auth.Passkey) bool { return one.ID == id })
		if n < 0 {
			return p, auth.NotFound("passkey")
		}
		p = all[n]
		if err := s.checkOtherWay(ctx, &a, slices.Delete(all, n, n+1)); err != nil {
			return p, err
		}
		if err := s.ports.Passkeys.Remove(ctx, caller.UserID, id); err != nil {
			return p, err
		}
		if err := s.ports.Pending.RemoveAll(ctx, caller.UserID); err != nil {
			return p, err
		}
		ended, err = s.ports.Sessions.End(ctx, authstore.SessionFilter{UserID: caller.UserID, Except: caller.ID},
			s.ports.Clock.Now(), auth.EndSecondFactor)
		return p, err
	})
	if err == nil {
		s.ports.Cache.Drop(ctx, ended...)
		s.notify(notices.PasskeyRemoved, caller)
	}
	return removed, err
}

// checkOtherWay returns fault.Conflict if a person with these passkeys cannot sign in.
func (s *Service) checkOtherWay(ctx context.Context, a *auth.Account, rest []auth.Passkey) error {
	linked, err := s.ports.Identities.Of(ctx, a.ID)
	if err != nil {
		return err
	}
	all, err := s.ports.Providers.List(ctx)
	if err == nil && !(company.Ways{Account: *a, Identities: linked, Passkeys: rest}).Any(all, s.PasswordsOff) {
		err = fault.New(fault.Conflict, "this passkey is your only way to sign in: add another one or set a password first")
	}
	return err
}

// change calls do and records the act, in one transaction that locks the account. It reads the
// session again, because the caller may be a cached copy.
func (s *Service) change(
	ctx context.Context, caller auth.Session, action audit.Action,
	do func(ctx context.Context, a auth.Account, session auth.Session) (auth.Passkey, error),
) (auth.Passkey, error) {
	return transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (p auth.Passkey, err error) {
		var account auth.Account
		err = s.ports.Accounts.Update(ctx, caller.UserID, func(a *auth.Account) error { account = *a; return nil })
		if err != nil {
			return p, err
		}
		session, err := s.ports.Sessions.Get(ctx, caller.ID)
		if err == nil && !session.Active(s.ports.Clock.Now()) {
			err = fault.New(fault.Unauthenticated, "the session has ended").WithCode(auth.CodeInvalidToken)
		}
		if err == nil {
			err = trust.Require(session.TrustLevel, auth.FullTrust)
		}
		if err == nil {
			p, err = do(ctx, account, session)
		}
		if err != nil {
			return p, err
		}
		details := audit.Details{detailPasskey: audit.Text(p.ID), detailName: audit.Text(p.Name)}
		session.Describe(details)
		return p, s.ports.Trail.RecordChanges(ctx, audit.Change{
			Category: audit.CredentialChange, Action: action, Subject: audit.Subject(caller.UserID), Details: details,
		})
	})
}

func (s *Service) notify(kind notices.Kind, caller auth.Session) {
	s.ports.Notices.Notify(notices.Event{
		Kind: kind, UserID: caller.UserID, At: s.ports.Clock.Now(), Address: caller.IPAddress, DeviceID: caller.DeviceID,
	})
}

func errTooMany() error {
	return fault.Newf(fault.Conflict, "a person has at most %d passkeys: remove one first", auth.MaxPasskeys)
}
