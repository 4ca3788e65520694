package adminapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

const viewTokensPath = root + "/views/:name/tokens"

func (a *API) mountViews(r fiber.Router) {
	read, write := a.operator(adminRead), a.operator(adminWrite)
	of := func(action audit.Action, kind string) change { return change{audit.RegistryChange, action, kind} }
	r.Get(viewTokensPath, a.read(read, a.listViewTokens))
	r.Post(viewTokensPath, a.write(of("view_token_add", "viewToken"), write, a.addViewToken))
	r.Delete(viewTokensPath+"/:id", a.write(of("view_token_remove", "viewToken"), write, a.removeViewToken))
}

// viewTokenResponse is a token of a view. Its name identifies it.
type viewTokenResponse struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	CreatedAt string `json:"createdAt,omitempty"`
	Token     string `json:"token,omitempty"` // in the answer that made it only
}

func newViewTokenResponse(t *view.Token) viewTokenResponse {
	return viewTokenResponse{ID: string(t.Name), Name: string(t.Name), CreatedAt: jsonstring.FormatTime(t.CreatedAt)}
}

func (a *API) listViewTokens(q *request) act {
	name, key := view.Name(q.param("name")), func(t *view.Token) string { return string(t.Name) }
	tokens := func(ctx context.Context) ([]view.Token, error) { return a.use.Views.Tokens(ctx, name) }
	return listing[view.Token, viewTokenResponse]{
		name: "tokens", key: key, shape: newViewTokenResponse, fetch: managing.PageOf(tokens, key),
	}.handle(q)
}

func (a *API) addViewToken(q *request) act {
	of, name := view.Name(q.param("name")), q.body().Text("name")
	_, err := view.ParseTokenName(name)
	q.check("name", err)
	q.named = strings.TrimSpace(string(of) + " " + name)
	return func(ctx context.Context) (answer, error) {
		secret, err := a.use.Views.AddToken(ctx, of, name)
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusCreated, body: viewTokenResponse{
			ID: name, Name: name, CreatedAt: jsonstring.FormatTime(a.use.Clock.Now()), Token: string(secret),
		}}, nil
	}
}

func (a *API) removeViewToken(q *request) act {
	of, name := view.Name(q.param("name")), view.TokenName(q.param("id"))
	return func(ctx context.Context) (answer, error) {
		return noContent(), a.use.Views.RemoveToken(ctx, of, name)
	}
}
