package operating

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry"
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

// accessInput is the place of the field that says who may read a view.
const accessInput = 3

var viewInputs = [...]site.Input{
	{Name: "include", Label: "Include", Hint: "Patterns such as com.example/*, with spaces between them. Empty for all."},
	{Name: "exclude", Label: "Exclude", Hint: "Patterns, also of what is included."},
	{Name: "deprecated", Label: "Deprecated versions", Kind: "select", Options: []site.Option{
		{Value: "show", Text: "Show"}, {Value: "hide", Text: "Hide"},
	}},
	{Name: "access", Label: "Who may read it", Kind: "select", Options: []site.Option{
		{Value: "public", Text: "Everybody"}, {Value: "token", Text: "Who has a token of it"},
		{Value: "people", Text: "People who are signed in"},
	}},
	{Name: "people", Label: "These people", Kind: "area", Hint: "E-mail addresses, one in each line. With no person and no group, everybody who is signed in."},
	{Name: "groups", Label: "These groups", Kind: "area", Hint: "Groups of company sign-in, such as acme/developers, one in each line."},
}

// viewInputs returns the fields of a view without its name.
func (p *Pages) viewInputs() []site.Input {
	inputs := slices.Clone(viewInputs[:])
	if p.site.IsPrivate() {
		inputs[accessInput].Hint = "A view for everybody is public, although reading the registry needs a sign-in."
	}
	return inputs
}

var nameInput = site.Input{Name: "name", Label: "Name", Required: true}

func (p *Pages) mountViews(r fiber.Router) {
	p.open(r, viewsPath, p.views)
	p.site.Post(r, viewsPath, 0, p.act("Add this view", p.addView, p.views))
	p.open(r, viewPath, p.view)
	p.site.Post(r, viewPath, 0, p.act("Save this view", p.changeView, p.view))
	p.site.Post(r, viewPath+"/remove", 2, p.act("Remove this view", p.removeView, nil))
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
	}, viewValues(&found), problems)
	page.Token = v.Fill(site.Form{Action: page.Path + "/tokens", Button: "Make this token", Inputs: []site.Input{
		{Name: "token", Label: "Name of the token", Hint: "Who uses it, such as team-data.", Required: true},
	}}, nil, problems)
	return v.Render(viewPage, newHead(v, "View "+name, problems, page.Change, page.Token), page)
}

// viewValues returns a view as its form has it.
func viewValues(w *view.View) url.Values {
	return url.Values{
		"include":    {strings.Join(registry.PatternTexts(w.Include), " ")},
		"exclude":    {strings.Join(registry.PatternTexts(w.Exclude), " ")},
		"deprecated": {string(w.Deprecated)}, "access": {string(w.Access)},
		"people": {strings.Join(w.Members.People, "\n")}, "groups": {strings.Join(w.Members.Groups, "\n")},
	}
}

// viewDraft returns the view that a form describes.
func viewDraft(v *site.Visit, name string) view.Draft {
	return view.Draft{
		Name: name, Include: strings.Fields(v.Form.Get("include")), Exclude: strings.Fields(v.Form.Get("exclude")),
		Deprecated: v.Form.Get("deprecated"), Access: v.Form.Get("access"),
		People: formLines(v, "people"), Groups: formLines(v, "groups"),
	}
}

func managerOfView(w *view.View) string { return w.ManagedBy }

func (p *Pages) addView(ctx context.Context, v *site.Visit) error {
	_, _, err := p.ports.Views.Put(ctx, viewDraft(v, v.Trimmed("name")), byHand(false, managerOfView))
	return done(v, err, viewsPath, "view")
}

func (p *Pages) changeView(ctx context.Context, v *site.Visit) error {
	_, _, err := p.ports.Views.Put(ctx, viewDraft(v, key[string](v, "name")), byHand(true, managerOfView))
	return done(v, err, v.Path(), "saved")
}

func (p *Pages) removeView(ctx context.Context, v *site.Visit) error {
	err := p.ports.Views.Remove(ctx, key[view.Name](v, "name"), byHand(true, managerOfView))
	return done(v, err, viewsPath, "unviewed")
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
	return done(v, err, viewsPath+"/"+url.PathEscape(string(name)), "untoken")
}
