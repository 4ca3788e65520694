package operating

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
)

// RequestsPath is the path of the list of requests for rights.
const RequestsPath = Path + "/requests"

var (
	requestsPage = site.NewPage(templates, "templates/requests.html", "templates/broad.html")
	requestPage  = site.NewPage(templates, "templates/rightrequest.html", "templates/broad.html")
)

func (p *Pages) mountRequests(r fiber.Router) {
	r.Get(RequestsPath, p.page(p.requests))
	p.open(r, RequestsPath+"/:id", p.request)
	p.site.Post(r, RequestsPath+"/:id", 0, p.act("Decide about this request", p.decideRequest, p.request))
}

// requestsView is the page with the requests that wait, the first ones first.
type requestsView struct {
	Requests []registry.RightRequest
	More     bool
}

func (p *Pages) requests(ctx context.Context, v *site.Visit) error {
	all, err := p.ports.Asked.Waiting(ctx, perPage+1)
	if err != nil {
		return err
	}
	return v.Render(requestsPage, newHead(v, "Requests for rights", nil), requestsView{all[:min(len(all), perPage)], len(all) > perPage})
}

// requestView is the page of a request.
type requestView struct {
	registry.RightRequest

	Own    bool // somebody else decides
	Decide site.FormView
}

func (p *Pages) request(ctx context.Context, v *site.Visit, problems site.Problems) error {
	r, err := p.ports.Asked.Find(ctx, key[registry.RightRequestID](v, "id"))
	if err != nil {
		return err
	}
	view := requestView{r, r.Holder == registry.Holder(v.Session.UserID), v.Fill(site.Form{
		Action: RequestsPath + "/" + string(r.ID), Inputs: []site.Input{
			{Name: "resource", Label: "Servers", Required: true, Hint: "As asked, or less."},
			{Name: "comment", Label: "Comment", Kind: "area", Hint: "For the person. Required to decline."},
		},
	}, url.Values{"resource": {r.Pattern.String()}}, problems)}
	return v.Render(requestPage, newHead(v, "Request of "+r.Email, problems, view.Decide), view)
}

// decideRequest grants or declines the request in the path.
func (p *Pages) decideRequest(ctx context.Context, v *site.Visit) error {
	act := v.Form.Get("act")
	if act != "granted" && act != "declined" {
		return fault.New(fault.Invalid, "choose to grant or to decline")
	}
	err := p.ports.Asked.Decide(ctx, key[registry.RightRequestID](v, "id"), delegating.RightDecision{
		By: registry.Holder(v.Session.UserID), Grant: act == "granted", Resource: v.Trimmed("resource"), Comment: v.Form.Get("comment"),
	})
	return v.Done(err, RequestsPath, act)
}
