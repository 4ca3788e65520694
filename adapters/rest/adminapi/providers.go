package adminapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

const (
	providersPath = root + "/providers"
	providerPath  = providersPath + "/:name"
	kindProvider  = "provider"
)

func (a *API) mountProviders(r fiber.Router) {
	reader, writer := a.operator(adminRead), a.operator(adminWrite)
	put := change{audit.AccountChange, "provider_put", kindProvider}
	remove := change{audit.AccountChange, "provider_remove", kindProvider}
	test := change{audit.AccountChange, "provider_test", kindProvider}
	r.Get(providersPath, a.read(reader, a.listProviders))
	r.Get(providerPath, a.read(reader, a.getProvider))
	r.Put(providerPath, a.write(put, writer, a.putProvider))
	r.Delete(providerPath, a.write(remove, writer, a.removeProvider))
	r.Post(providerPath+"/test", a.write(test, writer, a.testProvider))
}

// providerResponse is a provider of company sign-in: its fields, as a state in a file has them, and
// what else is known of it.
type providerResponse struct {
	fields audit.Details
	managed
	createdAt string
	condition company.Condition
}

func newProviderResponse(p *company.Provider) providerResponse {
	fields := p.Fields()
	for _, list := range [...]string{"domains", "audiences", "requiredGroups", "groupGrants", "networks"} {
		if fields[list] == nil {
			fields[list] = audit.List{}
		}
	}
	for _, flag := range [...]string{"create", "enforce"} {
		fields[flag] = audit.Flag(fields.Flag(flag))
	}
	fields["secondFactor"] = audit.Details{"acr": audit.Texts(p.ACR), "amr": audit.Texts(p.AMR)}
	fields["hasSecret"] = audit.Flag(len(p.Secret) > 0)
	return providerResponse{fields, managed{p.ManagedBy}, jsonstring.FormatTime(p.CreatedAt), p.Condition}
}

// stable returns the provider without its condition.
func (r providerResponse) stable() any {
	r.condition = company.Condition{}
	return map[string]any{"provider": r.shape()}
}

// MarshalJSON writes the members in the order of their names.
func (r providerResponse) MarshalJSON() ([]byte, error) { return json.Marshal(r.shape()) }

func (r providerResponse) shape() map[string]any {
	shape := map[string]any{
		"managedBy": r.ManagedBy, "createdAt": r.createdAt, "lastSuccessAt": jsonstring.TimeOrNull(r.condition.SucceededAt),
		"lastProblem": r.condition.Problem, "lastProblemAt": jsonstring.TimeOrNull(r.condition.ProblemAt),
	}
	for name, value := range r.fields {
		shape[name] = value
	}
	return shape
}

func (a *API) listProviders(q *request) act {
	key := func(p *company.Provider) string { return string(p.Name) }
	return listing[company.Provider, providerResponse]{
		name: "providers", key: key, shape: newProviderResponse, fetch: pageOf(a.use.Providers.List, key),
	}.handle(q)
}

func (a *API) getProvider(q *request) act {
	name := q.param("name")
	return func(ctx context.Context) (answer, error) {
		p, err := a.use.Providers.Get(ctx, name)
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusOK, newProviderResponse(&p)), nil
	}
}

func (a *API) putProvider(q *request) act {
	b := q.body()
	draft := federating.Draft{Force: q.flag("force")}
	if b.Has("clientSecret") || b.IsNull("clientSecret") {
		secret := b.NullableText("clientSecret")
		draft.ClientSecret = &secret
		if secret != "" {
			q.check("clientSecret", company.CheckSecret(secret))
		}
	}
	var err error
	draft.Provider, err = a.use.Providers.Parse(readProvider(q.param("name"), b))
	q.check("", err)
	condition := conditionOf(q, newProviderResponse)
	return func(ctx context.Context) (answer, error) {
		p, created, err := a.use.Providers.Put(ctx, draft, condition)
		if err != nil {
			return answer{}, err
		}
		return putObject(created, newProviderResponse(&p)), nil
	}
}

// readProvider returns the fields of a body.
func readProvider(name string, b *jsonbody.Object) audit.Details {
	fields := audit.Details{"name": audit.Text(name), "issuer": audit.Text(b.Text("issuer")), "clientId": audit.Text(b.Text("clientId"))}
	for _, text := range [...]string{"displayName", "emailClaim", "groupsClaim", "scopeClaim", "recheck", "maxSession"} {
		fields.Set(text, b.OptionalText(text))
	}
	for _, list := range [...]string{"scopes", "domains", "audiences", "requiredGroups", "networks"} {
		fields[list] = audit.Texts(b.OptionalTexts(list))
	}
	for _, flag := range [...]string{"create", "enforce"} {
		fields[flag] = audit.Flag(b.Has(flag) && b.Flag(flag))
	}
	if b.Has("secondFactor") {
		second := b.Nested("secondFactor")
		fields["secondFactor"] = audit.Details{
			"acr": audit.Texts(second.OptionalTexts("acr")), "amr": audit.Texts(second.OptionalTexts("amr")),
		}
	}
	var grants audit.List
	if b.Has("groupGrants") {
		for _, g := range b.Objects("groupGrants") {
			grants = append(grants, audit.Details{
				"group": audit.Text(g.Text("group")), "action": audit.Text(g.Text("action")),
				"resource": audit.Text(g.Text("resource")),
			})
		}
	}
	fields["groupGrants"] = grants
	return fields
}

func (a *API) removeProvider(q *request) act {
	name, condition := q.param("name"), conditionOf(q, newProviderResponse)
	return func(ctx context.Context) (answer, error) {
		return noContent(), a.use.Providers.Remove(ctx, name, condition)
	}
}

// providerTest is the result of the test of a provider.
type providerTest struct {
	OK    bool           `json:"ok"`
	Steps []providerStep `json:"steps"`
}

type providerStep struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

func (a *API) testProvider(q *request) act {
	name := q.param("name")
	return func(ctx context.Context) (answer, error) {
		steps, err := a.use.Providers.Test(ctx, name)
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusOK, body: newProviderTest(steps)}, nil
	}
}

func newProviderTest(steps []identity.Step) providerTest {
	t := providerTest{OK: true, Steps: make([]providerStep, len(steps))}
	for i, s := range steps {
		t.OK, t.Steps[i] = t.OK && s.OK, providerStep(s)
	}
	return t
}
