package adminapi

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	mePath       = root + "/me"
	myTokensPath = mePath + "/tokens"
	kindToken    = "token"
)

func (a *API) mountMe(r fiber.Router) {
	known := func(_ context.Context, who authority.Caller) error { _, err := who.Person(); return err }
	reader := session(func(who authority.Caller) error { _, err := who.RequireReader(); return err })
	trusted := session(func(who authority.Caller) error { _, err := who.RequireFullTrust(); return err })
	r.Get(mePath, a.read(known, a.getMe))
	r.Get(myTokensPath, a.read(reader, a.listTokens(self)))
	r.Post(myTokensPath, a.write(change{audit.AccountChange, "token_add", kindToken}, trusted, a.addToken(self)))
	r.Delete(myTokensPath+"/:id", a.write(change{audit.AccountChange, "token_remove", kindToken}, reader,
		a.removeToken(self)))
}

// meResponse is the caller: a person or a service account. TokenPrefix and Scopes are those of the
// token by which it calls.
type meResponse struct {
	ID          string          `json:"id,omitempty"`
	Email       string          `json:"email,omitempty"`
	Name        string          `json:"name"`
	Service     string          `json:"service,omitempty"`
	TrustLevel  string          `json:"trustLevel"`
	TokenPrefix string          `json:"tokenPrefix,omitempty"`
	Scopes      []string        `json:"scopes,omitempty"`
	Grants      []grantResponse `json:"grants"`
}

func (a *API) getMe(q *request) act {
	return func(ctx context.Context) (answer, error) {
		me, err := a.describeCaller(ctx, q.who)
		return answer{status: http.StatusOK, body: me}, err
	}
}

func (a *API) describeCaller(ctx context.Context, who authority.Caller) (me meResponse, err error) {
	holder, err := who.Person()
	if err != nil {
		return me, err
	}
	_, level := who.Session()
	me.TrustLevel = string(level)
	if t, ok := who.Token(); ok {
		me.TokenPrefix, me.Scopes = t.Prefix, each.Strings(t.Scopes)
	}
	if name, ok := holder.Service(); ok {
		me.Service, me.Name = name, name
	} else {
		account, err := a.use.Accounts.Get(ctx, auth.UserID(holder))
		if err != nil {
			return me, err
		}
		me.ID, me.Email, me.Name = string(account.ID), string(account.Email), account.Name
	}
	grants, err := a.use.Grants.Records(ctx, registrystore.GrantQuery{Holders: []registry.Holder{holder}})
	me.Grants = each.MapRef(grants, newGrantResponse)
	return me, err
}

type overviewResponse struct {
	Status       string            `json:"status"` // of /ready: ok, degraded or unavailable
	Dependencies map[string]string `json:"dependencies"`
	Plugins      []pluginResponse  `json:"plugins"`
	Mirrors      int               `json:"mirrors"`
	Webhooks     int               `json:"webhooks"`
	Pending      int               `json:"pendingEvents"`
	Dead         int               `json:"deadEvents"`
	Warnings     []warning         `json:"warnings"`
}

type pluginResponse struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Version   string `json:"version"`
	State     string `json:"state"`
	Restarts  int    `json:"restarts"`
	LastError string `json:"lastError,omitempty"`
}

// warning is something that fails.
type warning struct {
	Kind    string `json:"kind"` // mirror_failing or events_dead
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

func (a *API) getOverview(*request) act {
	return func(ctx context.Context) (answer, error) {
		o, err := a.use.Overview.Read(ctx)
		if err != nil {
			return answer{}, err
		}
		response := overviewResponse{
			Status: o.Status, Dependencies: o.Dependencies, Plugins: []pluginResponse{}, Mirrors: o.Mirrors,
			Webhooks: o.Webhooks, Pending: o.Pending, Dead: o.Dead, Warnings: []warning{},
		}
		for _, p := range o.Plugins {
			response.Plugins = append(response.Plugins, pluginResponse{
				p.Name, p.Kind, p.Version, p.State, p.Restarts, p.LastError,
			})
		}
		for _, m := range o.Failing {
			response.Warnings = append(response.Warnings, warning{"mirror_failing", string(m.Name), m.State.Reason})
		}
		if o.Dead > 0 {
			response.Warnings = append(response.Warnings, warning{"events_dead", "", "events could not be delivered"})
		}
		return answer{status: http.StatusOK, body: response}, nil
	}
}
