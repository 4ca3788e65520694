package signin

import (
	"context"
	"encoding/hex"
	"errors"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Visit is where a person signs in from.
type Visit struct {
	Device      auth.DeviceInfo
	DeviceToken auth.DeviceSecret // empty when none is shown
	Address     netip.Addr
}

// Login is what a person sends to sign in.
type Login struct {
	Email    auth.Email
	Password auth.Password
	Visit
}

// visitor is who knocks, as far as it is known before the password is looked at.
type visitor struct {
	account  auth.Account // of an unknown or disabled person only the id, a decoy
	known    bool
	identity auth.DeviceIdentity
	device   auth.Device // the zero value when the person has none of that identity
	proven   bool        // the device shows its token, or need not
	subject  auth.LockoutKey
	second   bool        // at the second step
	factor   auth.Factor // what the person proved themself with at the second step
	fresh    bool        // this sign-in made the device
}

// userID returns the id for the audit log.
func (v *visitor) userID() auth.UserID {
	if !v.known {
		return ""
	}
	return v.account.ID
}

// Login begins a session. If a second factor is due it begins none yet: the result says so, and
// VerifyMFA completes the login.
//
// fault.Unauthenticated with code invalid_credentials for an unknown or disabled person and for a
// wrong password alike (contract A-14). fault.Forbidden with code account_locked and the detail
// lockoutUntil after too many failures, whatever the password (contract A-15), and for the right
// password while an operator's lock lasts, so that only who knows the password learns of that lock
// (contract A-13). fault.Unavailable when the records are away or too many passwords are being
// verified.
func (s *Service) Login(ctx context.Context, in Login) (Result, error) {
	leave, err := s.gate.enter(ctx, auth.EmailLockout(s.lockoutKey, in.Email))
	if err != nil {
		return Result{}, err
	}
	defer leave()
	v, err := s.recognise(ctx, in)
	if err != nil {
		return Result{}, err
	}
	return s.guarded(ctx, in.Visit, &v, func() (Result, error) { return s.enter(ctx, in, &v) })
}

// guarded tries unless the subject is locked, and counts a try that was wrong. A right one is not counted at all, see lockout.
func (s *Service) guarded(ctx context.Context, from Visit, v *visitor, try func() (Result, error)) (Result, error) {
	err := s.guard.Check(ctx, v.subject)
	if err == nil {
		var r Result
		if r, err = try(); err == nil {
			return r, nil
		}
	}
	return Result{}, s.refuse(ctx, from, v, err)
}

// maxVerifications is how often a login verifies its password where the stored hash is changed at the same time.
const maxVerifications = 3

// enter checks the password and, if it is right, begins the session. A hash that was stored meanwhile is verified too: another
// login may have renewed it.
func (s *Service) enter(ctx context.Context, in Login, v *visitor) (Result, error) {
	for range maxVerifications {
		stale, err := s.verify(ctx, v, in.Password)
		if err != nil {
			return Result{}, err
		}
		r, err := s.complete(ctx, in.Visit, v)
		switch {
		case errors.Is(err, errHashChanged):
			continue
		case err == nil && stale:
			s.rehash(ctx, v, in.Password)
		}
		return r, err
	}
	return Result{}, fault.New(fault.Unavailable, "", "the password is being changed, try again").After(time.Second)
}

// recognise reads the account and the device. It reads as much for a person who is not known as for one who is.
func (s *Service) recognise(ctx context.Context, in Login) (visitor, error) {
	v := visitor{subject: auth.EmailLockout(s.lockoutKey, in.Email)}
	account, err := s.ports.Accounts.ByEmail(ctx, in.Email)
	switch {
	case err == nil && account.State != auth.AccountDisabled:
		v.account, v.known = account, true
	case err == nil || fault.Is(err, fault.NotFound):
		sum := s.lockoutKey.Sum("decoy " + string(in.Email))
		v.account.ID = auth.NewUUID[auth.UserID]([16]byte(sum[:16]))
	default:
		return visitor{}, err
	}
	v.identity = s.identify(in.Device, v.account.ID)
	if err := s.meetAgain(ctx, &v, in.DeviceToken); err != nil {
		return visitor{}, err
	}
	if v.known && v.device.Confirmed && v.proven {
		v.subject = auth.DeviceLockout(v.device.ID)
	}
	return v, nil
}

// identify returns the identity of a device as it is stored and shown. It is keyed: whoever knows a password sees the identities
// of the person's devices, and could else find the four fields of a confirmed one by trying likely ones against its hash, without
// ever asking us, and then sign in as that device.
func (s *Service) identify(d auth.DeviceInfo, user auth.UserID) auth.DeviceIdentity {
	sum := s.identityKey.Sum(string(d.Identity(user)))
	return auth.DeviceIdentity(hex.EncodeToString(sum[:]))
}

// meetAgain reads the device of a visitor, and whether it proves itself.
func (s *Service) meetAgain(ctx context.Context, v *visitor, shown auth.DeviceSecret) (err error) {
	v.device, err = s.ports.Devices.Find(ctx, v.account.ID, v.identity)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	v.proven, err = s.proves(ctx, v.device.ID, shown)
	return err
}

// proves reports whether a device token is one of the device, or no token is required
// (contract A-37, DEVICE_BINDING).
func (s *Service) proves(ctx context.Context, device auth.DeviceID, secret auth.DeviceSecret) (bool, error) {
	if s.config.DeviceBinding == trust.BindingOff {
		return true, nil
	}
	if secret == "" {
		return false, nil
	}
	token, err := s.ports.DeviceTokens.Find(ctx, auth.HashSecret(secret))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && device != "" && token.DeviceID == device, err
}

// verify compares the password, at the same cost whether or not there is an account. stale reports that it is right and its hash
// is weaker than the settings demand.
func (s *Service) verify(ctx context.Context, v *visitor, p auth.Password) (stale bool, err error) {
	var match bool
	if v.known {
		match, stale, err = s.ports.Passwords.Verify(ctx, v.account.PasswordHash, p)
	} else {
		err = s.ports.Passwords.VerifyNone(ctx, p)
	}
	if err == nil && !match {
		err = errCredentials()
	}
	return stale, err
}

// rehash hashes a password anew and stores it in the place of the hash that was verified. It is called after the login has
// succeeded, so that the time it takes says nothing about the password of a login that is refused. Whatever fails here is left to
// the next login.
func (s *Service) rehash(ctx context.Context, v *visitor, p auth.Password) {
	renewed, err := s.ports.Passwords.Hash(ctx, p)
	if err != nil {
		return
	}
	_ = s.ports.Accounts.Update(ctx, v.account.ID, func(a *auth.Account) error { // the login is good without it
		if a.PasswordHash == v.account.PasswordHash {
			a.PasswordHash = renewed
		}
		return nil
	})
}

// codeOf returns the code of a fault, and none for any other error.
func codeOf(err error) fault.Code {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	return ""
}

// isWrong reports whether a login was refused for what it showed.
func isWrong(err error) bool {
	code := codeOf(err)
	return code == auth.CodeInvalidCredentials || code == auth.CodeInvalidMFA
}

// isLocked reports whether a login was refused whatever it showed.
func isLocked(err error) bool { return codeOf(err) == auth.CodeAccountLocked }

// stepMFA tells in the audit log that an entry is about the second step of a login.
const stepMFA = "mfa"

// refuse returns what a login that failed with an error gets: a wrong password or code is counted first, unless there is no
// subject to count it for, and may turn out to be refused as locked. Refused logins are written to the audit log.
func (s *Service) refuse(ctx context.Context, from Visit, v *visitor, why error) error {
	if isWrong(why) && v.subject != "" {
		err := s.fail(ctx, from, v, why)
		switch {
		case err == nil:
			return why
		case !isLocked(err):
			return err
		}
		why = err
	}
	if !isWrong(why) && !isLocked(why) {
		return why
	}
	if err := s.ports.Trail.Record(ctx, refusal(auth.LoginAttempt, from, v, codeOf(why))); err != nil {
		return err
	}
	return why
}

// fail counts a failure and writes it, and the lock that it led to, to the audit log, in one transaction.
func (s *Service) fail(ctx context.Context, from Visit, v *visitor, why error) error {
	var filled, unrecorded bool
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) (err error) {
		unrecorded = false // a retried transaction begins anew
		if filled, err = s.guard.Fail(ctx, v.subject); err != nil {
			return err
		}
		entries := []audit.Entry{refusal(auth.LoginAttempt, from, v, codeOf(why))}
		if filled {
			entries = append(entries, refusal(auth.SuspiciousActivity, from, v, auth.CodeAccountLocked))
		}
		err = s.ports.Trail.Record(ctx, entries...)
		unrecorded = err != nil
		return err
	})
	if unrecorded { // guesses are bounded whatever becomes of the audit log
		_, counted := s.guard.Fail(ctx, v.subject)
		return errors.Join(err, counted)
	}
	if err == nil && filled && v.known {
		s.tell(notices.SignInLocked, from, v)
	}
	return err
}

