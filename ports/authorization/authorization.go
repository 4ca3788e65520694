// Package authorization is the port of the authorization server to its records, to the registry and the
// access rules, and to the documents and keys of clients. The rules are in core/auth/oauth and
// core/auth/authorizing.
//
// The stores join the transaction that the context carries, return fault.Unavailable when the database
// is not available, and fault.NotFound for a missing record. Everything is safe for concurrent use.
//
// [github.com/tollgate-dev/tollgate/ports/authorization/authorizationtest] has the contract tests.
package authorization

import (
	"context"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Requests stores authorization requests that wait for a person.
type Requests interface {
	// Add stores a new request.
	Add(ctx context.Context, r oauth.Request) error
	// Find returns the request with an id, expired or not, or fault.NotFound.
	Find(ctx context.Context, id auth.TokenHash) (oauth.Request, error)
	// Take deletes a request. Of parallel calls, on all instances, one succeeds; the others and later ones
	// return fault.NotFound.
	Take(ctx context.Context, id auth.TokenHash) error
	// DeleteExpired deletes the requests that expired before a time, and returns how many.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// Families stores families of tokens. They are deleted together with the person, and with their session:
// one without it would look like one of an assertion, which needs no session.
type Families interface {
	// Add stores a new family, and ends active ones of its person and client above oauth.MaxFamilies, this one
	// included, with the reason oauth.EndTooMany: those that were never used before the others, the oldest
	// first. It returns fault.NotFound without its person.
	Add(ctx context.Context, f oauth.Family) error
	// Get returns a family, ended or not, or fault.NotFound.
	Get(ctx context.Context, id oauth.FamilyID) (oauth.Family, error)
	// Update changes a family, or returns fault.NotFound, as the Update methods of ports/authstore do. Its
	// id, person, session and time of creation stay.
	Update(ctx context.Context, id oauth.FamilyID, change func(*oauth.Family) error) error
	// Active returns the families of a person that are active at a time and have been used, and whose
	// session, if they have one, is active, too: the newest first, at most limit of them.
	Active(ctx context.Context, user auth.UserID, at time.Time, limit int) ([]oauth.Family, error)
	// End ends the active families that a filter selects, and returns how many. It returns fault.Internal
	// for an empty filter.
	End(ctx context.Context, which FamilyFilter, at time.Time, reason string) (int, error)
	// DeleteExpired deletes the families that expired or ended before a time, with their secrets, and
	// returns how many families.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// FamilyFilter selects families. Empty fields do not restrict the selection; one of them is required.
type FamilyFilter struct {
	UserID   auth.UserID
	Client   oauth.ClientID
	Resource string // its URL as declared
	Provider string // of assertions
	Subject  string // with Provider
}

// Secrets stores the hashes of codes and refresh tokens, spent ones included.
type Secrets interface {
	// Add stores a new, unspent secret.
	Add(ctx context.Context, s oauth.Secret) error
	// Find returns the secret with the hash, spent or not, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (oauth.Secret, error)
	// Spend marks an unspent secret as spent. Of concurrent calls, on all instances, one succeeds; the
	// others, and all later ones, return fault.Conflict. It returns fault.NotFound for an unknown hash.
	Spend(ctx context.Context, hash auth.TokenHash, at time.Time) error
}

// Consents stores what people have agreed to. They are deleted together with the person.
type Consents interface {
	// Put stores a consent in place of the one of its person, client, host and resource.
	Put(ctx context.Context, c oauth.Consent) error
	// Find returns the consent of a person for a client, a host and a resource, or fault.NotFound.
	Find(ctx context.Context, user auth.UserID, client oauth.ClientID, host, resource string) (oauth.Consent, error)
	// Remove deletes the consents that a filter selects by person, client and resource. It returns
	// fault.Internal for an empty filter.
	Remove(ctx context.Context, which FamilyFilter) error
	// DeleteExpired deletes the consents that expired before a time, and returns how many.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// Sightings stores what happened when documents of clients were read.
type Sightings interface {
	// Note stores a sighting in place of the one of its URL. Of more than oauth.MaxSightings URLs the
	// oldest are forgotten.
	Note(ctx context.Context, s oauth.Sighting) error
	// List returns the newest sightings, the newest first, at most limit of them.
	List(ctx context.Context, limit int) ([]oauth.Sighting, error)
}

// Question is whether any call could be allowed, whatever its method and tool.
type Question struct {
	UserID auth.UserID
	Groups []string // PROVIDER/GROUP, in place of those of the person; nil for those
	Client oauth.ClientID
	Server toolserver.Name
	From   netip.Addr
}

// Gate knows the tool servers of the registry, and the access rules.
type Gate interface {
	// Servers returns the named servers as they are now with respect to a canonical URL; without names all
	// that have it as a remote without variables, in a listed version or in quarantine.
	Servers(ctx context.Context, url string, named []toolserver.Name) ([]oauth.Server, error)
	// Permits returns the least trust level at which a call could be allowed by the rules that
	// allow; 0 for any. ok is false if no rule could.
	Permits(ctx context.Context, q Question) (least auth.TrustLevel, ok bool, err error)
}

// Documents reads what clients publish about themselves, through a dialler that leads to public addresses
// only.
type Documents interface {
	// Client returns the client of a document (contract T-7), which may be a copy as old as its headers allow.
	// It returns fault.Invalid, with the reason, for a document that is refused, and with
	// oauth.CodeDocumentAway for one that cannot be read now; fault.Exhausted with
	// RetryAfter if its host was asked too often, and fault.Unavailable if the caller's context ends.
	Client(ctx context.Context, id oauth.ClientID) (oauth.Client, error)
	// Verify returns the payload of a JWT that a client has signed with one of its keys. It returns
	// fault.Unauthenticated, with the reason, for one that is malformed, too long, of a symmetric
	// algorithm, or of another key, and fault.Unavailable if the keys cannot be read.
	Verify(ctx context.Context, c *oauth.Client, token string) (payload []byte, err error)
}
