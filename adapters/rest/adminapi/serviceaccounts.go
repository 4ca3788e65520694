package adminapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry/service"
)

const (
	servicesPath      = root + "/service-accounts"
	servicePath       = servicesPath + "/:name"
	serviceTokensPath = servicePath + "/tokens"
	kindService       = "serviceAccount"
)

func (a *API) mountServices(r fiber.Router) {
	reader, writer := a.operator(adminRead), a.operator(adminWrite)
	r.Get(servicesPath, a.read(reader, a.listServices))
	r.Get(servicePath, a.read(reader, a.getService))
	r.Put(servicePath, a.write(change{audit.AccountChange, "service_put", kindService}, writer, a.putService))
	r.Delete(servicePath, a.write(change{audit.AccountChange, "service_remove", kindService}, writer, a.removeService))
	r.Get(serviceTokensPath, a.read(reader, a.listTokens(serviceOf)))
	r.Post(serviceTokensPath, a.write(change{audit.AccountChange, "token_add", kindToken}, writer,
		a.addToken(serviceOf)))
	r.Delete(serviceTokensPath+"/:id", a.write(change{audit.AccountChange, "token_remove", kindToken}, writer,
		a.removeToken(serviceOf)))
}

// serviceOf is the service account that the path names.
func serviceOf(q *request) auth.Owner { return auth.ServiceOwner(q.param("name")) }

type serviceResponse struct {
	Name        string             `json:"name"`
	Description string             `json:"description"`
	State       string             `json:"state"`
	Workloads   []workloadResponse `json:"workloads"`
	CreatedAt   string             `json:"createdAt"`
	managed
}

type workloadResponse struct {
	Issuer   string            `json:"issuer"`
	Subject  string            `json:"subject"`
	Claims   map[string]string `json:"claims,omitempty"`
	Audience string            `json:"audience,omitempty"`
	Scopes   []string          `json:"scopes"`
}

func newServiceResponse(a *service.Account) serviceResponse {
	r := serviceResponse{
		Name: string(a.Name), Description: a.Description, State: string(a.State), managed: managed{a.ManagedBy},
		Workloads: make([]workloadResponse, len(a.Workloads)), CreatedAt: jsonstring.FormatTime(a.CreatedAt),
	}
	for i, w := range a.Workloads {
		r.Workloads[i] = workloadResponse{
			w.Identity.Issuer, w.Identity.Subject.String(), w.Identity.Claims, w.Audience,
			strings.Fields(w.Scopes.String()),
		}
	}
	return r
}

func (a *API) listServices(q *request) act {
	return listing[service.Account, serviceResponse]{
		name: "serviceAccounts", key: func(a *service.Account) string { return string(a.Name) }, shape: newServiceResponse,
		fetch: func(ctx context.Context, after string, limit int) ([]service.Account, error) {
			return a.use.Services.List(ctx, service.Name(after), limit)
		},
	}.handle(q)
}

func (a *API) getService(q *request) act {
	name := service.Name(q.param("name"))
	return func(ctx context.Context) (answer, error) {
		found, err := a.use.Services.Get(ctx, name)
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusOK, newServiceResponse(&found)), nil
	}
}

func (a *API) putService(q *request) act {
	b := q.body()
	draft := service.Draft{
		Name: q.param("name"), Description: b.OptionalText("description"), State: b.OptionalText("state"),
	}
	for _, w := range b.Objects("workloads") {
		draft.Workloads = append(draft.Workloads, readWorkload(w))
	}
	account, err := a.use.Services.Parse(draft)
	q.check("", err)
	condition := conditionOf(q, newServiceResponse)
	return func(ctx context.Context) (answer, error) {
		stored, created, err := a.use.Services.Put(ctx, q.who, account, condition)
		if err != nil {
			return answer{}, err
		}
		return putObject(created, newServiceResponse(&stored)), nil
	}
}

func readWorkload(w *jsonbody.Object) service.WorkloadDraft {
	return service.WorkloadDraft{
		Issuer: w.Text("issuer"), Subject: w.Text("subject"), Claims: w.TextMap("claims"),
		Audience: w.OptionalText("audience"), Scopes: w.Texts("scopes"),
	}
}

func (a *API) removeService(q *request) act {
	name, condition := service.Name(q.param("name")), conditionOf(q, newServiceResponse)
	return func(ctx context.Context) (answer, error) {
		return noContent(), a.use.Services.Remove(ctx, name, condition)
	}
}
