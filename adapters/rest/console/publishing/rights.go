package publishing

import (
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
)

const rightsPath = site.Root + "rights"

var rightsPage = site.NewPage(templates, "templates/rights.html")

// rightsView is the page with the requests of a person for rights.
type rightsView struct {
	Requests []registry.RightRequest
	Add      site.FormView
}

func (p *Pages) mountRights(r fiber.Router) {
	r.Get(rightsPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showRights(v, nil) }))
	p.site.Post(r, rightsPath, 0, site.Act{
		Level: auth.Unverified, Title: "Ask for a right", Do: p.askRight, Show: p.showRights, Keep: true,
		Check: func(v *site.Visit) error {
			_, err := rightDraft(v).Parse("")
			return err
		},
	})
}

// rightDraft returns the request of the form.
func rightDraft(v *site.Visit) delegating.RightDraft {
	return delegating.RightDraft{Action: v.Form.Get("action"), Resource: v.Trimmed("resource"), Reason: v.Form.Get("reason")}
}

func (p *Pages) showRights(v *site.Visit, problems site.Problems) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	own, err := p.ports.Rights.Own(v.UserContext(), who)
	if err != nil {
		return err
	}
	view := rightsView{own, v.Fill(site.Form{Action: rightsPath, Button: "Ask for it", Inputs: []site.Input{
		{Name: "action", Label: "To", Kind: "select", Options: site.Options(registry.ActionPublish, registry.ActionEdit, registry.ActionReview)},
		{Name: "resource", Label: "Servers", Required: true, Hint: "A namespace such as com.example/*, or the name of one server."},
		{
			Name: "reason", Label: "What you need it for", Kind: "area", Required: true,
			Hint: "A sentence for the operator, at most 500 characters.",
		},
	}}, url.Values{"action": {v.Text("action")}}, problems)}
	notice := map[string]string{"asked": "The request waits for an operator. You get an e-mail when it is decided."}[v.Text("done")]
	return v.Render(rightsPage, site.Head{Title: "Your requests", Notice: notice, Problems: problems.Among(view.Add)}, view)
}

func (p *Pages) askRight(v *site.Visit) error {
	who, err := v.Caller()
	if err == nil {
		err = p.ports.Rights.Ask(auditing.ByPerson(v.UserContext(), v.Session.UserID), who, rightDraft(v))
	}
	return v.Done(err, rightsPath, "asked")
}
