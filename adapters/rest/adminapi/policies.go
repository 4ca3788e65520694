package adminapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const policiesPath = root + "/policies"

func (a *API) mountPolicies(r fiber.Router) {
	add := change{audit.AccountChange, "publisher_add", "policy"}
	remove := change{audit.AccountChange, "publisher_remove", "policy"}
	r.Get(policiesPath, a.read(a.operator(adminRead), a.listPolicies))
	r.Post(policiesPath, a.write(add, a.operator(adminWrite), a.addPolicy))
	r.Get(policiesPath+"/:id", a.read(a.operator(adminRead), a.getPolicy))
	r.Delete(policiesPath+"/:id", a.write(remove, a.operator(adminWrite), a.removePolicy))
}

// policyResponse is a policy as people see their own, with its manager.
type policyResponse struct {
	registryapi.PolicyResponse
	ownedBy
}

// stable returns the policy without its last use and without what follows from time and grants.
func (p policyResponse) stable() any {
	p.LastUsedAt, p.State = nil, ""
	return p
}

func newPolicyResponse(p *delegating.Policy) policyResponse {
	return policyResponse{registryapi.NewPolicyResponse(p), ownedBy{p.ManagedBy}}
}

func (a *API) allPolicies(ctx context.Context) ([]delegating.Policy, error) {
	return a.use.Policies.List(ctx, authority.Operator())
}

func (a *API) listPolicies(q *request) act {
	key := func(p *delegating.Policy) string { return string(p.ID) }
	return listing[delegating.Policy, policyResponse]{
		name: "policies", key: key, shape: newPolicyResponse, fetch: managing.PageOf(a.allPolicies, key),
	}.handle(q)
}

func (a *API) getPolicy(q *request) act {
	id := policyID(q)
	return oneOf(a.allPolicies, func(p *delegating.Policy) bool { return p.ID == id }, newPolicyResponse,
		"there is no policy of a publisher with this id")
}

func policyID(q *request) registry.PolicyID {
	return registry.PolicyID(strings.ToLower(q.param("id")))
}

func (a *API) addPolicy(q *request) act {
	draft := registryapi.ReadPolicy(q.body())
	if owner := q.body().OptionalText("owner"); owner != "" {
		id, err := auth.ParseUUID[registry.Holder]("owner", owner)
		q.check("owner", err)
		draft.Owner = id
	}
	if len(q.body().Problems()) == 0 {
		q.check("", a.use.Policies.Check(draft))
	}
	return func(ctx context.Context) (answer, error) {
		p, err := a.use.Policies.Add(ctx, authority.Operator(), draft)
		return answerWith(http.StatusCreated, p, err, newPolicyResponse)
	}
}

func (a *API) removePolicy(q *request) act {
	id := policyID(q)
	check := conditionOf(q, func(p *publisher.Policy) policyResponse {
		return newPolicyResponse(&delegating.Policy{Policy: *p})
	})
	return func(ctx context.Context) (answer, error) {
		return noContent(), a.use.Policies.Remove(ctx, authority.Operator(), id, check)
	}
}
