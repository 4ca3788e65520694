// Package credentials changes the password and the authenticator of a person who is signed in.
// Changes by an operator are in package people, logins in package signin.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/locking"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Config holds the settings of credentials.
type Config struct {
	Lockout auth.LockoutPolicy // of wrong passwords and codes; its numbers are positive
	Issuer  auth.Issuer        // the name under which an authenticator lists this service
	// ReauthenticationMaxAge is how long a password or a code counts for a change of the second
	// factor.
	ReauthenticationMaxAge time.Duration
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	if err := c.Lockout.Validate(); err != nil {
		return fmt.Errorf("Lockout.%w", err)
	}
	if c.ReauthenticationMaxAge < time.Second || c.ReauthenticationMaxAge > 24*time.Hour {
		return fmt.Errorf("ReauthenticationMaxAge: %v is not in the range 1s to 24h", c.ReauthenticationMaxAge)
	}
	if issuer := string(c.Issuer); strings.TrimSpace(issuer) == "" || strings.Contains(issuer, ":") {
		return fmt.Errorf("Issuer: %q is empty or contains a colon", issuer)
	}
	return nil
}

// Ports are the dependencies of this package. All stores belong to one adapter, so that a
// transaction spans them.
type Ports struct {
	Accounts    authstore.Accounts
	Sessions    authstore.Sessions
	Pending     authstore.PendingLogins
	Links       authstore.Links
	Lockouts    authstore.Lockouts
	Transaction transaction.Runner

	Passwords secrets.PasswordHasher
	Cache     sessioncache.Cache
	Trail     *auditing.Trail
	Notices   *notices.Notifier
	Clock     clock.Clock
	Entropy   secrets.Entropy
	Root      auth.RootSecret // the keys of this package are derived from it
}

// Service changes the credentials of the caller. Wrong passwords and codes are counted per person,
// separately from those of logins. After too many, every method that checks one returns
// fault.Forbidden with code account_locked and the detail lockoutUntil, for any password or code.
// It is safe for concurrent use.
type Service struct {
	config       Config
	ports        Ports
	guard        *locking.Guard
	secondFactor auth.SecondFactor
	rules        people.PasswordRules
}

// New returns a service. It returns an error if the root secret is too short.
func New(c Config, p Ports) (*Service, error) {
	secondFactor, err := auth.NewSecondFactor(p.Root)
	if err != nil {
		return nil, err
	}
	return &Service{
		config: c, ports: p, guard: locking.New(c.Lockout, p.Lockouts, p.Clock),
		secondFactor: secondFactor, rules: people.NewPasswordRules(),
	}, nil
}

// withLockout calls try unless the caller's changes are locked, and counts a failure if try reports
// a wrong password or code. A success is not counted, see package locking.
func (s *Service) withLockout(ctx context.Context, caller auth.Session, try func() error) error {
	subject := auth.ActsLockout(caller.UserID)
	if err := s.guard.Check(ctx, subject); err != nil {
		return err
	}
	wrong := try()
	if !fault.Is(wrong, fault.Unauthenticated) || errors.Is(wrong, errOutdated) || errors.Is(wrong, errEnded) {
		return wrong
	}
	locked, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (bool, error) {
		locked, err := s.guard.Fail(ctx, subject)
		if err != nil || !locked {
			return false, err
		}
		details := audit.Details{}
		caller.Describe(details)
		return true, s.ports.Trail.RecordChanges(ctx, locking.NewLock(caller.UserID, details))
	})
	if err != nil {
		return err
	}
	if locked {
		s.notifyPerson(notices.ChangesLocked, caller)
	}
	return wrong
}

// AddToken makes a token by do, in one transaction, and sends the person in whose session that is done a
// notice (contract A-64). The error is that of trust.RequireProven or of do.
func (s *Service) AddToken(ctx context.Context, id auth.SessionID, do func(ctx context.Context) (auth.APIToken, error)) error {
	var session auth.Session
	t, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (t auth.APIToken, err error) {
		if session, err = s.ports.Sessions.Get(ctx, id); err == nil {
			err = trust.RequireProven(&session, s.ports.Clock.Now(), s.config.ReauthenticationMaxAge)
		}
		if err != nil {
			return t, err
		}
		return do(ctx)
	})
	if err == nil {
		s.ports.Notices.Notify(notices.Event{
			Kind: notices.TokenAdded, UserID: session.UserID, At: s.ports.Clock.Now(), Address: session.IPAddress,
			DeviceID: session.DeviceID, Token: t.Describe(),
		})
	}
	return err
}

