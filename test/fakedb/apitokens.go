package fakedb

import (
	"cmp"
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/service"
)

// APITokens implements [authstore.APITokens] and [authstore.APITokenExpiry].
type APITokens struct {
	*table[auth.APITokenID, auth.APIToken]
}

// NewAPITokens returns the tokens of a database.
func NewAPITokens(db *Database) *APITokens { return &APITokens{db.apiTokens} }

// owner returns whether an owner exists and whether it is active.
func (s *APITokens) owner(o auth.Owner) (exists, active bool) {
	if name, ok := o.Service(); ok {
		account, ok := s.db.services.rows[service.Name(name)]
		return ok, account.State == service.Active
	}
	account, ok := s.db.accounts.rows[auth.UserID(o)]
	return ok, account.State == auth.AccountActive
}

// Add implements [authstore.APITokens].
func (s *APITokens) Add(ctx context.Context, t auth.APIToken) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if exists, _ := s.owner(t.Owner); !exists {
			return s.errNotFound()
		}
		living, err := s.list(ctx, func(other auth.APIToken) bool {
			return isOf(other, t.Owner) && other.ExpiresAt.After(t.CreatedAt)
		}, compareAPITokens)
		if err == nil && len(living) >= t.Owner.MaxTokens() && !t.Workload {
			err = fault.New(fault.Conflict, "there are too many tokens")
		}
		return cmp.Or(err, s.insert(ctx, t))
	})
}

func isOf(t auth.APIToken, o auth.Owner) bool { return t.Owner == o && !t.Workload }

func compareAPITokens(a, b auth.APIToken) int { return cmp.Compare(a.ID, b.ID) }

// Find implements [authstore.APITokens].
func (s *APITokens) Find(ctx context.Context, hash auth.TokenHash) (auth.APIToken, error) {
	return s.one(ctx, func(t auth.APIToken) bool {
		_, active := s.owner(t.Owner)
		return t.Hash == hash && active
	}, compareAPITokens)
}

// Of implements [authstore.APITokens].
func (s *APITokens) Of(
	ctx context.Context, owner auth.Owner, after auth.APITokenID, limit int,
) ([]auth.APIToken, error) {
	return s.listFirst(ctx, limit, func(t auth.APIToken) bool { return isOf(t, owner) && t.ID > after }, compareAPITokens)
}

// Remove implements [authstore.APITokens].
func (s *APITokens) Remove(ctx context.Context, owner auth.Owner, id auth.APITokenID) (auth.APIToken, error) {
	return result(ctx, s.db, func(ctx context.Context) (auth.APIToken, error) {
		t, err := s.find(ctx, id)
		if err == nil && !isOf(t, owner) {
			err = s.errNotFound()
		}
		if err != nil {
			return auth.APIToken{}, err
		}
		return t, s.remove(ctx, id)
	})
}

// Use implements [authstore.APITokens].
func (s *APITokens) Use(ctx context.Context, t auth.APIToken) error {
	return ignoreNotFound(s.update(ctx, t.ID, func(stored *auth.APIToken) error {
		if t.LastUsedAt.After(stored.LastUsedAt) {
			stored.LastUsedAt, stored.LastUsedFrom = t.LastUsedAt, t.LastUsedFrom
		}
		return nil
	}))
}

// Due implements [authstore.APITokenExpiry].
func (s *APITokens) Due(ctx context.Context, now time.Time, limit int) ([]auth.APIToken, error) {
	return s.listFirst(ctx, limit, func(t auth.APIToken) bool {
		return !t.NoticeAt.IsZero() && !t.NoticeAt.After(now)
	}, func(a, b auth.APIToken) int { return a.NoticeAt.Compare(b.NoticeAt) })
}

// MoveNotice implements [authstore.APITokenExpiry].
func (s *APITokens) MoveNotice(ctx context.Context, id auth.APITokenID, from, to time.Time) error {
	err := s.update(ctx, id, func(t *auth.APIToken) error {
		if !t.NoticeAt.Equal(from) {
			return fault.New(fault.Conflict, "the end of the token was announced already")
		}
		t.NoticeAt = to
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Conflict, "the token is gone")
	}
	return err
}
