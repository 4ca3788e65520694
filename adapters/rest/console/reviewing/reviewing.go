// Package reviewing has the pages on which reviewers decide about documents, and put servers in
// quarantine.
package reviewing

import (
	"cmp"
	"context"
	"embed"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

//go:embed templates
var templates embed.FS

var (
	queuePage      = site.NewPage(templates, "templates/queue.html")
	reviewPage     = site.NewPage(templates, "templates/review.html")
	quarantinePage = site.NewPage(templates, "templates/quarantine.html")
)

// The paths of the pages.
const (
	Path           = site.Root + "reviews"
	QuarantinePath = site.Root + "quarantine"

	reviewPath  = Path + "/:id"
	decidePath  = reviewPath + "/decide"
	releasePath = QuarantinePath + "/release"
)

// Ports are the use cases that the pages call.
type Ports struct {
	Reviews    *reviewing.Service
	Quarantine *quarantining.Service
}

// Pages are the pages of reviewers. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages { return &Pages{s, p} }

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(Path, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.queue(v, nil) }))
	p.site.Post(r, Path, 0, site.Act{
		Level: auth.Unverified, Title: "Decide these reviews", Do: p.decideSelected, Show: p.queue,
	})
	r.Get(reviewPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.show(v, nil) }))
	r.Get(reviewPath+"/document", p.site.Require(auth.Unverified, p.document))
	p.site.Post(r, decidePath, 1, site.Act{
		Level: auth.Unverified, Title: "Decide this review", Do: p.decide, Show: p.show,
	})
	r.Get(QuarantinePath,
		p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showQuarantine(v, nil) }))
	p.site.Post(r, QuarantinePath, 0, site.Act{
		Level: auth.Unverified, Title: "Put in quarantine", Do: p.hide, Show: p.showQuarantine,
	})
	p.site.Post(r, releasePath, 1, site.Act{Level: auth.Unverified, Title: "Release from quarantine", Do: p.release})
}

// notices say what has just been done.
var notices = map[string]string{
	"approve": "Approved. The document is listed now.", "approve-tools": "Approved. The tools are the approved ones now.",
	"reject-tools": "Rejected. What was approved before stays approved.", "reject": "Rejected. The submitter is told why.",
	"first":    "Your approval is the first of two. It is listed when another reviewer approves it, too.",
	"changes":  "Changes requested. The submitter is told which.",
	"approved": "Approved. The documents are listed now.", "rejected": "Rejected. The submitters are told why.",
	"hidden": "It is in quarantine, and listed nowhere.", "released": "It is released, and listed as before.",
}

// document sends the whole document of a review.
func (p *Pages) document(v *site.Visit) error {
	who, id, err := p.request(v)
	if err != nil {
		return err
	}
	shown, err := p.ports.Reviews.Get(v.UserContext(), who, id)
	if err != nil {
		return err
	}
	return v.SendJSON(shown.Document)
}

// request returns the caller, and the review in the path.
func (p *Pages) request(v *site.Visit) (authority.Caller, registry.ReviewID, error) {
	id, err := v.Param("id")
	if err != nil {
		return authority.Caller{}, "", err
	}
	who, err := v.Caller()
	return who, registry.ReviewID(id), err
}

// follow leads to the review that follows a decided one; without any, back to that, or to the list after several.
func (p *Pages) follow(v *site.Visit, who authority.Caller, decided review.Shown, done url.Values) error {
	waiting, err := p.ports.Reviews.Waiting(v.UserContext(), who)
	if err != nil {
		return err
	}
	address := Path
	if id := cmp.Or(waiting.After(decided), decided.ID); id != "" {
		address += "/" + url.PathEscape(string(id))
	}
	return v.Redirect(address + "?" + done.Encode())
}

// decide approves or rejects a document, or requests changes of it.
func (p *Pages) decide(v *site.Visit) error {
	who, id, err := p.request(v)
	if err != nil {
		return err
	}
	decision := v.Form.Get("decision")
	do, known := map[string]func(context.Context, authority.Caller, registry.ReviewID, string) (review.Shown, error){
		"approve": p.ports.Reviews.Approve, "reject": p.ports.Reviews.Reject, "changes": p.ports.Reviews.RequestChanges,
	}[decision]
	if !known {
		return fault.New(fault.Invalid, "choose whether to approve, to reject or to request changes")
	}
	decided, err := do(v.UserContext(), who, id, v.Form.Get("comment"))
	if err != nil {
		return err
	}
	return p.follow(v, who, decided, url.Values{"done": {nameNotice(decided, decision)}, "of": {string(id)}})
}

// nameNotice returns the key in notices of what a decision did.
func nameNotice(decided review.Shown, decision string) string {
	switch {
	case decided.State == review.Pending:
		return "first"
	case decided.Kind == review.Tools:
		return decision + "-tools"
	}
	return decision
}
