package adminapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

const (
	viewsPath      = root + "/views"
	viewPath       = viewsPath + "/:name"
	viewTokensPath = viewPath + "/tokens"
)

func (a *API) mountViews(r fiber.Router) {
	read, write := a.operator(adminRead), a.operator(adminWrite)
	of := func(action audit.Action, kind string) change { return change{audit.RegistryChange, action, kind} }
	r.Get(viewsPath, a.read(read, a.listViews))
	r.Get(viewPath, a.read(read, a.getView))
	r.Put(viewPath, a.write(of("view_change", "view"), write, a.putView))
	r.Delete(viewPath, a.write(of("view_remove", "view"), write, a.removeView))
	r.Get(viewTokensPath, a.read(read, a.listViewTokens))
	r.Post(viewTokensPath, a.write(of("view_token_add", "viewToken"), write, a.addViewToken))
	r.Delete(viewTokensPath+"/:id", a.write(of("view_token_remove", "viewToken"), write, a.removeViewToken))
}

type viewResponse struct {
	Name       string   `json:"name"`
	Include    []string `json:"include"`
	Exclude    []string `json:"exclude"`
	Deprecated string   `json:"deprecated"`
	Access     string   `json:"access"`
	People     []string `json:"people"`
	Groups     []string `json:"groups"`
	managed
}

func newViewResponse(v *view.View) viewResponse {
	return viewResponse{
		string(v.Name), registry.PatternTexts(v.Include), registry.PatternTexts(v.Exclude), string(v.Deprecated),
		string(v.Access), append([]string{}, v.Members.People...), append([]string{}, v.Members.Groups...), managed{v.ManagedBy},
	}
}

func (a *API) listViews(q *request) act {
	key := func(v *view.View) string { return string(v.Name) }
	return listing[view.View, viewResponse]{
		name: "views", key: key, shape: newViewResponse, fetch: pageOf(a.use.Views.List, key),
	}.handle(q)
}

func (a *API) getView(q *request) act {
	name := q.param("name")
	return func(ctx context.Context) (answer, error) {
		v, err := a.use.Views.Find(ctx, name)
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusOK, newViewResponse(&v)), nil
	}
}

func (a *API) putView(q *request) act {
	b := q.body()
	draft := view.Draft{
		Name: q.param("name"), Include: b.OptionalTexts("include"), Exclude: b.OptionalTexts("exclude"),
		Deprecated: b.OptionalText("deprecated"), Access: b.OptionalText("access"),
		People: b.OptionalTexts("people"), Groups: b.OptionalTexts("groups"),
	}
	_, err := view.New(draft)
	q.check("", err)
	check := conditionOf(q, newViewResponse)
	return func(ctx context.Context) (answer, error) {
		v, created, err := a.use.Views.Put(ctx, draft, check)
		if err != nil {
			return answer{}, err
		}
		return putObject(created, newViewResponse(&v)), nil
	}
}

func (a *API) removeView(q *request) act {
	name, check := view.Name(q.param("name")), conditionOf(q, newViewResponse)
	return func(ctx context.Context) (answer, error) { return noContent(), a.use.Views.Remove(ctx, name, check) }
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
		name: "tokens", key: key, shape: newViewTokenResponse, fetch: pageOf(tokens, key),
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
