package account

import (
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
)

const usagePath = Path + "/access"

var usagePage = site.NewPage(templates, "templates/usage.html")

// usagesPerPage is how many servers a page lists at most.
const usagesPerPage = 50

// usageView is the page with the servers that the person may use.
type usageView struct {
	deciding.UsagePage

	Level site.Level
	Later bool   // it is not the first page
	Next  string // the address of the next page; empty on the last one
}

func (p *Pages) mountUsage(r fiber.Router) {
	r.Get(usagePath, p.site.Require(auth.Unverified, p.showUsage))
}

func (p *Pages) showUsage(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	after := v.Text("after")
	page, err := p.ports.Access.Usage(v.UserContext(), who, after, usagesPerPage)
	if err != nil {
		return err
	}
	view := usageView{UsagePage: page, Level: site.LevelOf(v.Session.TrustLevel), Later: after != ""}
	if page.Next != "" {
		view.Next = usagePath + "?" + url.Values{"after": {page.Next}}.Encode()
	}
	return v.Render(usagePage, site.Head{Title: "What may I use"}, view)
}
