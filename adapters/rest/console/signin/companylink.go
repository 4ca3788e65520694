package signin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
)

const (
	accountPath   = site.Root + "account"
	linkPath      = accountPath + "/companies/link"
	beginLinkPath = accountPath + "/companies/:name/link"

	stateField = "state" // names the question
)

var linkPage = site.NewPage(templates, "templates/link.html")

func (p *Pages) mountCompanyLink(r fiber.Router) {
	r.Get(linkPath, p.site.Require(auth.FullTrust, func(v *site.Visit) error { return p.askLink(v, nil) }))
	p.site.Post(r, linkPath, 0, site.Act{
		Level: auth.FullTrust, Title: "Link this company sign-in", Do: p.link, Show: p.askLink,
	})
	p.site.Post(r, beginLinkPath, 3, site.Act{
		Level: auth.FullTrust, Title: "Link this company sign-in", Do: p.beginLink,
	})
}

// beginLink begins a sign-in whose identity is linked to the person.
func (p *Pages) beginLink(v *site.Visit) error {
	name, err := v.Param("name")
	if err != nil {
		return err
	}
	return p.offerLeave(v, federating.Start{Provider: name, Link: &v.Session},
		"Sign in there as the person whom you want to link. You are asked again before it is linked.", accountPath)
}

// linkView is the page that asks whether an identity is to be linked.
type linkView struct {
	federating.Question

	State, Person string
}

// askLink asks whether the identity with which the person has come back is to be linked.
func (p *Pages) askLink(v *site.Visit, problems site.Problems) error {
	state := v.Form.Get(stateField)
	if state == "" {
		state = v.Text(stateField)
	}
	q, err := p.ports.Companies.Question(v.UserContext(), v.Session.ID, federating.Cookie(v.CompanyCookie()), state)
	if err != nil {
		return err
	}
	return v.Render(linkPage, site.Head{Title: "Link a company sign-in", Problems: problems},
		linkView{q, state, string(v.Account.Email)})
}

// link links the identity of a question, as the person has answered.
func (p *Pages) link(v *site.Visit) error {
	cookie, err := p.ports.Companies.Link(v.UserContext(), v.Session.ID, rest.Address(v.Ctx),
		federating.Cookie(v.CompanyCookie()), v.Form.Get(stateField))
	if err != nil {
		return err
	}
	v.SetCompanyCookie(string(cookie), federating.BegunTTL)
	return v.Redirect(accountPath + "?done=linked")
}
