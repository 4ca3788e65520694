package fakedb

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Policies implements [registrystore.Policies].
type Policies struct{ db *Database }

var _ registrystore.Policies = (*Policies)(nil)

// NewPolicies returns the policies of a database.
func NewPolicies(db *Database) *Policies { return &Policies{db: db} }

// Add implements [registrystore.Policies].
func (s *Policies) Add(ctx context.Context, p publisher.Policy) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, taken := t.registry.policies[p.ID]; taken {
			return fault.New(fault.Conflict, "the policy already exists")
		}
		t.registry.policies[p.ID] = copyPolicy(p)
		return nil
	})
}

// Remove implements [registrystore.Policies].
func (s *Policies) Remove(ctx context.Context, id publisher.PolicyID) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		if _, ok := t.registry.policies[id]; !ok {
			return errNoPolicy()
		}
		delete(t.registry.policies, id)
		return nil
	})
}

// Find implements [registrystore.Policies].
func (s *Policies) Find(ctx context.Context, q registrystore.PolicyQuery) (found []publisher.Policy, err error) {
	q.CheckedBefore = truncateToMicroseconds(q.CheckedBefore)
	err = s.db.readTables(ctx, func(t *tables) error {
		for _, p := range t.registry.policies {
			if selectsPolicy(&q, &p) {
				found = append(found, copyPolicy(p))
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b publisher.Policy) int { return cmp.Compare(a.ID, b.ID) })
	if q.Limit > 0 {
		found = found[:min(q.Limit, len(found))]
	}
	return found, err
}

// Update implements [registrystore.Policies].
func (s *Policies) Update(ctx context.Context, id publisher.PolicyID, change func(*publisher.Policy) error) error {
	return s.db.writeTables(ctx, func(t *tables) error {
		stored, ok := t.registry.policies[id]
		if !ok {
			return errNoPolicy()
		}
		p := copyPolicy(stored)
		if err := change(&p); err != nil {
			return err
		}
		p.ID = id
		t.registry.policies[id] = copyPolicy(p)
		return nil
	})
}

func errNoPolicy() error { return fault.New(fault.NotFound, "the policy does not exist") }

func selectsPolicy(q *registrystore.PolicyQuery, p *publisher.Policy) bool {
	switch {
	case q.IDs != nil && !slices.Contains(q.IDs, p.ID),
		q.Method != "" && p.Method != q.Method,
		q.Domain != publisher.Domain{} && p.Domain != q.Domain,
		q.Issuer != "" && p.Issuer != q.Issuer,
		!q.CheckedBefore.IsZero() && !(p.Method.ByDomain() && p.CheckedAt.Before(q.CheckedBefore)):
		return false
	}
	return p.ID > q.After
}

// copyPolicy returns a policy that shares no memory with p, as it comes back from a database.
func copyPolicy(p publisher.Policy) publisher.Policy {
	p.Actions, p.Claims, p.Bound = slices.Clone(p.Actions), cloneClaims(p.Claims), cloneClaims(p.Bound)
	p.CreatedAt, p.ExpiresAt = truncateToMicroseconds(p.CreatedAt), truncateToMicroseconds(p.ExpiresAt)
	p.LastUsedAt = truncateToMicroseconds(p.LastUsedAt)
	p.CheckedAt, p.GoneSince = truncateToMicroseconds(p.CheckedAt), truncateToMicroseconds(p.GoneSince)
	return p
}

func cloneClaims(claims map[string]string) map[string]string {
	if len(claims) == 0 {
		return nil
	}
	return maps.Clone(claims)
}
