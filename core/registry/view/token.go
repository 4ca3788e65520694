package view

import (
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// Secret is a token of a view in clear: 256 random bits. It prints as a placeholder.
type Secret string

// String returns a placeholder.
func (Secret) String() string { return "[view token]" }

// GoString returns a placeholder.
func (s Secret) GoString() string { return s.String() }

// secretPrefix is at the start of each token, so that people and scanners recognise one.
const secretPrefix = "tgview_"

// NewSecret returns the token of 256 random bits: the prefix, and 43 characters of base64url, which
// need no escape in a path.
func NewSecret(random [32]byte) Secret {
	return Secret(secretPrefix + base64.RawURLEncoding.EncodeToString(random[:]))
}

// Hash is the hash under which a token is stored. A plain hash suffices for 256 random bits.
type Hash [sha256.Size]byte

// Hash returns the hash of the token.
func (s Secret) Hash() Hash { return sha256.Sum256([]byte(s)) }

// MaxTokens is the greatest number of tokens of one view (contract C-34).
const MaxTokens = 100

// Token is a token of a view as it is stored. Its name is unique among those of the view.
type Token struct {
	View      Name
	Name      TokenName
	Hash      Hash
	CreatedAt time.Time
}
