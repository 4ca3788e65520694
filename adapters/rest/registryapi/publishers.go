package registryapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const (
	proofsPath   = "/auth/"
	policiesPath = "/x/dev.tollgate/publishers"
	policyParam  = "id"
)

// Prover exchanges proofs for tokens. *delegating.Prover documents the errors; the service passes
// it with metrics, which another adapter counts.
type Prover interface {
	Switched() error
	ProveDomain(ctx context.Context, r delegating.DomainRequest) (delegating.Token, error)
	ProveIdentity(ctx context.Context, r delegating.IdentityRequest) (delegating.Token, error)
}

// Publishers is the part of the API for publishers without a session: the exchange of proofs for
// tokens, and policies (contract P-1, P-20). The use cases decide what a proof permits.
type Publishers struct {
	part
	callers
	prover   Prover
	policies *delegating.Policies
}

// NewPublishers returns the part of the API for publishers.
func NewPublishers(a authority.Authority, r Resource, p Prover, m *delegating.Policies) *Publishers {
	return &Publishers{part{"publishers", []string{proofsPath, policiesPath}, r}, callers{a}, p, m}
}

// Mount adds the routes of contract P-1 and P-20.
func (a *Publishers) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		for _, m := range []publisher.Method{publisher.DNS, publisher.HTTP} {
			r.Post(prefix+proofsPath+string(m), a.proveDomain(m))
		}
		for _, m := range []publisher.Method{publisher.OIDC, publisher.GitHubOIDC} {
			r.Post(prefix+proofsPath+string(m), a.proveIdentity(m))
		}
		r.Post(prefix+policiesPath, a.only(delegating.RequireMaker, a.addPolicy))
		r.Get(prefix+policiesPath, a.known(a.listPolicies))
		r.Delete(prefix+policiesPath+"/:"+policyParam, a.known(a.removePolicy))
	}
}

// tokenResponse is the response to a proof (contract P-2).
type tokenResponse struct {
	Token     string `json:"registry_token"`
	ExpiresAt int64  `json:"expires_at"` // Unix seconds
}

func sendToken(c *fiber.Ctx, t delegating.Token, err error) error {
	if err != nil {
		return err
	}
	return sendUncached(c, http.StatusOK, tokenResponse{t.Text, t.ExpiresAt.Unix()})
}

func newClient(c *fiber.Ctx) delegating.Client {
	return delegating.Client{Address: rest.Address(c), Key: rest.Client(c).String()}
}

// proveDomain returns the handler of a proof of a domain.
func (a *Publishers) proveDomain(m publisher.Method) fiber.Handler {
	return func(c *fiber.Ctx) error {
		body, err := a.readProof(c)
		if err != nil {
			return err
		}
		r := delegating.DomainRequest{
			Client: newClient(c), Method: m,
			Domain: body.Text("domain"), Timestamp: body.Text("timestamp"), Signature: body.Text("signed_timestamp"),
		}
		if err := body.Err(); err != nil {
			return err
		}
		token, err := a.prover.ProveDomain(c.UserContext(), r)
		return sendToken(c, token, err)
	}
}

// proveIdentity returns the handler of a proof by ID token.
func (a *Publishers) proveIdentity(m publisher.Method) fiber.Handler {
	return func(c *fiber.Ctx) error {
		body, err := a.readProof(c)
		if err != nil {
			return err
		}
		r := delegating.IdentityRequest{Client: newClient(c), Method: m, Token: body.Text("oidc_token")}
		if err := body.Err(); err != nil {
			return err
		}
		token, err := a.prover.ProveIdentity(c.UserContext(), r)
		return sendToken(c, token, err)
	}
}

// readProof reads the body of a proof. While proofs are off it returns fault.NotFound before it
// looks at the body.
func (a *Publishers) readProof(c *fiber.Ctx) (*jsonbody.Object, error) {
	if err := a.prover.Switched(); err != nil {
		return nil, err
	}
	return jsonbody.Read(c)
}

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
	return PolicyResponse{
		ID: string(p.ID), Method: string(p.Method), Pattern: p.Pattern.String(),
		Domain: p.Domain.String(), KeyFingerprint: p.Fingerprint.String(),
		Issuer: p.Issuer, Subject: p.Subject.String(), Claims: p.Claims,
		ExpiresAt: jsonstring.TimeOrNull(p.ExpiresAt), CreatedBy: describePerson(p.CreatedBy), CreatedAt: jsonstring.FormatTime(p.CreatedAt),
		LastUsedAt: jsonstring.TimeOrNull(p.LastUsedAt), State: string(p.State), Actions: each.Strings(p.Actions),
	}
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
	responses := each.MapRef(list, NewPolicyResponse)
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
