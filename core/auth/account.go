package auth

import "time"

// Email is an e-mail address in its canonical form: trimmed, NFC, lower case (contract A-10).
// ParseEmail returns one.
type Email string

// PasswordHash is an encoded password hash with its algorithm and parameters.
type PasswordHash string

// SealedSecret is a secret encrypted with the deployment's key.
type SealedSecret []byte

// AccountState decides whether a person may sign in.
type AccountState string

// The states of an account. A lock does not end sessions; disabling does (contract A-13).
const (
	AccountInvited  AccountState = "invited" // it has no password until the person accepts the invitation
	AccountActive   AccountState = "active"
	AccountLocked   AccountState = "locked" // by an operator, until unlocked
	AccountDisabled AccountState = "disabled"
)

// HasSignIn reports whether the sign-in knows an account in the state. If not, it returns the errors
// of an unknown person (contract A-13).
func (s AccountState) HasSignIn() bool { return s == AccountActive || s == AccountLocked }

// Account is a person who can sign in, or is invited to.
type Account struct {
	ID           UserID
	Email        Email
	Name         string
	Phone        string // E.164; optional
	PhonePending bool   // an operator has set the number, and the person has entered no code of it yet
	PasswordHash PasswordHash
	Replaced     ReplacedPassword
	State        AccountState
	MFA          MFA
	// AdmittedUntil is until when a password counts although people with the domain of the e-mail
	// address sign in at their company only; usually zero.
	AdmittedUntil time.Time
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// ReplacedPassword is the hash that the last password change replaced, and the time of the change.
// The zero value means that no replaced hash is remembered.
type ReplacedPassword struct {
	Hash PasswordHash
	At   time.Time
}

// replacedFor is how long a replaced password is remembered. It is longer than a request takes.
const replacedFor = time.Minute

// ReplacePassword gives the account another password hash and remembers the present one for a
// minute.
func (a *Account) ReplacePassword(hash PasswordHash, now time.Time) {
	a.Replaced = ReplacedPassword{Hash: a.PasswordHash, At: now}
	a.PasswordHash = hash
}

// LatelyReplaced returns the hash that was replaced within the last minute, or the empty hash.
func (a *Account) LatelyReplaced(now time.Time) PasswordHash {
	if age := now.Sub(a.Replaced.At); age < -replacedFor || age > replacedFor {
		return ""
	}
	return a.Replaced.Hash
}

// ForgetReplaced forgets a replaced password whose minute is over.
func (a *Account) ForgetReplaced(now time.Time) {
	if a.LatelyReplaced(now) == "" {
		a.Replaced = ReplacedPassword{}
	}
}

// MFA is a person's authenticator. The zero value means that the person has no authenticator.
type MFA struct {
	Secret   SealedSecret   // empty: not enrolled
	Active   bool           // activated with a first code
	LastStep int64          // the last time step of an accepted code; a code is valid once
	Recovery []RecoveryHash // of the recovery codes that are left

	Enrolment Enrolment
	Name      string          // empty if the person has not named it
	More      []Authenticator // further ones, in the order of their enrolment
}

// Pending reports whether the authenticator is enrolled and may still be activated.
func (m *MFA) Pending(now time.Time) bool {
	return !m.Active && len(m.Secret) > 0 && m.Enrolment.isOpen(now)
}

// EnrolmentTTL is how long an enrolled authenticator may be activated.
const EnrolmentTTL = 10 * time.Minute

// Enrolment records when an authenticator was enrolled, and by which session. Its zero value is an
// enrolment of a version that did not record it: that authenticator cannot be activated.
type Enrolment struct {
	At        time.Time
	SessionID SessionID // empty when an operator enrolled it
}

func (e Enrolment) isOpen(now time.Time) bool {
	return !e.At.IsZero() && now.Sub(e.At) < EnrolmentTTL
}
