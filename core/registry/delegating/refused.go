package delegating

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// The bounds of Refused.
const (
	refusedAge    = 30 * 24 * time.Hour
	refusedEvents = 1000 // that are read
	refusedProofs = 20
)

// Refused returns the last proofs that held and that no one had allowed, newest first, and each domain
// with a key and each job once: at most 20 of the last 30 days, as far as they concern the names that
// the caller may publish. The errors are those of List.
func (s *Policies) Refused(ctx context.Context, who authority.Caller) ([]publisher.Refused, error) {
	holder, err := who.RequireFullTrust(scope.Read)
	if err != nil {
		return nil, err
	}
	grants, err := permit.Patterns(ctx, s.ports.Grants, holder, registry.ActionPublish)
	if err != nil || len(grants) == 0 {
		return nil, err
	}
	policies, err := s.List(ctx, who)
	if err != nil {
		return nil, err
	}
	plain := make([]publisher.Policy, len(policies))
	for i := range policies {
		plain[i] = policies[i].Policy
	}
	failed := false
	events, _, err := s.ports.Log.Search(ctx, authstore.AuditQuery{
		Category: audit.PublisherProof, Success: &failed, After: s.ports.Clock.Now().Add(-refusedAge),
		Limit: refusedEvents, Uncounted: true,
	})
	if err != nil {
		return nil, err
	}
	return selectRefused(events, grants, plain), nil
}

// selectRefused returns the refused proofs among events that concern somebody.
func selectRefused(events []audit.Event, grants []registry.Pattern, policies []publisher.Policy) []publisher.Refused {
	var list []publisher.Refused
	for i := range events {
		r, ok := publisher.ReadRefused(events[i])
		if !ok || slices.ContainsFunc(list, func(l publisher.Refused) bool { return l.Same(&r) }) {
			continue
		}
		if r.Concerns(grants, policies) {
			list = append(list, r)
		}
		if len(list) == refusedProofs {
			break
		}
	}
	return list
}

// Issuers returns the issuers of ID tokens that the service accepts, except that of GitHub Actions.
func (s *Policies) Issuers() []string { return slices.Clone(s.rules.Issuers) }
