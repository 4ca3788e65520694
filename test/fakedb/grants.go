package fakedb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Grants implements [registrystore.Grants].
type Grants struct {
	*table[grantKey, registry.GrantRecord]
}

// NewGrants returns the grants of a database.
func NewGrants(db *Database) *Grants { return &Grants{db.grants} }

// Add implements [registrystore.Grants].
func (s *Grants) Add(ctx context.Context, g registry.GrantRecord) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		g.ID = registry.GrantID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.db.nextNumber()))
		return s.insert(ctx, g)
	})
}

// Remove implements [registrystore.Grants].
func (s *Grants) Remove(ctx context.Context, g registry.GrantRecord) error {
	return s.remove(ctx, keyOfGrant(g))
}

// Of implements [registrystore.Grants].
func (s *Grants) Of(ctx context.Context, holder registry.Holder) ([]registry.Grant, error) {
	records, err := s.Records(ctx, registrystore.GrantQuery{Holders: []registry.Holder{holder}})
	return grantsOf(records), err
}

func grantsOf(records []registry.GrantRecord) (grants []registry.Grant) {
	for _, r := range records {
		grants = append(grants, r.Grant)
	}
	return slices.Compact(grants)
}

// Records implements [registrystore.Grants].
func (s *Grants) Records(ctx context.Context, q registrystore.GrantQuery) ([]registry.GrantRecord, error) {
	found, err := s.list(ctx, func(r registry.GrantRecord) bool {
		return compareRecords(r, q.After) > 0 &&
			(len(q.Holders) == 0 || slices.Contains(q.Holders, r.Holder)) &&
			(q.ID == "" || r.ID == q.ID) && (q.Action == "" || r.Action == q.Action) && (q.ManagedBy == "" || r.ManagedBy == q.ManagedBy)
	}, compareRecords)
	if q.Limit > 0 {
		found = first(found, q.Limit)
	}
	return found, err
}

// Manage implements [registrystore.Grants].
func (s *Grants) Manage(ctx context.Context, g registry.Grant, by string) error {
	return s.update(ctx, keyOfGrant(registry.GrantRecord{Grant: g}), func(r *registry.GrantRecord) error {
		r.ManagedBy = by
		return nil
	})
}

// grantKey is what a grant is unique by.
type grantKey struct {
	registry.Grant

	provider string
}

func keyOfGrant(r registry.GrantRecord) grantKey { return grantKey{r.Grant, r.Provider()} }

func compareRecords(a, b registry.GrantRecord) int {
	return cmp.Or(compareGrants(a.Grant, b.Grant), cmp.Compare(a.Provider(), b.Provider()))
}

func compareGrants(a, b registry.Grant) int {
	return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Action, b.Action),
		cmp.Compare(a.Pattern.String(), b.Pattern.String()))
}

// Policies implements [registrystore.Policies].
type Policies struct {
	*table[registry.PolicyID, publisher.Policy]
}

// NewPolicies returns the policies of a database.
func NewPolicies(db *Database) *Policies { return &Policies{db.policies} }

// Find implements [registrystore.Policies].
func (s *Policies) Find(ctx context.Context, q registrystore.PolicyQuery) ([]publisher.Policy, error) {
	q.CheckedBefore = storedTime(q.CheckedBefore)
	found, err := s.list(ctx, func(p publisher.Policy) bool { return selectsPolicy(q, p) },
		func(a, b publisher.Policy) int { return cmp.Compare(a.ID, b.ID) })
	if q.Limit > 0 {
		found = first(found, q.Limit)
	}
	return found, err
}

func selectsPolicy(q registrystore.PolicyQuery, p publisher.Policy) bool {
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