// refusal returns the audit entry of a refused login.
func refusal(kind auth.EventType, from Visit, v *visitor, reason fault.Code) audit.Entry {
	details := map[string]any{
		"ipAddress": address(from.Address), "deviceIdentity": string(v.identity), "reason": string(reason),
	}
	if v.second {
		details["step"] = stepMFA
	}
	return audit.Entry{Type: kind, UserID: v.userID(), Details: details}
}

// tell has the person told of what happened at a sign-in, after it is stored.
func (s *Service) tell(k notices.Kind, from Visit, v *visitor) {
	kind := clientOf(from.Device.UserAgent())
	s.ports.Notices.Tell(notices.Happening{
		Kind: k, UserID: v.account.ID, At: s.ports.Clock.Now(), Address: from.Address, Browser: kind.browser, OS: kind.os,
	})
}

// address returns an address for the audit log; empty when it is not known.
func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// complete makes the session, or lets the login wait for its second factor, and whatever goes with it, in one transaction.
func (s *Service) complete(ctx context.Context, from Visit, v *visitor) (Result, error) {
	var r Result
	err := s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		now := s.ports.Clock.Now()
		v.fresh = false // a retried transaction begins anew
		if err := s.admit(ctx, v); err != nil {
			return err
		}
		due, err := s.secondFactorDue(ctx, from, v, now)
		if err != nil {
			return err
		}
		if due {
			r = Result{UserID: v.account.ID, MFARequired: true}
			return s.pend(ctx, from, v, now)
		}
		_, r, err = s.begin(ctx, from, v, now)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if v.fresh {
		s.tell(notices.NewDevice, from, v)
	}
	return r, nil
}

