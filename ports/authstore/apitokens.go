package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

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
