package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
)

// Providers stores the providers of company sign-in. A change is visible to the next call on every
// instance. Times are kept in UTC with microseconds.
type Providers interface {
	// List returns all providers, ordered by name.
	List(ctx context.Context) ([]company.Provider, error)
	// Save stores a provider in place of the one with its name, if there is one, whose CreatedAt and
	// Condition stay. It returns fault.Conflict when another provider has one of the domains. After
	// an error, the transaction that the context carries must end with that error.
	Save(ctx context.Context, p company.Provider) error
	// Remove deletes a provider, or returns fault.NotFound.
	Remove(ctx context.Context, name company.Name) error
	// Note stores the condition of a provider, which it does not count as a change. An unknown name
	// is ignored.
	Note(ctx context.Context, name company.Name, c company.Condition) error
}

// Identities stores which identities are linked to which accounts. They are deleted together with
// the account. Times are kept in UTC with microseconds.
type Identities interface {
	// Add stores a new identity. It returns fault.Conflict if the subject of the issuer is linked.
	// Of parallel calls for one subject, on all instances, one succeeds. After an error, the
	// transaction that the context carries must end with that error.
	Add(ctx context.Context, i company.Identity) error
	// Find returns the identity of a subject of an issuer, or fault.NotFound.
	Find(ctx context.Context, issuer, subject string) (company.Identity, error)
	// Of returns the identities of a person, ordered by LinkedAt and then by id.
	Of(ctx context.Context, user auth.UserID) ([]company.Identity, error)
	// Use stores the e-mail address, the groups and the time of a use, which is also ConfirmedAt. An
	// unknown id is ignored.
	Use(ctx context.Context, id company.IdentityID, email auth.Email, m company.Membership, at time.Time) error
	// Confirm stores ConfirmedAt, which may be zero, and the groups unless they are nil. An unknown id
	// is ignored.
	Confirm(ctx context.Context, id company.IdentityID, at time.Time, m *company.Membership) error
	// Remove deletes an identity of a person, with its logins, or returns fault.NotFound.
	Remove(ctx context.Context, user auth.UserID, id company.IdentityID) error
}

// Logins stores the sign-ins at providers from which sessions came. They are deleted together with
// the session. Times are kept in UTC with microseconds.
type Logins interface {
	// Add stores a new login.
	Add(ctx context.Context, l company.Login) error
	// Bind gives a login without a session its session, or returns fault.NotFound.
	Bind(ctx context.Context, id company.LoginID, session auth.SessionID) error
	// Find returns the logins of active sessions that a query selects, ordered by RecheckAt and then
	// by id.
	Find(ctx context.Context, q LoginQuery) ([]company.Login, error)
	// Renew stores Refresh, AnsweredAt and RecheckAt of a login whose stored RecheckAt is from. Of
	// parallel calls, on all instances, one succeeds; the others return fault.Conflict.
	Renew(ctx context.Context, l company.Login, from time.Time) error
	// DeleteAbandoned deletes the logins without a session whose AnsweredAt is before a time, and
	// returns their number, also together with an error.
	DeleteAbandoned(ctx context.Context, before time.Time) (int, error)
}

// LoginQuery selects logins of sessions that are active at a time. Other zero fields do not
// restrict the selection.
type LoginQuery struct {
	At       time.Time
	Provider company.Name
	Identity company.IdentityID
	Session  auth.SessionID
	SID      string
	Due      time.Time      // RecheckAt is at or before it, and not zero
	Without  []company.Name // providers whose logins are left out
	Limit    int            // 0 for no limit
}
