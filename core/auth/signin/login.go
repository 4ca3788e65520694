package signin

import (
	"context"
	"encoding/hex"
	"errors"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/locking"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Origin is the device and the address that a person signs in from.
type Origin struct {
	Device      auth.DeviceInfo
	DeviceToken auth.DeviceSecret // optional
	Address     netip.Addr
}

// Login is what a person sends to sign in.
type Login struct {
	Email    auth.Email
	Password auth.Password
	Origin
}

// loginAttempt is a login that is being processed.
type loginAttempt struct {
	account      auth.Account // if sign-in does not know the account, only its ID is set, to a decoy
	accountKnown bool
	identity     auth.DeviceIdentity
	device       auth.Device     // the zero value if the account has no device of that identity
	deviceProven bool            // the request has the device's token, or no token is required
	subject      auth.LockoutKey // failures are counted for it; empty if they are not counted
	secondStep   bool            // this is the second step, VerifyMFA
	factor       auth.Factor     // the second factor that was accepted
	trustDevice  bool            // the person marks the device as TRUSTED with that factor
	noHistory    bool            // the counts of the history could not be read or written
	company      auth.CompanyLogin
	login        company.Login   // of company, while it is not stored
	proof        company.Proof   // of the provider; zero after a password
	most         auth.TrustLevel // that the session gets at most; zero without a limit
}

// userID returns the user ID for the audit log. It is empty if the account is not known.
func (attempt *loginAttempt) userID() auth.UserID {
	if !attempt.accountKnown {
		return ""
	}
	return attempt.account.ID
}

// Login checks the password and begins a session. If a second factor is required, it begins no
// session and returns a result with MFARequired; VerifyMFA completes the login.
//
// The error is fault.Unauthenticated with code invalid_credentials for an unknown or disabled
// account and for a wrong password (contract A-14). It is fault.Forbidden with code account_locked
// and the detail lockoutUntil after too many failures, for any password (contract A-15), and for
// the right password while an operator has locked the account, so that only a caller who knows the
// password learns of that lock (contract A-13), and with code company_sign_in_required if a provider
// of the domain is enforced (contract A-77). It is fault.Unavailable if the database is not
// available or too many passwords are being verified.
func (s *Service) Login(ctx context.Context, in Login) (Result, error) {
	admitted, err := s.checkPasswordAllowed(ctx, in)
	if err != nil {
		return Result{}, err
	}
	leave, err := s.queues.waitTurn(ctx, auth.EmailLockout(s.lockoutKey, in.Email))
	if err != nil {
		return Result{}, err
	}
	defer leave()
	attempt, err := s.findAccount(ctx, in)
	if err != nil {
		return Result{}, err
	}
	r, err := s.withLockout(ctx, in.Origin, &attempt, func() (Result, error) { return s.attemptLogin(ctx, in, &attempt) })
	if err == nil && admitted {
		s.notifyOperators(ctx, in.Origin)
	}
	return r, err
}

// withLockout calls try unless the subject of the attempt is locked, and counts a failure if try
// reports a wrong password or code. It does not count a success; see package locking.
func (s *Service) withLockout(
	ctx context.Context, from Origin, attempt *loginAttempt, try func() (Result, error),
) (Result, error) {
	err := s.guard.Check(ctx, attempt.subject)
	if err == nil {
		var r Result
		if r, err = try(); err == nil {
			return r, nil
		}
	}
	return Result{}, s.handleFailure(ctx, from, attempt, err)
}

// maxVerifications is the maximum number of hashes that a login verifies its password against. It
// verifies more than one only if the stored hash changes in the meantime.
const maxVerifications = 3

// attemptLogin checks the password and, if it is right, completes the login. If the stored hash has
// changed in the meantime, it verifies the new one too, because another login may have renewed the
// hash of the same password.
func (s *Service) attemptLogin(ctx context.Context, in Login, attempt *loginAttempt) (Result, error) {
	for range maxVerifications {
		stale, err := s.checkPassword(ctx, attempt, in.Password)
		if err != nil {
			return Result{}, err
		}
		r, err := s.completeLogin(ctx, in.Origin, attempt)
		switch {
		case errors.Is(err, errHashChanged):
			continue
		case err == nil && stale:
			s.renewPasswordHash(ctx, attempt, in.Password)
		}
		return r, err
	}
	return Result{}, fault.New(fault.Unavailable, "the password is being changed, try again in a second").
		After(time.Second)
}

// findAccount returns a login attempt with its account and device. It makes the same reads whether
// or not the account exists, so that its duration does not reveal that.
func (s *Service) findAccount(ctx context.Context, in Login) (loginAttempt, error) {
	attempt := loginAttempt{subject: auth.EmailLockout(s.lockoutKey, in.Email)}
	account, err := s.ports.Accounts.ByEmail(ctx, in.Email)
	switch {
	case err == nil && account.State.HasSignIn() && account.PasswordHash != "":
		attempt.account, attempt.accountKnown = account, true
	case err == nil || fault.Is(err, fault.NotFound):
		sum := s.lockoutKey.Sum("decoy " + string(in.Email))
		attempt.account.ID = auth.NewUUID[auth.UserID]([16]byte(sum[:16]))
	default:
		return loginAttempt{}, err
	}
	attempt.identity = s.deviceIdentity(in.Device, attempt.account.ID)
	if err := s.loadDevice(ctx, &attempt, in.DeviceToken); err != nil {
		return loginAttempt{}, err
	}
	if attempt.accountKnown && attempt.device.Confirmed && attempt.deviceProven {
		attempt.subject = auth.DeviceLockout(attempt.device.ID)
	}
	return attempt, nil
}

// deviceIdentity returns the identity of a device as it is stored and shown. It is a keyed hash: an
// attacker who knows the password sees the identities of the person's devices. With a plain hash
// the attacker could find the four fields of a confirmed device offline, by trying likely values,
// and then sign in as that device.
func (s *Service) deviceIdentity(d auth.DeviceInfo, user auth.UserID) auth.DeviceIdentity {
	sum := s.identityKey.Sum(string(d.Identity(user)))
	return auth.DeviceIdentity(hex.EncodeToString(sum[:]))
}

// loadDevice sets the device of an attempt and whether the device token is valid for it.
func (s *Service) loadDevice(ctx context.Context, attempt *loginAttempt, shown auth.DeviceSecret) (err error) {
	attempt.device, err = s.ports.Devices.Find(ctx, attempt.account.ID, attempt.identity)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	attempt.deviceProven, err = s.hasValidDeviceToken(ctx, attempt.device.ID, shown)
	return err
}

// hasValidDeviceToken reports whether a device token belongs to the device, or no token is required
// (contract A-37).
func (s *Service) hasValidDeviceToken(
	ctx context.Context, device auth.DeviceID, secret auth.DeviceSecret,
) (bool, error) {
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

// checkPassword returns errCredentials if the password is wrong or there is no account, at the same
// cost in both cases. stale reports that the password is right and its hash is weaker than the
// settings require.
func (s *Service) checkPassword(ctx context.Context, attempt *loginAttempt, p auth.Password) (stale bool, err error) {
	var match bool
	if attempt.accountKnown {
		match, stale, err = s.ports.Passwords.Verify(ctx, attempt.account.PasswordHash, p)
	} else {
		err = s.ports.Passwords.VerifyNone(ctx, p)
	}
	if err == nil && !match {
		err = errCredentials()
	}
	return stale, err
}

// renewPasswordHash hashes a password with the current settings and replaces the hash that was
// verified. It is called after the login has succeeded, so that its duration says nothing about the
// password of a refused login. Errors are ignored: the next login tries again.
func (s *Service) renewPasswordHash(ctx context.Context, attempt *loginAttempt, p auth.Password) {
	renewed, err := s.ports.Passwords.Hash(ctx, p)
	if err != nil {
		return
	}
	_ = s.ports.Accounts.Update(ctx, attempt.account.ID, func(a *auth.Account) error { // the login succeeds without it
		if a.PasswordHash == attempt.account.PasswordHash {
			a.PasswordHash = renewed
		}
		return nil
	})
}

// faultCode returns the code of a fault, and the empty code for any other error.
func faultCode(err error) fault.Code {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	return ""
}

// isWrongSecret reports whether a login was refused because of its password or code.
func isWrongSecret(err error) bool {
	code := faultCode(err)
	return code == auth.CodeInvalidCredentials || code == auth.CodeInvalidMFA
}

// isLocked reports whether a login was refused because of a lock.
func isLocked(err error) bool { return faultCode(err) == auth.CodeAccountLocked }

// handleFailure returns the error to send for a login that failed with why. It counts a wrong
// password or code, unless the attempt has no subject, and returns the error of the lock instead of
// why if the subject is locked already. It writes refused logins to the audit log.
func (s *Service) handleFailure(ctx context.Context, from Origin, attempt *loginAttempt, why error) error {
	if isWrongSecret(why) && attempt.subject != "" {
		err := s.recordFailure(ctx, from, attempt, why)
		switch {
		case err == nil:
			return why
		case !isLocked(err):
			return err
		}
		why = err
	}
	if !isWrongSecret(why) && !isLocked(why) {
		return why
	}
	if err := s.ports.Trail.RecordChanges(ctx, newRefusal(from, attempt, faultCode(why))); err != nil {
		return err
	}
	return why
}

// recordFailure counts a failure and writes it to the audit log, in one transaction. If the failure
// locks the subject, it also writes the lock to the audit log and notifies the person. It returns
// the error of a lock if the subject was already locked.
func (s *Service) recordFailure(ctx context.Context, from Origin, attempt *loginAttempt, why error) error {
	nowLocked, err := transaction.Do(ctx, s.ports.Transaction, func(ctx context.Context) (locked bool, err error) {
		if locked, err = s.guard.Fail(ctx, attempt.subject); err != nil {
			return false, err
		}
		changes := []audit.Change{newRefusal(from, attempt, faultCode(why))}
		if locked {
			changes = append(changes, locking.NewLock(attempt.userID(), attemptDetails(from, attempt)))
		}
		if err := s.ports.Trail.RecordChanges(ctx, changes...); err != nil {
			return false, unrecordedError{err}
		}
		return locked, nil
	})
	if errors.As(err, new(unrecordedError)) { // guesses are limited even if the audit log fails
		_, countErr := s.guard.Fail(ctx, attempt.subject)
		return errors.Join(err, countErr)
	}
	if err == nil && nowLocked && attempt.accountKnown {
		s.notifyPerson(notices.SignInLocked, from, attempt)
	}
	return err
}

// unrecordedError is the error of the audit log for a failure that is therefore not counted.
type unrecordedError struct{ error }

// Unwrap returns the error of the audit log.
func (e unrecordedError) Unwrap() error { return e.error }

// notifyPerson sends the person a notice about a sign-in. It must be called after the event is
// stored.
func (s *Service) notifyPerson(k notices.Kind, from Origin, attempt *loginAttempt) {
	agent := parseUserAgent(from.Device.UserAgent())
	s.ports.Notices.Notify(notices.Event{
		Kind: k, UserID: attempt.account.ID, At: s.ports.Clock.Now(), Address: from.Address, Browser: agent.browser,
		OS: agent.os,
	})
}

// completeLogin begins the session, or stores the pending login if a second factor is required, in
// one transaction.
func (s *Service) completeLogin(ctx context.Context, from Origin, attempt *loginAttempt) (Result, error) {
	return s.atomically(ctx, from, attempt, func(ctx context.Context) (step, error) {
		if err := s.checkAccountState(ctx, attempt); err != nil {
			return step{}, err
		}
		return s.startOrWait(ctx, from, attempt)
	})
}

// startOrWait begins the session, or stores the pending login if a second factor is required.
func (s *Service) startOrWait(ctx context.Context, from Origin, attempt *loginAttempt) (step, error) {
	now := s.ports.Clock.Now()
	mfaRequired, err := s.needsSecondFactor(ctx, from, attempt, now)
	if err != nil {
		return step{}, err
	}
	if mfaRequired {
		return step{Result: Result{UserID: attempt.account.ID, MFARequired: true}},
			s.newPendingLogin(ctx, from, attempt, now)
	}
	return s.startSession(ctx, from, attempt, now)
}

// step is the result of a step of a login.
type step struct {
	Result

	newDevice bool // the login has created the device
}

// atomically runs do in a transaction, and then notifies the person of a new device. If only the
// history fails, it runs do again without the history: a person must not be kept out because the
// counts cannot be read (contract A-60).
func (s *Service) atomically(
	ctx context.Context, from Origin, attempt *loginAttempt, do func(ctx context.Context) (step, error),
) (Result, error) {
	done, err := transaction.Do(ctx, s.ports.Transaction, do)
	if failed := (*assessment.HistoryError)(nil); errors.As(err, &failed) && ctx.Err() == nil {
		attempt.noHistory = true
		done, err = transaction.Do(ctx, s.ports.Transaction, do)
	}
	if done.newDevice {
		s.notifyPerson(notices.NewDevice, from, attempt)
	}
	return done.Result, err
}

// startSession resets the count of failures, if there is a subject, and creates a session with its
// tokens.
func (s *Service) startSession(ctx context.Context, from Origin, attempt *loginAttempt, now time.Time) (step, error) {
	if attempt.subject != "" {
		if err := s.guard.Clear(ctx, attempt.subject); err != nil {
			return step{}, err
		}
	}
	session, newDevice, err := s.createSession(ctx, from, attempt, now)
	if err != nil {
		return step{}, err
	}
	r, err := s.issueTokens(ctx, &session, attempt, now)
	return step{r, newDevice}, err
}

// errHashChanged reports that the password was verified against a hash that the account no longer
// has.
var errHashChanged = errors.New("the password hash was changed")

// checkAccountState returns an error if the account is disabled, or locked by an operator. It locks
// the row of the account until the transaction ends, so that the state cannot change during it. If
// the verified hash was replaced, it sets the new hash in the attempt and returns errHashChanged.
func (s *Service) checkAccountState(ctx context.Context, attempt *loginAttempt) error {
	locked := false
	err := s.ports.Accounts.Update(ctx, attempt.account.ID, func(a *auth.Account) error {
		switch {
		case !a.State.HasSignIn():
			return errCredentials()
		case a.State == auth.AccountLocked:
			locked = true
			return errLockedByOperator()
		case a.PasswordHash != attempt.account.PasswordHash:
			attempt.account.PasswordHash = a.PasswordHash
			return errHashChanged
		}
		a.ForgetReplaced(s.ports.Clock.Now())
		attempt.account.MFA = a.MFA
		return nil
	})
	if locked {
		// The error of an operator's lock reveals that the password was right. After too many
		// failures it must not: then the error is that of the failures.
		if lockoutErr := s.guard.Check(ctx, attempt.subject); lockoutErr != nil {
			return lockoutErr
		}
		return err
	}
	if fault.Is(err, fault.NotFound) {
		return errCredentials()
	}
	return err
}
