package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Accounts stores the accounts of people who sign in, with password hashes that it never compares.
type Accounts interface {
	// Create stores a new account. It returns fault.Conflict when another account has the e-mail
	// address.
	Create(ctx context.Context, a auth.Account) error
	// Get returns an account by its id, or fault.NotFound.
	Get(ctx context.Context, id auth.UserID) (auth.Account, error)
	// ByEmail returns an account by its e-mail address, or fault.NotFound.
	ByEmail(ctx context.Context, email auth.Email) (auth.Account, error)
	// Update changes an account, or returns fault.NotFound. Changes of ID, Email and CreatedAt are
	// ignored.
	Update(ctx context.Context, id auth.UserID, change func(*auth.Account) error) error
	// List returns at most limit accounts whose e-mail address is greater than after, ordered by
	// e-mail address.
	List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error)
}

// APITokens stores the tokens of people and of service accounts, by their hashes. A token is
// deleted together with its owner. Times are kept in UTC with microseconds.
type APITokens interface {
	// Add stores a new token. It returns fault.Conflict if the owner has Owner.MaxTokens tokens
	// that have not expired when t was created, without those of workloads, of which there may be
	// any number. Parallel calls, on all instances, do not exceed the number. It returns
	// fault.NotFound if there is no owner.
	Add(ctx context.Context, t auth.APIToken) error
	// Find returns the token with the hash, expired or not, if its owner is active: a person whose
	// account is neither locked nor disabled, or a service account. Otherwise it returns
	// fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.APIToken, error)
	// Of returns at most limit tokens of an owner whose ids are greater than after, without those
	// of workloads, ordered by id.
	Of(ctx context.Context, owner auth.Owner, after auth.APITokenID, limit int) ([]auth.APIToken, error)
	// Remove deletes a token of an owner and returns it, or fault.NotFound.
	Remove(ctx context.Context, owner auth.Owner, id auth.APITokenID) (auth.APIToken, error)
	// Use stores LastUsedAt and LastUsedFrom, unless a later use is stored or the token is gone.
	Use(ctx context.Context, t auth.APIToken) error
}

// APITokenExpiry announces and removes tokens that end.
type APITokenExpiry interface {
	// Due returns at most limit tokens whose NoticeAt is at or before now, ordered by NoticeAt.
	Due(ctx context.Context, now time.Time, limit int) ([]auth.APIToken, error)
	// MoveNotice stores the NoticeAt to of a token whose NoticeAt is from. Of parallel calls, on all
	// instances, exactly one succeeds; the others return fault.Conflict.
	MoveNotice(ctx context.Context, id auth.APITokenID, from, to time.Time) error
	// DeleteExpired deletes the tokens that expired before the given time and returns how many it
	// deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// Directory finds people for those who operate the service.
type Directory interface {
	// Search returns at most q.Limit people, ordered by e-mail address.
	Search(ctx context.Context, q DirectoryQuery) ([]Person, error)
	// Count returns the number of accounts, but no more than most.
	Count(ctx context.Context, most int) (int, error)
	// Groups returns the groups that identities have, as PROVIDER/GROUP: those that most have first, then by
	// name. It reads at most 5,000 different memberships.
	Groups(ctx context.Context) ([]string, error)
}

// DirectoryQuery selects people. A zero field does not restrict the selection.
type DirectoryQuery struct {
	ID    auth.UserID
	Part  string // of the e-mail address or the name; the letters A to Z are the same in either case
	State auth.AccountState
	// AdmittedAt selects those whose AdmittedUntil is later.
	AdmittedAt time.Time
	// Left selects those whom no company lets in any more, as Person.Left says.
	Left bool

	After auth.Email // exclusive
	Limit int        // 1 or more
}

// Person is an account with what a list of people shows.
type Person struct {
	auth.Account

	LastSignIn time.Time // zero before the first
	Identities int       // those of companies that are linked
	Passkeys   int
	// Left is the company that has refused the person since the last sign-in there, if no other one still lets
	// the person in, and LeftAt when it ended a session last: zero if that is not known any more.
	Left   company.Name
	LeftAt time.Time
}

// Operators knows whether there are people who can operate the service: they have the grant
// operate, and their account is active.
type Operators interface {
	// Lock waits until no other transaction, on any instance, has the lock, and keeps it until the
	// transaction of the context ends. Without a transaction it does nothing.
	Lock(ctx context.Context) error
	// Any reports whether there is a person who can operate.
	Any(ctx context.Context) (bool, error)
}

// forced is the key of a context of ByForce.
type forced struct{}

// ByForce returns a context in which KeepOperator does not refuse a change.
func ByForce(ctx context.Context) context.Context { return context.WithValue(ctx, forced{}, true) }

// KeepOperator calls change, which may keep a person from operating, in the transaction of the
// context. If somebody could operate before and no one can after it, it returns fault.Conflict with
// code last_operator, and the transaction must end with that error. Of transactions that call it,
// one runs after the other. It returns the error of change.
func KeepOperator(ctx context.Context, o Operators, change func(ctx context.Context) error) error {
	if ctx.Value(forced{}) != nil {
		return change(ctx)
	}
	if err := o.Lock(ctx); err != nil {
		return err
	}
	before, err := o.Any(ctx)
	if err != nil {
		return err
	}
	if err := change(ctx); err != nil || !before {
		return err
	}
	after, err := o.Any(ctx)
	if err == nil && !after {
		err = fault.New(fault.Conflict, "this is the last active person who can operate the service: "+
			"let another person operate it first").WithCode(auth.CodeLastOperator)
	}
	return err
}

// Links stores the hashes of links that were not used yet.
type Links interface {
	// Put stores a link.
	Put(ctx context.Context, l auth.Link) error
	// Find returns the link with the hash, expired or not, or fault.NotFound.
	Find(ctx context.Context, hash auth.TokenHash) (auth.Link, error)
	// Take deletes the link with the hash. Of parallel calls, on all instances, exactly one
	// succeeds; the others and later ones return fault.NotFound.
	Take(ctx context.Context, hash auth.TokenHash) error
	// RemoveAll deletes the links of a user for the purposes. The empty user has those for a setup.
	RemoveAll(ctx context.Context, user auth.UserID, purposes ...auth.LinkPurpose) error
	// DeleteExpired deletes the links that expired before the given time and returns how many it
	// deleted.
	DeleteExpired(ctx context.Context, before time.Time) (int, error)
}

// Passkeys stores the passkeys of people. A passkey is deleted together with its account. Times are
// kept in UTC with microseconds.
type Passkeys interface {
	// Add stores a new passkey. It returns fault.Conflict if there is one with the credential id.
	// After an error, the transaction that the context carries must end with that error.
	Add(ctx context.Context, p auth.Passkey) error
	// Find returns the passkey with a credential id, or fault.NotFound.
	Find(ctx context.Context, id auth.CredentialID) (auth.Passkey, error)
	// Of returns the passkeys of a person, ordered by CreatedAt and then by id.
	Of(ctx context.Context, user auth.UserID) ([]auth.Passkey, error)
	// Update calls change with a passkey, whose row is locked, and stores what may change: Name,
	// SignCount, BackedUp, LastUsedAt, SuspendedAt. It returns fault.NotFound without a passkey, and
	// the error of change, after which nothing is stored.
	Update(ctx context.Context, id auth.PasskeyID, change func(*auth.Passkey) error) error
	// Remove deletes a passkey of a person, or returns fault.NotFound.
	Remove(ctx context.Context, user auth.UserID, id auth.PasskeyID) error
}
