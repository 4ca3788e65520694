package adminapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const grantsPath = root + "/grants"

func (a *API) mountGrants(r fiber.Router) {
	add, remove := change{audit.AccountChange, "grant_add", "grant"}, change{audit.AccountChange, "grant_remove", "grant"}
	r.Get(grantsPath, a.read(a.operator(adminRead), a.listGrants))
	r.Post(grantsPath, a.write(add, a.operator(adminWrite), a.addGrant))
	r.Delete(grantsPath+"/:id", a.write(remove, a.operator(adminWrite), a.removeGrant))
}

// grantResponse is a grant: of a person or of a service account.
type grantResponse struct {
	ID       string `json:"id"`
	Person   string `json:"person,omitempty"`
	Service  string `json:"service,omitempty"`
	Action   string `json:"action"`
	Resource string `json:"resource"`
	Origin   string `json:"origin"`
	ownedBy
}

func newGrantResponse(g *registry.GrantRecord) grantResponse {
	response := grantResponse{
		ID: string(g.ID), Person: string(g.Holder), Action: string(g.Action), Resource: g.Pattern.String(),
		Origin: g.Origin(),
	}
	if g.Provider() == "" {
		response.ManagedBy = g.ManagedBy
	}
	if name, ok := g.Holder.Service(); ok {
		response.Person, response.Service = "", name
	}
	return response
}

func (a *API) listGrants(q *request) act {
	return listing[registry.GrantRecord, grantResponse]{
		name: "grants", key: grantKey, shape: newGrantResponse,
		fetch: func(ctx context.Context, after string, limit int) ([]registry.GrantRecord, error) {
			g, err := parseGrantKey(after)
			if err != nil {
				return nil, err
			}
			return a.use.Grants.Records(ctx, registrystore.GrantQuery{After: g, Limit: limit})
		},
	}.handle(q)
}

// grantKey returns the holder, action, pattern and provider of a grant in one text.
func grantKey(g *registry.GrantRecord) string {
	return strings.Join([]string{string(g.Holder), string(g.Action), g.Pattern.String(), g.Provider()}, "\x00")
}

// parseGrantKey returns the grant of a key; the zero value for the empty key.
func parseGrantKey(key string) (g registry.GrantRecord, err error) {
	if parts := strings.Split(key, "\x00"); len(parts) == 4 {
		g.ManagedBy = parts[3]
		g.Grant, err = registry.ParseGrant(registry.Holder(parts[0]), parts[1], parts[2])
	}
	return g, err
}

func (a *API) addGrant(q *request) act {
	holder := q.holder()
	g, err := registry.ParseGrant(holder, q.body().Text("action"), q.body().OptionalText("resource"))
	q.check("", err)
	if len(q.problems) == 0 {
		q.named = g.Object().Key
	}
	return func(ctx context.Context) (answer, error) {
		if err := a.checkHolder(ctx, holder); err != nil {
			return answer{}, err
		}
		stored, err := a.use.GrantChanges.Create(ctx, registry.GrantRecord{Grant: g})
		return answerWith(http.StatusCreated, stored, err, newGrantResponse)
	}
}

// holder returns the holder of a grant: one of the members person and service.
func (q *request) holder() registry.Holder {
	person, name := q.body().OptionalText("person"), q.body().OptionalText("service")
	switch {
	case (person == "") == (name == ""):
		q.check("person", fault.New(fault.Invalid, "or service is required, and not both"))
	case person != "":
		id, err := auth.ParseUUID[auth.UserID]("person", person)
		q.check("person", err)
		return registry.Holder(id)
	}
	return registry.ServiceHolder(name)
}

// checkHolder returns fault.Violated unless the holder of a grant exists.
func (a *API) checkHolder(ctx context.Context, h registry.Holder) error {
	var err error
	if name, ok := h.Service(); ok {
		_, err = a.use.Services.Get(ctx, service.Name(name))
	} else {
		_, err = a.use.Accounts.Get(ctx, auth.UserID(h))
	}
	if fault.Is(err, fault.NotFound) {
		return fault.Violated("there is no such person or service account")
	}
	return err
}

func (a *API) removeGrant(q *request) act {
	id, check := registry.GrantID(strings.ToLower(q.param("id"))), conditionOf(q, newGrantResponse)
	q.find = func(ctx context.Context) string {
		g, err := a.use.GrantChanges.Find(ctx, id)
		if err != nil {
			return "" // the key is what the path has
		}
		return g.Object().Key
	}
	return func(ctx context.Context) (answer, error) {
		return noContent(), a.use.GrantChanges.RemoveByID(ctx, id, check)
	}
}
