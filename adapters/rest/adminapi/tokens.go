package adminapi

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// tokenResponse is a token. Its secret is in the answer that made it alone.
type tokenResponse struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Prefix       string   `json:"prefix"`
	Scopes       []string `json:"scopes"`
	Networks     []string `json:"networks"`
	CreatedAt    string   `json:"createdAt"`
	ExpiresAt    string   `json:"expiresAt"`
	LastUsedAt   *string  `json:"lastUsedAt"` // null before the first use
	LastUsedFrom *string  `json:"lastUsedFrom"`
	Token        string   `json:"token,omitempty"`
}

func newTokenResponse(t *auth.APIToken) tokenResponse {
	r := tokenResponse{
		ID: string(t.ID), Name: t.Name, Prefix: t.Prefix, Scopes: each.Strings(t.Scopes), Networks: each.Texts(t.Networks),
		CreatedAt: jsonstring.FormatTime(t.CreatedAt), ExpiresAt: jsonstring.FormatTime(t.ExpiresAt),
	}
	if r.LastUsedAt = jsonstring.TimeOrNull(t.LastUsedAt); r.LastUsedAt != nil {
		from := t.LastUsedFrom.String()
		r.LastUsedFrom = &from
	}
	return r
}

// ownerOf returns the owner of the tokens that a request is about.
type ownerOf func(q *request) auth.Owner

// self is the owner of the tokens of the caller.
func self(q *request) auth.Owner { return makerOf(q.who) }

// makerOf returns the caller as who makes a token.
func makerOf(who authority.Caller) auth.Owner {
	holder, _ := who.Person() // the permission of the route refuses others
	return auth.Owner(holder)
}

func (a *API) listTokens(owner ownerOf) handler {
	return func(q *request) act {
		of := owner(q)
		return listing[auth.APIToken, tokenResponse]{
			name: "tokens", key: func(t *auth.APIToken) string { return string(t.ID) }, shape: newTokenResponse,
			fetch: func(ctx context.Context, after string, limit int) ([]auth.APIToken, error) {
				if err := a.requireOwner(ctx, of); err != nil {
					return nil, err
				}
				return a.use.Tokens.List(ctx, of, auth.APITokenID(after), limit)
			},
		}.handle(q)
	}
}

// requireOwner returns fault.NotFound for a service account that does not exist.
func (a *API) requireOwner(ctx context.Context, owner auth.Owner) error {
	name, ok := owner.Service()
	if !ok {
		return nil
	}
	_, err := a.use.Services.Get(ctx, service.Name(name))
	return err
}

func (a *API) addToken(owner ownerOf) handler {
	return func(q *request) act {
		of, b := owner(q), q.body()
		t, err := a.use.Tokens.Parse(auth.APITokenDraft{
			Name: b.PresentText("name"), Scopes: b.Texts("scopes"), ExpiresAt: b.Time("expiresAt"),
			Networks: b.OptionalTexts("networks"),
		})
		q.check("token", err)
		return func(ctx context.Context) (answer, error) {
			if err := q.who.RequireAll(t.Scopes); err != nil {
				return answer{}, err
			}
			if err := q.who.RequireNetworks(t.Networks); err != nil {
				return answer{}, err
			}
			var shape tokenResponse
			add := func(ctx context.Context) (auth.APIToken, error) {
				added, secret, err := a.use.Tokens.Add(ctx, of, makerOf(q.who), t)
				shape = newTokenResponse(&added)
				shape.Token = string(secret)
				return added, err
			}
			id, _ := q.who.Session()
			var err error
			if id == "" { // a token with admin:write makes one of a service account
				_, err = add(ctx)
			} else {
				err = a.use.Credentials.AddToken(ctx, auth.SessionID(id), add)
			}
			return answer{status: http.StatusCreated, body: shape}, err
		}
	}
}

func (a *API) removeToken(owner ownerOf) handler {
	return func(q *request) act {
		of, id := owner(q), auth.APITokenID(q.param("id"))
		return func(ctx context.Context) (answer, error) {
			return noContent(), a.use.Tokens.Remove(ctx, of, id)
		}
	}
}

// session permits people with a session, and refuses tokens: a token must not lead to others.
func session(check func(authority.Caller) error) permission {
	return func(_ context.Context, who authority.Caller) error {
		if who.IsToken() {
			return fault.New(fault.Forbidden, "a token cannot manage the tokens of its owner: sign in")
		}
		return check(who)
	}
}

const serviceTokensPath = root + "/service-accounts/:name/tokens"

func (a *API) mountServices(r fiber.Router) {
	reader, writer := a.operator(adminRead), a.operator(adminWrite)
	r.Get(serviceTokensPath, a.read(reader, a.listTokens(serviceOf)))
	r.Post(serviceTokensPath, a.write(change{audit.AccountChange, "token_add", kindToken}, writer,
		a.addToken(serviceOf)))
	r.Delete(serviceTokensPath+"/:id", a.write(change{audit.AccountChange, "token_remove", kindToken}, writer,
		a.removeToken(serviceOf)))
}

// serviceOf is the service account that the path names.
func serviceOf(q *request) auth.Owner { return auth.ServiceOwner(q.param("name")) }
