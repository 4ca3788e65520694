package auth

import (
	"net/netip"
	"time"
)

// LinkSecret is the secret part of a link in clear: opaque, 256 bits. It prints as a placeholder.
type LinkSecret string

// String returns a placeholder.
func (LinkSecret) String() string { return "[link]" }

// GoString returns a placeholder.
func (s LinkSecret) GoString() string { return s.String() }

// LinkPurpose is what a link permits.
type LinkPurpose string

// The purposes of links.
const (
	LinkSetup      LinkPurpose = "setup"      // to make the first account
	LinkInvitation LinkPurpose = "invitation" // to set the first password of an invited person
	LinkReset      LinkPurpose = "reset"      // to set another password
	LinkRequest    LinkPurpose = "request"    // to decide about the sign-in of a command
	LinkCommand    LinkPurpose = "command"    // to begin the session of a command, or to learn that it was refused
)

// Link permits one act to who has its secret, once. It is stored as a hash.
type Link struct {
	Hash      TokenHash
	Purpose   LinkPurpose
	UserID    UserID // empty for a setup and a request
	CreatedAt time.Time
	ExpiresAt time.Time

	// Of a request: the system of the command, from where it asked, and the hash of the link that
	// holds the answer.
	Asker     string
	AskedFrom netip.Addr
	Answer    TokenHash
	SessionID SessionID // of a command: in which it was approved; empty if it was refused
}

// The lifetimes of links that are not settings.
const (
	SetupTTL = 24 * time.Hour
	ResetTTL = 30 * time.Minute
)

// CodeLastOperator is the code of a refused change after which no active person could operate.
const CodeLastOperator = "last_operator"
