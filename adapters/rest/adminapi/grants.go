package adminapi

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/registry"
)

const grantsPath = root + "/grants"

func (a *API) mountGrants(r fiber.Router) {
	r.Get(grantsPath, a.read(a.operator(adminRead), a.listGrants))
}

// grantResponse is a grant: of a person or of a service account.
type grantResponse struct {
	Person   string `json:"person,omitempty"`
	Service  string `json:"service,omitempty"`
	Action   string `json:"action"`
	Resource string `json:"resource"`
}

func newGrantResponse(g *registry.Grant) grantResponse {
	response := grantResponse{Person: string(g.Holder), Action: string(g.Action), Resource: g.Pattern.String()}
	if name, ok := strings.CutPrefix(response.Person, "service:"); ok {
		response.Person, response.Service = "", name
	}
	return response
}

func (a *API) listGrants(q *request) act {
	return listing[registry.Grant, grantResponse]{
		name: "grants", key: grantKey, shape: newGrantResponse,
		fetch: func(ctx context.Context, after string, limit int) ([]registry.Grant, error) {
			g, err := parseGrantKey(after)
			if err != nil {
				return nil, err
			}
			return a.use.Grants.List(ctx, g, limit)
		},
	}.handle(q)
}

// grantKey returns the holder, action and pattern of a grant in one text.
func grantKey(g *registry.Grant) string {
	return strings.Join([]string{string(g.Holder), string(g.Action), g.Pattern.String()}, "\x00")
}

// parseGrantKey returns the grant of a key; the zero value for the empty key.
func parseGrantKey(key string) (registry.Grant, error) {
	parts := strings.Split(key, "\x00")
	if len(parts) < 3 {
		return registry.Grant{}, nil
	}
	return registry.ParseGrant(registry.Holder(parts[0]), parts[1], parts[2])
}
