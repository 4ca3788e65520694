package oauth

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// FamilyID identifies a family. It is a UUID.
type FamilyID string

// Family is what a person, or the provider of a company, has granted a client for a resource: one code,
// and all tokens that come of it.
type Family struct {
	ID     FamilyID
	UserID auth.UserID
	// SessionID is the session in which the person granted it; empty for one of an assertion (contract T-18).
	SessionID  auth.SessionID
	Client     ClientID
	ClientName string
	// RedirectURI and Challenge are those of the request; empty for one of an assertion.
	RedirectURI, Challenge string
	Resource               string // its URL as declared
	Scopes                 []string
	Level                  auth.TrustLevel // when it was granted; that of a session is live
	AuthTime               time.Time       // when the person signed in, as of the grant
	// Provider, Subject and Groups are those of an assertion; otherwise empty. Groups is nil without that claim,
	// and empty if the claim is.
	Provider, Subject string
	Groups            []string

	CreatedAt time.Time
	UsedAt    time.Time // of its last token; zero before the first
	ExpiresAt time.Time
	EndedAt   time.Time // zero while it is good
	EndReason string
}

// The lifetimes of families and codes (contract T-14, T-17), and how many families a person has for one
// client (contract T-21). The others are why a family ends: it is the oldest of more, a secret of it was
// used again, the client or the person has ended it, or its client or resource was removed.
const (
	CodeTTL     = time.Minute
	FamilyTTL   = 30 * 24 * time.Hour
	MaxFamilies = 20
	EndTooMany  = "too_many"
	EndReplay   = "replay"
	EndRevoked  = "revoked"
	EndRemoved  = "removed"
)

// Active reports whether the family has neither ended nor expired.
func (f *Family) Active(now time.Time) bool { return f.EndedAt.IsZero() && now.Before(f.ExpiresAt) }

// Secret is a code, or a generation of the refresh token, of a family. It is good once, and stored as a
// hash.
type Secret struct {
	Hash      auth.TokenHash
	Family    FamilyID
	Code      bool // otherwise a refresh token
	IssuedAt  time.Time
	ExpiresAt time.Time
	SpentAt   time.Time // zero while it is good
}

// Consent is what a person has agreed to (contract T-13).
type Consent struct {
	UserID auth.UserID
	Client ClientID
	// Host is that of the redirect URI.
	Host, Resource string
	Scopes         []string
	Terms          auth.TokenHash // of the redirect URIs and keys of the client at that time
	GivenAt        time.Time
	ExpiresAt      time.Time
}

// ConsentTTL is how long a consent is remembered.
const ConsentTTL = 90 * 24 * time.Hour

// MaxSightings is how many sightings are kept.
const MaxSightings = 1000

// Sighting is what happened when the document of a client was read last.
type Sighting struct {
	URL     ClientID
	Name    string // of the client; empty if the document was refused
	Problem string // why it was refused; empty if it was not
	At      time.Time
}

// Claims are what an access token says about a grant, besides the person and the times (contract T-16).
type Claims struct {
	Family   FamilyID
	Client   ClientID
	Resource string // aud
	Scopes   []string
	Level    auth.TrustLevel // acr
	AuthTime time.Time
}

// TokenID returns the id (jti) of a token of a family: that of the family, a dot, and the random bytes.
func TokenID(f FamilyID, random [16]byte) string {
	return string(f) + "." + base64.RawURLEncoding.EncodeToString(random[:])
}

// FamilyOf returns the family of a token with an id. It reports false for an id that TokenID does not make.
func FamilyOf(id string) (FamilyID, bool) {
	family, random, _ := strings.Cut(id, ".")
	f, err := auth.ParseUUID[FamilyID]("jti", family)
	raw, decodeErr := base64.RawURLEncoding.DecodeString(random)
	return f, err == nil && decodeErr == nil && TokenID(f, [16]byte(append(raw, make([]byte, 16)...))) == id
}
