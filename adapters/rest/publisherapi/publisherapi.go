// Package publisherapi serves what publishers without a session need: the exchange of proofs for
// tokens below /v0.1/auth and /v0/auth, and the policies of publishers (contract P-1, P-20). The
// use cases that it calls decide what a proof permits.
package publisherapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	proofsPath   = "/auth/"
	policiesPath = "/x/dev.tollgate/publishers"
	idParam      = "id"
)

// prefixes returns the prefixes of all paths: the documented one, and the one that the publishing
// client uses.
func prefixes() [2]string { return [2]string{"/v0.1", "/v0"} }

// Prover exchanges proofs for tokens. *prove.Prover implements it and documents the errors.
type Prover interface {
	Switched() error
	ProveDomain(ctx context.Context, r delegating.DomainRequest) (delegating.Token, error)
	ProveIdentity(ctx context.Context, r delegating.IdentityRequest) (delegating.Token, error)
}

// Policies manages policies. *policies.Service implements it and documents the errors.
type Policies interface {
	Authorize(ctx context.Context, r delegating.Request) error
	Add(ctx context.Context, r delegating.Request, d publisher.Draft) (delegating.Policy, error)
	List(ctx context.Context, r delegating.Request) ([]delegating.Policy, error)
	Remove(ctx context.Context, r delegating.Request, id publisher.PolicyID) error
}

// API is the publishers' part of the API.
type API struct {
	prover   Prover
	policies Policies
}

// New returns the publishers' part of the API.
func New(p Prover, m Policies) *API { return &API{p, m} }

// Mount adds the routes of contract P-1 and P-20.
func (a *API) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		for _, m := range []publisher.Method{publisher.DNS, publisher.HTTP} {
			r.Post(prefix+proofsPath+string(m), a.proveDomain(m))
		}
		for _, m := range []publisher.Method{publisher.OIDC, publisher.GitHubOIDC} {
			r.Post(prefix+proofsPath+string(m), a.proveIdentity(m))
		}
		r.Post(prefix+policiesPath, a.addPolicy)
		r.Get(prefix+policiesPath, a.listPolicies)
		r.Delete(prefix+policiesPath+"/:"+idParam, a.removePolicy)
	}
}

// Name implements rest.Part.
func (*API) Name() string { return "publishers" }

// Owns implements rest.Part.
func (*API) Owns(path string) bool {
	for _, prefix := range prefixes() {
		rest, found := strings.CutPrefix(path, prefix)
		if found && (strings.HasPrefix(rest, proofsPath) || rest == policiesPath || strings.HasPrefix(rest, policiesPath+"/")) {
			return true
		}
	}
	return false
}

// Scope implements rest.Part. The paths belong to the registry.
func (*API) Scope(string, string) throttle.Scope { return throttle.RegistryAddress }

// MaxBody implements rest.Part.
func (*API) MaxBody(string, string) int { return rest.MaxRecordBody }

// WriteFault writes {"error": message}.
func (*API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(map[string]string{"error": f.Message})
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
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(http.StatusOK).JSON(tokenResponse{t.Text, t.ExpiresAt.Unix()})
}

func newClient(c *fiber.Ctx) delegating.Client {
	return delegating.Client{Address: rest.Address(c), Key: rest.Client(c).String()}
}

// proveDomain returns the handler of a proof of a domain.
func (a *API) proveDomain(m publisher.Method) fiber.Handler {
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
func (a *API) proveIdentity(m publisher.Method) fiber.Handler {
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
func (a *API) readProof(c *fiber.Ctx) (*jsonbody.Object, error) {
	if err := a.prover.Switched(); err != nil {
		return nil, err
	}
	return jsonbody.Read(c)
}
