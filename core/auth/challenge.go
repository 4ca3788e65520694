package auth

import "time"

// StepUpMethod is how a one-time code reaches a person.
type StepUpMethod string

// The step-up methods (contract A-41).
const (
	EmailOTP         StepUpMethod = "EMAIL_OTP"
	SMSOTP           StepUpMethod = "SMS_OTP"
	AuthenticatorApp StepUpMethod = "AUTHENTICATOR_APP"
	PasskeyMethod    StepUpMethod = "PASSKEY"
	CompanySignIn    StepUpMethod = "COMPANY"
)

// Sends reports whether the method sends a code.
func (m StepUpMethod) Sends() bool { return m == EmailOTP || m == SMSOTP }

// CodeHash is the keyed hash of a one-time code, for COMPANY of the one in the address to open. It is
// empty where the code comes from an authenticator.
type CodeHash []byte

// ChallengeState is the state of a challenge.
type ChallengeState string

// The states of a challenge. Only an open one can be verified.
const (
	ChallengeOpen   ChallengeState = "open"
	ChallengePassed ChallengeState = "passed"
	ChallengeVoid   ChallengeState = "void" // its code could not be delivered
)

// Challenge is a step-up that waits for its code.
type Challenge struct {
	ID        ChallengeID
	SessionID SessionID
	UserID    UserID
	Method    StepUpMethod
	CodeHash  CodeHash
	Standby   CodeHash // of a code that was delivered while a newer one is being delivered; optional
	Attempts  int      // wrong codes so far
	State     ChallengeState
	CreatedAt time.Time
	ExpiresAt time.Time
}

// PendingLogin is a login whose password was right and that waits for its second factor
// (contract A-18). There is at most one for a person and a device identity.
type PendingLogin struct {
	UserID         UserID
	DeviceIdentity DeviceIdentity
	Subject        LockoutKey   // what wrong codes count against: the subject of the password
	Proven         bool         // the device showed its token with the password
	Company        CompanyLogin // instead of a password; otherwise zero
	CreatedAt      time.Time
	ExpiresAt      time.Time
}

// CompanyLogin is a sign-in at a provider of company sign-in from which a session comes.
type CompanyLogin struct {
	ID    string
	Until time.Time // when the session ends unless the provider confirms the person again
}

// Open reports whether the login can still be completed. A login waits for at most the lifetime.
func (p *PendingLogin) Open(now time.Time, lifetime time.Duration) bool {
	return Alive(p.ExpiresAt, now, lifetime)
}
