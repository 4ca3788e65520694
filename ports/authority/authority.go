// Package authority is the port through which the registry and the catalogue use authentication:
// who a caller is, whether the caller's session is trusted enough to change the registry, and the
// audit log.
package authority

import (
	"context"
	"net/netip"
)

// Caller is the sender of a request.
type Caller struct {
	UserID     string
	SessionID  string
	TrustLevel string
	Address    netip.Addr
}

// Act is one attempt of a caller to change the registry, for the audit log (contract R-38).
type Act struct {
	Caller     Caller
	Action     string // publish, edit, delete, status
	ServerName string
	Version    string // empty for all versions
	Reason     string // why it was refused; empty if it succeeded
	Warning    string // what was accepted with a warning (contract R-56); empty for nothing
}

// Authority identifies and authorizes callers. All methods are safe for concurrent use.
type Authority interface {
	// Identify returns the caller to whom an access token belongs. It returns fault.Unauthenticated
	// when the token is missing, unknown, expired or of a session that has ended.
	Identify(ctx context.Context, token string) (Caller, error)
	// RequireTrust returns fault.Forbidden if the caller's trust level is too low to change the
	// registry. The error asks for a step-up, with the challenge of RFC 9470 in the detail
	// "challenge".
	RequireTrust(ctx context.Context, c Caller) error
	// Record writes an act to the audit log, in the transaction that the context carries, if any.
	Record(ctx context.Context, a Act) error
}

// Change is what an operator did, for the audit log: a GrantChange, an ImportedVersion or a
// MethodChange.
type Change interface{ isChange() }

// GrantChange is a grant that an operator added or removed.
type GrantChange struct {
	Holder   string // user id
	Given    bool   // false if it was removed
	Action   string // publish, edit
	Resource string // the pattern
}

// ImportedVersion is a version of a server that an operator imported.
type ImportedVersion struct{ ServerName, Version string }

// MethodChange is a method of the listing that an operator changed.
type MethodChange struct {
	Action  string // add, import, remove
	ID      int
	Path    string // after the change; before it if the method was removed
	Service string // name of the service, likewise
}

func (GrantChange) isChange()     {}
func (ImportedVersion) isChange() {}
func (MethodChange) isChange()    {}

// Recorder records the changes of operators. It is safe for concurrent use.
type Recorder interface {
	// RecordChanges writes changes to the audit log, in the transaction that the context carries,
	// if any. It returns fault.Unavailable when the database is not available.
	RecordChanges(ctx context.Context, changes ...Change) error
}
