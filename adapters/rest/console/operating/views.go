package operating

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

const (
	viewsPath = Path + "/views"
	viewPath  = viewsPath + "/:name"
)

var (
	viewsPage = site.NewPage(templates, "templates/views.html")
	viewPage  = site.NewPage(templates, "templates/view.html")
)

// viewInputs returns the fields of a view without its name.
func (p *Pages) viewInputs() []site.Input {
	inputs := inputsOf(view.Kind.Fields)
	for i := range inputs {
		if inputs[i].Name == "access" && p.site.IsPrivate() {
			inputs[i].Hint = "A view for everybody is public, although reading the registry needs a sign-in."
		}
	}
	return inputs
}

var nameInput = site.Input{Name: "name", Label: "Name", Required: true}

func (p *Pages) mountViews(r fiber.Router) {
	p.mountKind(r, kindPages{
		Objects: p.ports.Views.Objects(), list: p.views, page: p.view, path: viewsPath, added: "view", removed: "unviewed",
	})
	p.site.Post(r, viewPath+"/tokens", 1, p.act("Make this token", p.addViewToken, p.view))
	p.site.Post(r, viewPath+"/tokens/:token/remove", 3, p.act("Remove this token", p.removeViewToken, nil))
}

// viewsView is the page with the views.
type viewsView struct {
	Views []view.View
	Add   site.FormView
	// Private is true if reading the registry needs a caller.
	Private bool
}

func (p *Pages) views(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Views.List(ctx)
	if err != nil {
		return err
	}
	add := v.Fill(site.Form{
		Action: viewsPath, Button: "Add this view", Inputs: append([]site.Input{nameInput}, p.viewInputs()...),
	}, nil, problems)
	return v.Render(viewsPage, newHead(v, "Views", problems, add), viewsView{all, add, p.site.IsPrivate()})
}

// viewView is the page of a view.
type viewView struct {
	view.View

	Path          string
	Change, Token site.FormView
	Tokens        []view.Token
}

func (p *Pages) view(ctx context.Context, v *site.Visit, problems site.Problems) error {
	name := key[string](v, "name")
	tokens, err := p.ports.Views.Tokens(ctx, view.Name(name))
	if err != nil {
		return err
	}
	found, err := p.ports.Views.Find(ctx, name)
	if err != nil {
		return err
	}
	setConflict(v, problems, found.ManagedBy)
	page := viewView{View: found, Path: viewsPath + "/" + url.PathEscape(name), Tokens: tokens}
	page.Change = v.Fill(site.Form{
		Action: page.Path, Button: "Save this view", Inputs: p.viewInputs(),
	}, formValues(view.Kind.Fields, found.Fields()), problems)
	page.Token = v.Fill(site.Form{Action: page.Path + "/tokens", Button: "Make this token", Inputs: []site.Input{
		{Name: "token", Label: "Name of the token", Hint: "Who uses it, such as team-data.", Required: true},
	}}, nil, problems)
	return v.Render(viewPage, newHead(v, "View "+name, problems, page.Change, page.Token), page)
}

func (p *Pages) addViewToken(ctx context.Context, v *site.Visit) error {
	name := key[view.Name](v, "name")
	secret, err := p.ports.Views.AddToken(ctx, name, v.Trimmed("token"))
	if err != nil {
		return err
	}
	return v.ShowOnce(site.Secret{
		Title: "The token " + v.Trimmed("token") + " of the view " + string(name), Value: string(secret),
		Hint: "Clients send it in the header Authorization: Bearer, or have it in the path of the view.",
		Back: site.Link{Text: "The view " + string(name), Path: viewsPath + "/" + url.PathEscape(string(name))},
	})
}

func (p *Pages) removeViewToken(ctx context.Context, v *site.Visit) error {
	name := key[view.Name](v, "name")
	err := p.ports.Views.RemoveToken(ctx, name, key[view.TokenName](v, "token"))
	return v.Done(err, viewsPath+"/"+url.PathEscape(string(name)), "untoken")
}
