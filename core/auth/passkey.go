package auth

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/each"
)

// PasskeyID names a passkey. It is a UUID.
type PasskeyID string

// CredentialID is the id that an authenticator has given a credential: bytes.
type CredentialID string

// PasskeyHandle names the person of a passkey for authenticators: 64 bytes without meaning, the same
// for all passkeys of a person.
type PasskeyHandle [64]byte

// Credential is what the service knows about the key of a passkey (WebAuthn, section 4).
type Credential struct {
	ID             CredentialID
	PublicKey      []byte // as a COSE key
	SignCount      uint32
	Transports     []string
	AAGUID         [16]byte
	BackupEligible bool // it may be synced; this never changes
	BackedUp       bool // it is synced
}

// Passkey is a credential with which a person signs in without a password (contract K-1).
type Passkey struct {
	Credential

	ID          PasskeyID
	UserID      UserID
	Name        string
	CreatedAt   time.Time
	LastUsedAt  time.Time // zero if it was never used
	SuspendedAt time.Time // when its sign count went back; zero while it is good
}

// The bounds of passkeys.
const (
	MaxPasskeys     = 20 // of a person
	MinCredentialID = 16 // bytes
	MaxCredentialID = 1023
	MaxCredential   = 16 << 10 // of the response of an authenticator
	PasskeyTTL      = 5 * time.Minute
)

// Use records a use of the passkey that its authenticator has signed. It reports false, and suspends
// the passkey, if the sign count is not greater than before, unless both are 0: then there is a copy
// of the key (contract K-5).
func (p *Passkey) Use(signed Credential, now time.Time) bool {
	if signed.SignCount <= p.SignCount && (signed.SignCount != 0 || p.SignCount != 0) {
		p.SuspendedAt = now
		return false
	}
	p.SignCount, p.BackedUp, p.LastUsedAt = signed.SignCount, signed.BackedUp, now
	return true
}

// ParsePasskeyName returns the name that a person gives a passkey: 1 to 64 printable characters.
// Anything else is fault.Invalid with code validation_error.
func ParsePasskeyName(name string) (string, error) {
	name, err := ParseDeviceName(name)
	if err == nil && name == "" {
		return "", InvalidField(CodeValidation, "name", "must have 1 to 64 characters")
	}
	return name, err
}

// CredentialsOf returns the credentials of passkeys that are not suspended.
func CredentialsOf(all []Passkey) (good []Credential) {
	all = slices.DeleteFunc(slices.Clone(all), func(p Passkey) bool { return !p.SuspendedAt.IsZero() })
	return each.Map(all, func(p Passkey) Credential { return p.Credential })
}

// PasskeyAlgorithms returns the algorithms of passkeys as COSE numbers them, the best first: EdDSA,
// ES256, RS256 (contract K-2).
func PasskeyAlgorithms() []int { return []int{-8, -7, -257} }
