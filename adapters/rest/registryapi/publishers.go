package registryapi

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
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
