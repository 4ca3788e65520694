package account

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
)

const revokeApplicationPath = site.ApplicationsPath + "/:id/revoke"

var applicationsPage = site.NewPage(templates, "templates/applications.html")

// Applications are the use cases for applications with access: methods of authorizing.Service, which documents
// the errors. Both are nil without the authorization server.
type Applications struct {
	List   func(ctx context.Context, user auth.UserID) ([]authorizing.Application, error)
	Remove func(ctx context.Context, session auth.Session, id oauth.FamilyID) error
}

func (p *Pages) mountApplications(r fiber.Router) {
	if p.ports.Applications.List == nil {
		p.site.Hide(site.ApplicationsPath)
		return
	}
	r.Get(site.ApplicationsPath, p.site.Require(auth.Unverified, p.showApplications))
	p.site.Post(r, revokeApplicationPath, 2, site.Act{
		Level: auth.Unverified, Title: "Revoke the access of this application", Do: withID(p.revokeApplication),
	})
}

// applicationView is an application with access in words.
type applicationView struct {
	authorizing.Application

	Host string // of its id; empty for one that is registered here
}

func (p *Pages) showApplications(v *site.Visit) error {
	all, err := p.ports.Applications.List(v.UserContext(), v.Session.UserID)
	if err != nil {
		return err
	}
	view := make([]applicationView, len(all))
	for i := range all {
		view[i].Application = all[i]
		if u, err := url.Parse(string(all[i].Client)); err == nil && all[i].Client.IsURL() {
			view[i].Host = u.Host
		}
	}
	return v.Render(applicationsPage, site.Head{Title: "Applications with access", Notice: notices[v.Text("done")]}, view)
}

func (p *Pages) revokeApplication(v *site.Visit, id oauth.FamilyID) error {
	return v.Done(p.ports.Applications.Remove(v.UserContext(), v.Session, id), site.ApplicationsPath, "application")
}