// begin resets the count of failures, opens a session and gives it its tokens.
func (s *Service) begin(ctx context.Context, from Visit, v *visitor, now time.Time) (auth.Session, Result, error) {
	if err := s.guard.Clear(ctx, v.subject); err != nil {
		return auth.Session{}, Result{}, err
	}
	opened, err := s.open(ctx, from, v, now)
	if err != nil {
		return auth.Session{}, Result{}, err
	}
	r, err := s.issue(ctx, &opened, now)
	return opened, r, err
}

// errHashChanged is the failure of a login whose password was verified against a hash that is no longer the account's.
var errHashChanged = errors.New("the password hash was changed")

// admit holds the account for the transaction, so that disabling it and this login come one after the other. It returns
// errHashChanged when the verified hash was replaced, and then v has the new one.
func (s *Service) admit(ctx context.Context, v *visitor) error {
	locked := false
	err := s.ports.Accounts.Update(ctx, v.account.ID, func(a *auth.Account) error {
		switch {
		case a.State == auth.AccountDisabled:
			return errCredentials()
		case a.State == auth.AccountLocked:
			locked = true
			return errLockedByOperator()
		case a.PasswordHash != v.account.PasswordHash:
			v.account.PasswordHash = a.PasswordHash
			return errHashChanged
		}
		a.ForgetReplaced(s.ports.Clock.Now())
		v.account.MFA = a.MFA
		return nil
	})
	if locked { // the answer gives out that the password was right
		if full := s.guard.Check(ctx, v.subject); full != nil {
			return full
		}
		return err
	}
	if fault.Is(err, fault.NotFound) {
		return errCredentials()
	}
	return err
}
