// Package authority is the port through which the registry asks who a caller
// is, whether the caller's session is trusted enough to change the registry,
// and through which it and the catalogue keep account of what was done. The
// authentication hexagon answers it.
package authority

import (
	"context"
	"net/netip"
)

// Caller is who sends a request.
type Caller struct {
	UserID     string
	SessionID  string
	TrustLevel string
	Address    netip.Addr
}

// Act is one attempt to change the registry, for the audit log (contract R-38).
type Act struct {
	Caller     Caller
	Action     string // publish, edit, delete, status
	ServerName string
	Version    string // empty where all versions are meant
	Reason     string // why it was refused; empty = it was done
	Warning    string // what was accepted all the same (contract R-56); empty = nothing
}

// GrantChange is a grant that an operator gave or took back, for the audit log.
type GrantChange struct {
	Holder   string // user id
	Given    bool   // false: taken back
	Action   string // publish, edit
	Resource string // the pattern
}

// Grants keeps account of grants for the authentication hexagon. It is safe for
// concurrent use.
type Grants interface {
	// RecordGrant writes a change to the audit log, in the transaction that the
	// context carries, if any. fault.Unavailable when the database is away.
	RecordGrant(ctx context.Context, c GrantChange) error
}

// ImportedVersion is a version of a server that an operator's import stored, for
// the audit log.
type ImportedVersion struct{ ServerName, Version string }

// Imports keeps account of imports for the authentication hexagon. It is safe
// for concurrent use.
type Imports interface {
	// RecordImport writes versions to the audit log, in the transaction that the
	// context carries, if any. fault.Unavailable when the database is away.
	RecordImport(ctx context.Context, versions ...ImportedVersion) error
}

// MethodChange is what an operator did to a method of the listing, for the audit
// log.
type MethodChange struct {
	Action  string // add, import, remove
	ID      int
	Path    string // as it is now; of one that was removed, as it was
	Service string // name of the service, likewise
}

// Methods keeps account of changes of the methods listing for the authentication
// hexagon. It is safe for concurrent use.
type Methods interface {
	// RecordMethods writes changes to the audit log, in the transaction that the
	// context carries, if any. fault.Unavailable when the database is away.
	RecordMethods(ctx context.Context, changes ...MethodChange) error
}

// Authority answers for the authentication hexagon. All methods are safe for
// concurrent use.
type Authority interface {
	// Identify returns the caller that an access token stands for.
	// fault.Unauthenticated when the token is missing, unknown, expired or of
	// an ended session.
	Identify(ctx context.Context, token string) (Caller, error)
	// RequireTrust returns fault.Forbidden, with a sentence that says to step
	// up and the RFC 9470 challenge in the detail "challenge", when the
	// caller's trust level is below what registry writes need.
	RequireTrust(ctx context.Context, c Caller) error
	// Record writes an act to the audit log, in the transaction that the
	// context carries, if any.
	Record(ctx context.Context, a Act) error
}
