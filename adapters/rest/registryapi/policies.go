package registryapi

import (
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// PolicyResponse is a policy as the API shows it (contract P-11, P-20). Fields that do not belong
// to its method are left out.
type PolicyResponse struct {
	ID             string            `json:"id"`
	Method         string            `json:"method"`
	Pattern        string            `json:"pattern"`
	Actions        []string          `json:"actions"`
	Domain         string            `json:"domain,omitempty"`
	KeyFingerprint string            `json:"keyFingerprint,omitempty"`
	Issuer         string            `json:"issuer,omitempty"`
	Subject        string            `json:"subject,omitempty"`
	Claims         map[string]string `json:"claims,omitempty"`
	ExpiresAt      *string           `json:"expiresAt,omitempty"`
	CreatedBy      string            `json:"createdBy"` // the id of a person, or "operator"
	CreatedAt      string            `json:"createdAt"`
	LastUsedAt     *string           `json:"lastUsedAt"` // null before the first use
	State          string            `json:"state"`
}

// NewPolicyResponse returns a policy as the API shows it.
func NewPolicyResponse(p *delegating.Policy) PolicyResponse {
	r := PolicyResponse{
		ID: string(p.ID), Method: string(p.Method), Pattern: p.Pattern.String(),
		Domain: p.Domain.String(), KeyFingerprint: p.Fingerprint.String(),
		Issuer: p.Issuer, Subject: p.Subject.String(), Claims: p.Claims,
		ExpiresAt: jsonstring.TimeOrNull(p.ExpiresAt), CreatedBy: describePerson(p.CreatedBy), CreatedAt: jsonstring.FormatTime(p.CreatedAt),
		LastUsedAt: jsonstring.TimeOrNull(p.LastUsedAt), State: string(p.State),
	}
	for _, action := range p.Actions {
		r.Actions = append(r.Actions, string(action))
	}
	return r
}

// ReadPolicy returns the policy that a body describes.
func ReadPolicy(body *jsonbody.Object) publisher.Draft {
	return publisher.Draft{
		Method: body.Text("method"), Pattern: body.Text("pattern"), Actions: body.Texts("actions"),
		Domain: body.OptionalText("domain"), KeyFingerprint: body.OptionalText("keyFingerprint"),
		Issuer: body.OptionalText("issuer"), Subject: body.OptionalText("subject"), Claims: body.TextMap("claims"),
		ExpiresAt: body.Time("expiresAt"),
	}
}

func (a *Publishers) addPolicy(c *fiber.Ctx, who authority.Caller) error {
	body, err := jsonbody.Read(c)
	if err != nil {
		return err
	}
	draft := ReadPolicy(body)
	if err := body.Err(); err != nil {
		return err
	}
	p, err := a.policies.Add(c.UserContext(), who, draft)
	if err != nil {
		return err
	}
	return sendUncached(c, http.StatusCreated, NewPolicyResponse(&p))
}

func (a *Publishers) listPolicies(c *fiber.Ctx, who authority.Caller) error {
	list, err := a.policies.List(c.UserContext(), who)
	if err != nil {
		return err
	}
	responses := make([]PolicyResponse, len(list))
	for i := range list {
		responses[i] = NewPolicyResponse(&list[i])
	}
	return sendUncached(c, http.StatusOK, map[string][]PolicyResponse{"publishers": responses})
}

func (a *Publishers) removePolicy(c *fiber.Ctx, who authority.Caller) error {
	id := strings.ToLower(strings.Clone(c.Params(policyParam)))
	check := func(p *publisher.Policy) error {
		return registry.CheckByHand(p.ManagedBy, ", or send force=true (--managed of a command)")
	}
	if c.Query("force") == "true" {
		check = nil
	}
	if err := a.policies.Remove(c.UserContext(), who, registry.PolicyID(id), check); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
