package operating

import (
	"context"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

const (
	grantsPath      = Path + "/grants"
	removeGrantPath = grantsPath + "/remove"
)

var grantsPage = site.ParsePage(templates, "templates/grants.html")

func (p *Pages) mountGrants(r fiber.Router) {
	r.Get(grantsPath, p.page(func(ctx context.Context, v *site.Visit) error { return p.grants(ctx, v, nil) }))
	p.site.Post(r, grantsPath, 0, p.act("Add this grant", p.addGrant, p.grants))
	p.site.Post(r, removeGrantPath, 1, p.act("Remove this grant", p.removeGrant, nil))
}

// grantsView is the page with the grants.
type grantsView struct {
	Grants                  []registry.Grant
	Next                    string
	Later                   bool
	Email, Action, Resource string // as the form was filled in
}

func (p *Pages) grants(ctx context.Context, v *site.Visit, problems site.Problems) error {
	after, err := readGrant(v.Text("holder"), v.Text("action"), v.Text("resource"))
	if err != nil {
		return err
	}
	all, err := p.ports.Grants.List(ctx, after, perPage+1)
	if err != nil {
		return err
	}
	view := grantsView{
		Grants: all[:min(len(all), perPage)], Later: after != (registry.Grant{}),
		Email: v.Form.Get("email"), Action: v.Form.Get("action"), Resource: v.Form.Get("resource"),
	}
	if len(all) > perPage {
		last := all[perPage-1]
		view.Next = grantsPath + "?" + url.Values{
			"holder": {string(last.Holder)}, "action": {string(last.Action)}, "resource": {last.Pattern.String()},
		}.Encode()
	}
	return v.Render(grantsPage, site.Head{Title: "Grants", Notice: notices[v.Text("done")], Problems: problems}, view)
}

// readGrant returns the grant after which a page begins; the zero value for the first page.
func readGrant(holder, action, resource string) (registry.Grant, error) {
	if holder == "" {
		return registry.Grant{}, nil
	}
	return registry.ParseGrant(registry.Holder(holder), action, resource)
}

// formGrant returns the grant that a form describes.
func (p *Pages) formGrant(ctx context.Context, v *site.Visit) (registry.Grant, error) {
	email, err := auth.ParseEmail(v.Form.Get("email"))
	if err != nil {
		return registry.Grant{}, auth.InvalidField(auth.CodeInvalidInput, "email", "must be an e-mail address")
	}
	g, err := registry.ParseGrant("", v.Form.Get("action"), strings.TrimSpace(v.Form.Get("resource")))
	if err != nil {
		return registry.Grant{}, err
	}
	a, err := p.ports.People.ByEmail(ctx, email)
	if fault.Is(err, fault.NotFound) { // the form is at fault, not the address
		err = auth.InvalidField(auth.CodeInvalidInput, "email", "has no account")
	}
	g.Holder = registry.Holder(a.ID)
	return g, err
}

func (p *Pages) addGrant(ctx context.Context, v *site.Visit) error {
	g, err := p.formGrant(ctx, v)
	if err == nil {
		err = p.ports.GrantChanges.Add(ctx, g)
	}
	if err != nil {
		return err
	}
	return v.Redirect(grantsPath + "?done=granted")
}

func (p *Pages) removeGrant(ctx context.Context, v *site.Visit) error {
	g, err := p.formGrant(ctx, v)
	if err == nil {
		err = p.ports.GrantChanges.Remove(ctx, g)
	}
	if err != nil {
		return err
	}
	return v.Redirect(grantsPath + "?done=revoked")
}
