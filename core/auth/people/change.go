package people

import (
	"cmp"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// accountChange is a change of an account by an operator.
type accountChange struct {
	category  audit.Category // empty for audit.AccountChange
	action    audit.Action
	condition func(context.Context) error // called before alter; optional
	alter     func(*auth.Account) error
	after     func(context.Context, *auth.Account) error // called after alter; optional
	endReason auth.EndReason                             // of all sessions; empty: sessions do not end
	notice    notices.Kind                               // that the person gets; optional
	byPerson  bool                                       // the person does it, by a link
	sparing   bool                                       // there is no event if it changes nothing
}

// Lock prevents a person from signing in until Unlock. Active sessions stay. Every method of this
// file returns fault.NotFound for an address without an account.
func (s *Service) Lock(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email, accountChange{action: "lock", alter: toState(auth.AccountLocked, auth.AccountActive)})
}

// Unlock ends the lock of an operator and the locks caused by failed sign-ins.
func (s *Service) Unlock(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email, accountChange{
		action: "unlock", after: s.liftLocks, alter: toState(auth.AccountActive, auth.AccountLocked),
	})
}

// Disable ends a person's sessions and disables the account. Sign-in then returns the errors of an
// unknown person (contract A-13).
func (s *Service) Disable(ctx context.Context, email auth.Email) error {
	disable := func(a *auth.Account) error {
		a.State = auth.AccountDisabled
		return nil
	}
	return s.changeAccount(ctx, email, accountChange{
		action: "disable", endReason: auth.EndDisabled, after: s.dropLinks, alter: disable,
	})
}

// Enable lets a disabled person sign in again. One who has no password yet is invited again.
func (s *Service) Enable(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email, accountChange{action: "enable", alter: func(a *auth.Account) error {
		if a.State == auth.AccountDisabled && a.PasswordHash == "" {
			a.State = auth.AccountInvited
			return nil
		}
		return toState(auth.AccountActive, auth.AccountDisabled)(a)
	}})
}

// The bounds of BreakGlass.
const (
	MinBreakGlass = 5 * time.Minute
	MaxBreakGlass = 24 * time.Hour
)

// BreakGlass admits a person's password for a time, although people with the domain of the e-mail
// address sign in at their company only. It returns fault.Invalid for a time out of range.
func (s *Service) BreakGlass(ctx context.Context, email auth.Email, lasts time.Duration) error {
	if lasts < MinBreakGlass || lasts > MaxBreakGlass {
		return fault.New(fault.Invalid, "for must be a duration from 5m to 24h")
	}
	until := s.ports.Clock.Now().Add(lasts)
	return s.changeAccount(ctx, email, accountChange{
		action: "break_glass", alter: func(a *auth.Account) error {
			a.AdmittedUntil = until
			return nil
		},
	})
}

// Profile is what SetProfile changes; nil fields stay.
type Profile struct {
	Name  *string // 1 to 200 characters
	Phone *string // E.164; empty removes it
	Sure  bool    // an operator at the shell says so: the number is a factor at once
	// Condition is called in the transaction, before the change. It is optional.
	Condition func(ctx context.Context) error
}

// Action returns the action of the change in the audit log.
func (p Profile) Action() audit.Action {
	if p.Name == nil && p.Phone != nil {
		return "phone"
	}
	return "profile"
}

// SetProfile changes the name and the telephone number of a person, which is no factor until the person
// has entered a code that was sent to it (contract A-92). The error is fault.Invalid with
// the field if one breaks a rule.
func (s *Service) SetProfile(ctx context.Context, email auth.Email, p Profile) error {
	var person auth.UserID // whose telephone number changes
	change := accountChange{action: p.Action(), condition: p.Condition, sparing: true}
	change.alter = func(a *auth.Account) (err error) {
		if p.Name != nil {
			if a.Name, err = ParseName(*p.Name); err != nil {
				return err
			}
		}
		if p.Phone != nil {
			if a.Phone != *p.Phone {
				person, a.PhonePending = a.ID, true
			}
			a.Phone, a.PhonePending = *p.Phone, a.PhonePending && *p.Phone != "" && !p.Sure
			err = CheckPhone(a.Phone)
		}
		return err
	}
	err := s.changeAccount(ctx, email, change)
	if err == nil && person != "" {
		s.ports.Notices.Notify(notices.Event{Kind: notices.PhoneChanged, UserID: person, At: s.ports.Clock.Now()})
	}
	return err
}

