// Package accessstore is the port to what decisions about calls of servers depend on: the rules, the
// servers, and who calls.
package accessstore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/access"
)

// Servers reads the servers of the registry for decisions about calls, those that are listed or in
// quarantine and those of which addresses must stay known, and counts their calls. It is safe for concurrent use. Its methods see
// the state of a snapshot that the context carries, and return fault.Unavailable when the database is not
// available.
type Servers interface {
	// Snapshot calls do as registrystore.SnapshotReader does.
	Snapshot(ctx context.Context, do func(ctx context.Context) error) error
	// Changed returns what has changed after a position. It does not know all of it for the empty one, and
	// for one of another database, or of before its last start, by which it may have lost changes.
	Changed(ctx context.Context, after string) (Changes, error)
	// Named returns a listing for each name, of at most MaxNames. One of which nothing is known is
	// deleted and has no addresses.
	Named(ctx context.Context, names []string) ([]access.Listing, error)
	// Page returns the next servers whose names are after a name, and the name after which those after
	// them begin; empty at the end. It takes a time for which no caller should wait.
	Page(ctx context.Context, after string) (page []access.Listing, next string, err error)
	// AddCalls adds numbers of calls, of at most MaxNames servers in order, to those of a day, and drops those of
	// KeptDays before. Days are counted since 1970.
	AddCalls(ctx context.Context, day int64, all []Calls) error
	// CallsOf returns the calls of a server from a day on, of at most KeptDays.
	CallsOf(ctx context.Context, server string, from int64) (Calls, error)
}

// KeptDays is for how many days calls are kept.
const KeptDays = 8

// Calls are how many calls of a server were decided.
type Calls struct {
	Server string
	All    int64
	Denied int64 // of these
}

// Changes are the servers that have changed after a position.
type Changes struct {
	Position string   // of now
	Known    bool     // otherwise other servers may have changed too
	Names    []string // each once, first those with versions that are deleted or in quarantine
}

// MaxNames is the greatest number of names in one call of Servers.Named.
const MaxNames = 500

// Members finds who calls. It is safe for concurrent use. Its methods return fault.NotFound for those
// who are not active, and fault.Unavailable when the database is not available.
type Members interface {
	// Find returns a person or a service account by the holder of its grants (authority.Caller), as it
	// was at most a second ago, without a trust level.
	Find(ctx context.Context, holder string) (access.Subject, error)
	// FindNamed returns the person or the service account that a selector names, with the trust level
	// of the newest active session, or full trust in a service account. A person without a session is
	// at UNVERIFIED.
	FindNamed(ctx context.Context, who access.Selector) (access.Subject, error)
	// FindLinked returns the person to whom an identity of a provider is linked, as it is stored now,
	// without a trust level. One who may not sign in is refused; it returns fault.NotFound for an
	// identity that is not linked.
	FindLinked(ctx context.Context, issuer, subject string) (access.Subject, error)
	// Reasons returns why the subject of FindNamed has its trust level, in sentences.
	Reasons(ctx context.Context, who access.Selector) ([]string, error)
}