// notifyPerson sends the caller a notice of a change. It must be called after the change is stored.
func (s *Service) notifyPerson(kind notices.Kind, caller auth.Session) {
	s.ports.Notices.Notify(notices.Event{
		Kind: kind, UserID: caller.UserID, At: s.ports.Clock.Now(), Address: caller.IPAddress,
		DeviceID: caller.DeviceID,
	})
}

// change is a change of an account in the audit log.
type change struct {
	action audit.Action
	name   *string // of the authenticator; nil without one
}

// changeAccount calls alter with the caller's account, calls do, and writes an audit event, in one
// transaction. It returns the error of requireSession if the session must not change credentials.
func (s *Service) changeAccount(
	ctx context.Context, caller auth.Session, what *change,
	alter func(*auth.Account) error, do func(ctx context.Context, session auth.Session) error,
) error {
	return s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		err := s.ports.Accounts.Update(ctx, caller.UserID, func(a *auth.Account) error {
			a.UpdatedAt = s.ports.Clock.Now()
			return alter(a)
		})
		if err != nil {
			return err
		}
		session, err := s.requireSession(ctx, caller.ID)
		if err != nil {
			return err
		}
		if err := do(ctx, session); err != nil {
			return err
		}
		details := audit.Details{"trustLevel": audit.Text(auth.FullTrust.String())}
		if what.name != nil {
			details["name"] = audit.Text(*what.name)
		}
		caller.Describe(details)
		return s.ports.Trail.RecordChanges(ctx, audit.Change{
			Category: audit.CredentialChange, Action: what.action, Subject: audit.Subject(caller.UserID), Details: details,
		})
	})
}

// errEnded is the cause of the error for a session that has ended in the meantime. It is not a
// guess, and not counted.
var errEnded = errors.New("the session has ended")

// requireSession reads the caller's session again, in the transaction that locks the account,
// because the caller may be a cached copy from before the session ended or was lowered. It returns
// fault.Unauthenticated with code invalid_token for a session that has ended, and fault.Forbidden
// with code insufficient_trust below FULL_TRUST.
func (s *Service) requireSession(ctx context.Context, id auth.SessionID) (auth.Session, error) {
	session, err := s.ports.Sessions.Get(ctx, id)
	switch {
	case err != nil:
		return auth.Session{}, err
	case !session.Active(s.ports.Clock.Now()):
		return auth.Session{}, fault.Wrap(fault.Unauthenticated, "the session has ended", errEnded).
			WithCode(auth.CodeInvalidToken)
	}
	return session, trust.Require(session.TrustLevel, auth.FullTrust)
}

// recordAuthentication records that the person has just given a password or a code in the session.
func (s *Service) recordAuthentication(ctx context.Context, id auth.SessionID) error {
	return s.ports.Sessions.Update(ctx, id, func(stored *auth.Session) error {
		stored.ReauthenticatedAt = s.ports.Clock.Now()
		return nil
	})
}

// endOthers ends the other sessions of the caller, resets the count of failures and ends the logins
// that wait for a second factor. It returns the sessions that ended; drop their copies after the
// transaction.
func (s *Service) endOthers(ctx context.Context, caller auth.Session, reason auth.EndReason) ([]auth.SessionID, error) {
	if err := s.guard.Clear(ctx, auth.ActsLockout(caller.UserID)); err != nil {
		return nil, err
	}
	if err := s.ports.Pending.RemoveAll(ctx, caller.UserID); err != nil {
		return nil, err
	}
	others := authstore.SessionFilter{UserID: caller.UserID, Except: caller.ID}
	return s.ports.Sessions.End(ctx, others, s.ports.Clock.Now(), reason)
}