// SetPassword sets a person's password, and ends their sessions and their logins that wait for a
// second factor.
func (s *Service) SetPassword(ctx context.Context, email auth.Email, p auth.Password) error {
	a, err := s.ByEmail(ctx, email)
	if err != nil {
		return err
	}
	hash, err := s.HashPassword(ctx, "password", p, &a)
	if err != nil {
		return err
	}
	return s.changeAccount(ctx, email, accountChange{
		category: audit.CredentialChange, action: "password", after: s.dropLogins, endReason: auth.EndPassword,
		alter: func(a *auth.Account) error {
			SetHash(a, hash)
			return nil
		},
	})
}

// SetHash gives an account a password that replaces the present one at once. The account of an
// invited person becomes active.
func SetHash(a *auth.Account, hash auth.PasswordHash) {
	a.PasswordHash, a.Replaced = hash, auth.ReplacedPassword{}
	if a.State == auth.AccountInvited {
		a.State = auth.AccountActive
	}
}

// toState sets the state of an account to to. It returns fault.Conflict if the state is neither to nor
// from.
func toState(to, from auth.AccountState) func(*auth.Account) error {
	return func(a *auth.Account) error {
		if a.State != to && a.State != from {
			return fault.Newf(fault.Conflict, "the account is %s", a.State)
		}
		a.State = to
		return nil
	}
}

// changeAccount applies a change to an account and writes an audit event, in one transaction. The
// error is fault.Conflict with code last_operator if no active person could operate any more.
func (s *Service) changeAccount(ctx context.Context, email auth.Email, what accountChange) error {
	var changed auth.Account
	ended, err := transaction.Do(ctx, s.ports.Transaction,
		func(ctx context.Context) (ended []auth.SessionID, err error) {
			err = authstore.KeepOperator(ctx, s.ports.Operators, func(ctx context.Context) (err error) {
				changed, ended, err = s.alterAccount(ctx, email, what)
				return err
			})
			return ended, err
		})
	if err != nil {
		return err
	}
	s.ports.Cache.Drop(ctx, ended...)
	if what.notice != "" {
		s.ports.Notices.Notify(notices.Event{Kind: what.notice, UserID: changed.ID, At: s.ports.Clock.Now()})
	}
	return nil
}

// alterAccount is changeAccount within its transaction. It returns the account before the change,
// and the sessions that ended.
func (s *Service) alterAccount(
	ctx context.Context, email auth.Email, what accountChange,
) (a auth.Account, ended []auth.SessionID, err error) {
	if a, err = s.ByEmail(ctx, email); err != nil {
		return a, nil, err
	}
	if what.condition != nil {
		if err := what.condition(ctx); err != nil {
			return a, nil, err
		}
	}
	details := audit.Details{}
	err = s.ports.Accounts.Update(ctx, a.ID, func(stored *auth.Account) error {
		before := newObject(stored)
		stored.UpdatedAt = s.ports.Clock.Now()
		err := what.alter(stored)
		details = audit.Changing(details, before, newObject(stored))
		return err
	})
	if err != nil {
		return a, nil, err
	}
	if what.sparing && details[audit.DetailChanges] == nil {
		return a, nil, nil
	}
	if what.after != nil {
		if err := what.after(ctx, &a); err != nil {
			return a, nil, err
		}
	}
	change := audit.Change{
		Category: cmp.Or(what.category, audit.AccountChange), Action: what.action, Subject: audit.Subject(a.ID), ByOperator: true, Details: details,
	}
	if what.byPerson {
		ctx = auditing.ByPerson(ctx, a.ID)
	}
	if what.endReason != "" {
		if ended, err = s.ports.Sessions.End(ctx, authstore.SessionFilter{UserID: a.ID}, s.ports.Clock.Now(),
			what.endReason); err != nil {
			return a, nil, err
		}
		details["sessionsInvalidated"] = audit.Number(len(ended))
	}
	return a, ended, s.ports.Trail.RecordChanges(ctx, change)
}

// newObject returns a person as the audit log shows a change.
func newObject(a *auth.Account) audit.Object {
	return audit.Object{Kind: "person", Key: string(a.Email), Fields: audit.Details{
		"name": audit.Text(a.Name), "phone": audit.Text(a.Phone), "state": audit.Text(a.State),
		"secondFactor": audit.Flag(a.MFA.Active),
	}}
}

