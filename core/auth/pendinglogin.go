package auth

import "time"

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
