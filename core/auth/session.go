package auth

import (
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// ClockTolerance is the greatest difference between the clocks of two instances with which a new
// record of one instance counts on the other.
const ClockTolerance = 10 * time.Second

// Alive reports whether a record that lives for a lifetime is good at a time. It is not if it
// expires later than a lifetime from then: a clock that was ahead has made it, and it would be good
// for too long.
func Alive(expires, now time.Time, lifetime time.Duration) bool {
	return now.Before(expires) && !expires.After(now.Add(lifetime+ClockTolerance))
}

// DeviceIdentity is the derived identity of a device (contract A-36).
type DeviceIdentity string

// TokenHash is the SHA-256 of an opaque token. Only hashes are stored.
type TokenHash [32]byte

// Session is one sign-in on one device.
type Session struct {
	ID             SessionID
	UserID         UserID
	DeviceID       DeviceID
	DeviceIdentity DeviceIdentity
	TrustLevel     TrustLevel
	RiskScore      int // 0 to 100, as scored at sign-in
	CreatedAt      time.Time
	LastActivity   time.Time
	ExpiresAt      time.Time // slides with each refresh
	MaxExpiresAt   time.Time // never later than this
	IPAddress      netip.Addr
	EndedAt        time.Time // zero while it is active
	EndReason      EndReason
	// ReauthenticatedAt is when the person last gave a password or a code in the session; zero if
	// that was only when it began.
	ReauthenticatedAt time.Time
}

// Active reports whether the session has neither ended nor expired at the given time.
func (s *Session) Active(now time.Time) bool {
	return s.EndedAt.IsZero() && now.Before(s.ExpiresAt)
}

// Authenticated returns when the person last gave a password or a code.
func (s *Session) Authenticated() time.Time {
	if s.ReauthenticatedAt.IsZero() {
		return s.CreatedAt
	}
	return s.ReauthenticatedAt
}

// Describe adds the session and its device to the details of an audit event.
func (s *Session) Describe(d audit.Details) {
	d["sessionId"], d["deviceIdentity"] = audit.Text(s.ID), audit.Text(s.DeviceIdentity)
}

// DescribeAddress adds the address of the session to the details of an audit event; empty if it is
// not known.
func (s *Session) DescribeAddress(d audit.Details) { DescribeAddress(d, s.IPAddress) }

// DescribeAddress adds an address to the details of an audit event; empty if it is not known.
func DescribeAddress(d audit.Details, a netip.Addr) {
	text := ""
	if a.IsValid() {
		text = a.String()
	}
	d["ipAddress"] = audit.Text(text)
}

// EndFor ends the session for a user. It returns fault.Forbidden with code access_denied if the
// session belongs to another user, and fault.NotFound if it has ended.
func (s *Session) EndFor(user UserID, now time.Time, reason EndReason) error {
	switch {
	case s.UserID != user:
		return fault.New(fault.Forbidden, "the session belongs to somebody else").WithCode(CodeAccessDenied)
	case !s.Active(now):
		return NotFound("session")
	}
	s.EndedAt, s.EndReason = now, reason
	return nil
}

// Renew extends the session at an activity of its person: by a lifetime from then, and to a greatest
// age at most.
func (s *Session) Renew(now time.Time, lifetime, greatest time.Duration) {
	if latest := now.Add(greatest); s.MaxExpiresAt.After(latest) {
		s.MaxExpiresAt = latest // written by an instance whose clock was ahead, or with another setting
	}
	s.ExpiresAt = now.Add(lifetime)
	if s.ExpiresAt.After(s.MaxExpiresAt) {
		s.ExpiresAt = s.MaxExpiresAt
	}
	s.LastActivity = now
}

// EndReason is the reason why a session ended.
type EndReason string

// The reasons for which sessions end.
const (
	EndSignOut       EndReason = "sign_out"
	EndTerminated    EndReason = "terminated"
	EndDeviceRevoked EndReason = "device_revoked"
	EndReplay        EndReason = "replay"
	EndDisabled      EndReason = "account_disabled"
	EndPassword      EndReason = "password_changed"
	EndSecondFactor  EndReason = "second_factor_changed"
	EndOperator      EndReason = "ended_by_operator"
	EndProvider      EndReason = "provider_removed"
	EndCompany       EndReason = "ended_by_company"
	EndUnlinked      EndReason = "identity_unlinked"
)

// RefreshToken is one generation of a session's refresh token. A session has
// exactly one unspent token; a spent one that shows up again is a replay.
type RefreshToken struct {
	Hash      TokenHash
	SessionID SessionID
	IssuedAt  time.Time
	ExpiresAt time.Time
	SpentAt   time.Time // zero while it is valid
}

// SessionCookie names a session in a browser. It is stored as a hash. It is good while the session
// is active, belongs to the person and has the trust level for which the cookie was issued.
type SessionCookie struct {
	Hash       TokenHash
	SessionID  SessionID
	UserID     UserID // empty if an instance of an earlier version has issued it
	TrustLevel TrustLevel
	IssuedAt   time.Time
}

// Device is what a person signs in from.
type Device struct {
	ID            DeviceID
	UserID        UserID
	Identity      DeviceIdentity
	TrustStatus   TrustStatus
	MarkUnproven  bool // it was marked TRUSTED below FULL_TRUST, and no code was entered on it since
	Confirmed     bool // a session on it passed step-up or MFA
	Revoked       bool
	FirstSeen     time.Time
	LastSeen      time.Time
	Type          string
	Browser       string
	OS            string
	LastIPAddress netip.Addr
	Name          string // that the owner has given it; empty without one
}

// Trusted reports whether the mark TRUSTED of the device counts (contract A-38).
func (d *Device) Trusted() bool { return d.TrustStatus == DeviceTrusted && !d.MarkUnproven }

// Describe adds the device to the details of an audit event.
func (d *Device) Describe(details audit.Details) {
	details["deviceId"], details["deviceIdentity"] = audit.Text(d.ID), audit.Text(d.Identity)
	details["trustStatus"] = audit.Text(d.TrustStatus)
}

// MaxDeviceName is the greatest length of the name of a device, in characters.
const MaxDeviceName = 64

// TrustStatus is the mark that the owner has set on a device.
type TrustStatus string

// The marks of a device (contract A-38).
const (
	DeviceTrusted   TrustStatus = "TRUSTED"
	DeviceUntrusted TrustStatus = "UNTRUSTED"
	DevicePending   TrustStatus = "PENDING"
)

// DeviceToken proves that a sign-in comes from the device. It is stored as a hash (contract A-37).
type DeviceToken struct {
	Hash     TokenHash
	DeviceID DeviceID
	IssuedAt time.Time
}

// IsNear reports whether an address is that from which the session began, or one next to it: in the
// same /64 of IPv6, or on the same machine.
func (s *Session) IsNear(a netip.Addr) bool {
	network, err := s.IPAddress.Prefix(64)
	return a == s.IPAddress || a.IsLoopback() && s.IPAddress.IsLoopback() || err == nil && network.Contains(a)
}