// lockoutKeys returns the subjects of the failed attempts of a person.
func (s *Service) lockoutKeys(ctx context.Context, a *auth.Account) ([]auth.LockoutKey, error) {
	devices, err := auth.AllPages(func(page auth.PageRequest) ([]auth.Device, int, error) {
		return s.ports.Devices.List(ctx, a.ID, page)
	})
	keys := []auth.LockoutKey{auth.EmailLockout(s.lockoutKey, a.Email), auth.ActsLockout(a.ID)}
	for i := range devices {
		keys = append(keys, auth.DeviceLockout(devices[i].ID))
	}
	return keys, err
}

// LockedUntil returns when the last lock ends that failed attempts of a person have caused; zero if
// there is none now.
func (s *Service) LockedUntil(ctx context.Context, a *auth.Account) (until time.Time, err error) {
	keys, err := s.lockoutKeys(ctx, a)
	if err != nil {
		return until, err
	}
	for _, key := range keys {
		l, err := s.ports.Lockouts.Get(ctx, key)
		if err != nil {
			return until, err
		}
		if l.Locked(s.ports.Clock.Now()) && l.LockedUntil.After(until) {
			until = l.LockedUntil
		}
	}
	return until, nil
}

func (s *Service) liftLocks(ctx context.Context, a *auth.Account) error {
	keys, err := s.lockoutKeys(ctx, a)
	if err != nil {
		return err
	}
	for _, key := range keys {
		err := s.ports.Lockouts.Update(ctx, key, func(l *auth.Lockout) error {
			*l = auth.Lockout{}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// EnrolMFA gives a person an authenticator, which ActivateMFA must activate within
// auth.EnrolmentTTL. It replaces one that is not active. The error is fault.Conflict if one is
// active, and fault.NotFound for an address without an account.
func (s *Service) EnrolMFA(ctx context.Context, email auth.Email) (auth.TOTPSecret, error) {
	secret, nonce := secrets.NewTOTPSecret(s.ports.Entropy), secrets.NewNonce(s.ports.Entropy)
	err := s.changeAccount(ctx, email,
		accountChange{category: audit.CredentialChange, action: "mfa_enrol", alter: func(a *auth.Account) error {
			return s.secondFactor.Enrol(a, secret, nonce, auth.Enrolment{At: s.ports.Clock.Now()})
		}})
	return secret, err
}

// ActivateMFA activates an authenticator of EnrolMFA with a code of it, and returns the recovery
// codes. The error is fault.Unauthenticated with code invalid_mfa for a wrong code, fault.Conflict
// if there is no authenticator to activate or the person enrolled it, and fault.NotFound for an
// address without an account.
func (s *Service) ActivateMFA(ctx context.Context, email auth.Email, code auth.OTP) ([]auth.OTP, error) {
	recovery := secrets.NewRecoveryCodes(s.ports.Entropy)
	err := s.changeAccount(ctx, email, accountChange{
		category: audit.CredentialChange, action: "mfa_activate", after: s.dropPending,
		alter: func(a *auth.Account) error {
			return s.secondFactor.Activate(a, code, recovery, "", s.ports.Clock.Now())
		},
	})
	if err != nil {
		return nil, err
	}
	return recovery, nil
}

// DisableMFA removes the authenticator and recovery codes of a person who has lost both, ends their
// sessions, and sends them a notice. The error is fault.Conflict if there is no authenticator, and fault.NotFound for an address without an
// account.
func (s *Service) DisableMFA(ctx context.Context, email auth.Email) error {
	return s.changeAccount(ctx, email,
		accountChange{category: audit.CredentialChange, action: "mfa_disable", after: s.dropPending,
			endReason: auth.EndSecondFactor, notice: notices.AuthenticatorRemoved,
			alter: func(a *auth.Account) error {
				if len(a.MFA.Secret) == 0 {
					return fault.New(fault.Conflict, "there is no authenticator")
				}
				a.MFA = auth.MFA{}
				return nil
			}})
}

// dropLinks removes the links of a person.
func (s *Service) dropLinks(ctx context.Context, a *auth.Account) error {
	return s.ports.Links.RemoveAll(ctx, a.ID, auth.LinkInvitation, auth.LinkReset)
}

// dropLogins ends the logins that wait for a second factor, and removes the links.
func (s *Service) dropLogins(ctx context.Context, a *auth.Account) error {
	if err := s.dropPending(ctx, a); err != nil {
		return err
	}
	return s.dropLinks(ctx, a)
}

// dropPending ends the logins that wait for a second factor.
func (s *Service) dropPending(ctx context.Context, a *auth.Account) error {
	return s.ports.Pending.RemoveAll(ctx, a.ID)
}
