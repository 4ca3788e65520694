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
	fills    bool        // this login locks the subject unless it succeeds
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

// Login begins a session. Where a second factor is due none begins yet: the result says so, and VerifyMFA completes the login.
//
// fault.Unauthenticated with code invalid_credentials for an unknown or disabled person and for a wrong password alike;
// fault.Forbidden with code account_locked and the detail lockoutUntil, whatever the password, after too many failures and while
// an operator's lock lasts; fault.Unavailable when the records are away or too many passwords are being verified (decisions 2.2).
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
	if v.account.State == auth.AccountLocked { // the password is not looked at, so the answer cannot confirm it
		return Result{}, s.refuse(ctx, in.Visit, &v, errLockedByOperator())
	}
	return s.guarded(ctx, in.Visit, &v, func() (Result, error) { return s.enter(ctx, in, &v) })
}

// guarded counts a failure before it tries, and lets it stand where the try is refused. The count is a transaction of its own, and
// not the one of the audit events: between the two a password is hashed, for which no transaction may wait, and parallel guesses
// have to see the count meanwhile. So a crash between them, or an audit log that takes nothing, loses the events and never the
// count.
func (s *Service) guarded(ctx context.Context, from Visit, v *visitor, try func() (Result, error)) (r Result, err error) {
	if v.fills, err = s.guard.Reserve(ctx, v.subject); err != nil {
		return Result{}, s.refuse(ctx, from, v, err)
	}
	r, err = try()
	switch {
	case err == nil:
		return r, nil
	case isRefusal(err):
		return Result{}, s.refuse(ctx, from, v, err)
	}
	return Result{}, errors.Join(err, s.guard.GiveBack(ctx, v.subject)) // a failure of the service is none of the person
}

// enter checks the password and, if it is right, begins the session.
func (s *Service) enter(ctx context.Context, in Login, v *visitor) (Result, error) {
	renewed, err := s.verify(ctx, v, in.Password)
	if err != nil {
		return Result{}, err
	}
	return s.complete(ctx, in.Visit, v, renewed)
}

// recognise reads the account and the device. It reads as much for a person who is not known as for one who is.
func (s *Service) recognise(ctx context.Context, in Login) (visitor, error) {
	v := visitor{subject: auth.EmailLockout(s.lockoutKey, in.Email)}
	account, err := s.records.Accounts.ByEmail(ctx, in.Email)
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
	v.device, err = s.records.Devices.Find(ctx, v.account.ID, v.identity)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	v.proven, err = s.proves(ctx, v.device.ID, shown)
	return err
}

// proves tells whether a device token is one of the device, or none is asked for (decisions 2.4, DEVICE_BINDING).
func (s *Service) proves(ctx context.Context, device auth.DeviceID, secret auth.DeviceSecret) (bool, error) {
	if s.config.DeviceBinding == trust.BindingOff {
		return true, nil
	}
	if secret == "" {
		return false, nil
	}
	token, err := s.records.DeviceTokens.Find(ctx, auth.HashSecret(secret))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && device != "" && token.DeviceID == device, err
}

// verify compares the password, at the same cost whether or not there is an account. renewed is a new hash where the stored one
// is stale, else empty.
func (s *Service) verify(ctx context.Context, v *visitor, p auth.Password) (renewed auth.PasswordHash, err error) {
	var match, stale bool
	if v.known {
		match, stale, err = s.crypto.Passwords.Verify(ctx, v.account.PasswordHash, p)
	} else {
		err = s.crypto.Passwords.VerifyNone(ctx, p)
	}
	switch {
	case err != nil:
		return "", err
	case !match:
		return "", errCredentials()
	case stale:
		return s.rehash(ctx, p)
	}
	return "", nil
}

// rehash hashes a password anew. A hasher too busy for it is no reason to refuse a person: the next login tries again.
func (s *Service) rehash(ctx context.Context, p auth.Password) (auth.PasswordHash, error) {
	renewed, err := s.crypto.Passwords.Hash(ctx, p)
	if fault.Is(err, fault.Unavailable) {
		return "", nil
	}
	return renewed, err
}

// isRefusal tells a login that was refused from one that the service failed to handle.
func isRefusal(err error) bool {
	f, ok := fault.As(err)
	return ok && (f.Code == auth.CodeInvalidCredentials || f.Code == auth.CodeInvalidMFA || f.Code == auth.CodeAccountLocked)
}

// stepMFA tells in the audit log that an entry is about the second step of a login.
const stepMFA = "mfa"

// refuse writes a refused login to the audit log, and the lock that it led to, and returns why it was refused.
func (s *Service) refuse(ctx context.Context, from Visit, v *visitor, why error) error {
	f, ok := fault.As(why)
	if !ok || !isRefusal(why) {
		return why
	}
	tell := func(t auth.EventType, reason string) audit.Entry {
		details := map[string]any{
			"ipAddress": address(from.Address), "deviceIdentity": string(v.identity), "reason": reason,
		}
		if v.second {
			details["step"] = stepMFA
		}
		return audit.Entry{Type: t, UserID: v.userID(), Details: details}
	}
	entries := []audit.Entry{tell(auth.LoginAttempt, string(f.Code))}
	if v.fills {
		entries = append(entries, tell(auth.SuspiciousActivity, string(auth.CodeAccountLocked)))
	}
	if err := s.world.Trail.Record(ctx, entries...); err != nil {
		return err
	}
	if v.fills && v.known {
		s.tell(notices.SignInLocked, from, v)
	}
	return why
}

// tell has the person told of what happened at a sign-in, after it is stored.
func (s *Service) tell(k notices.Kind, from Visit, v *visitor) {
	kind := clientOf(from.Device.UserAgent())
	s.world.Notices.Tell(notices.Happening{
		Kind: k, UserID: v.account.ID, At: s.world.Clock.Now(), Address: from.Address, Browser: kind.browser, OS: kind.os,
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
func (s *Service) complete(ctx context.Context, from Visit, v *visitor, renewed auth.PasswordHash) (Result, error) {
	var r Result
	err := s.records.Transaction.Atomically(ctx, func(ctx context.Context) error {
		now := s.world.Clock.Now()
		v.fresh = false // a retried transaction begins anew
		if err := s.admit(ctx, v, renewed); err != nil {
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

// begin opens a session, which ends the count of failures, and gives it its tokens.
func (s *Service) begin(ctx context.Context, from Visit, v *visitor, now time.Time) (auth.Session, Result, error) {
	opened, err := s.open(ctx, from, v, now)
	if err != nil {
		return auth.Session{}, Result{}, err
	}
	if err := s.guard.Clear(ctx, v.subject); err != nil {
		return auth.Session{}, Result{}, err
	}
	r, err := s.issue(ctx, &opened, now)
	return opened, r, err
}

// admit holds the account for the transaction, so that disabling it and this login come one after the other, and stores a
// renewed hash.
func (s *Service) admit(ctx context.Context, v *visitor, renewed auth.PasswordHash) error {
	err := s.records.Accounts.Update(ctx, v.account.ID, func(a *auth.Account) error {
		switch {
		case a.State == auth.AccountDisabled:
			return errCredentials()
		case a.State == auth.AccountLocked:
			return errLockedByOperator()
		case a.PasswordHash != v.account.PasswordHash:
			return fault.New(fault.Unavailable, "", "the password is being changed, try again").After(time.Second)
		case renewed != "":
			a.PasswordHash = renewed
		}
		v.account.MFA = a.MFA
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return errCredentials()
	}
	return err
}
