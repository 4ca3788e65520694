// Package operating has the pages on which people with the grant operate do what operator commands do.
package operating

import (
	"context"
	"embed"
	"maps"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/operate"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

//go:embed templates
var templates embed.FS

// Path is the path of the first page.
const Path = site.Root + "operator"

// Authorizer decides who may operate. *operate.Authorizer implements it.
type Authorizer interface {
	Authorize(ctx context.Context, r operate.Request) (registry.Holder, error)
}

// People are the accounts. *people.Service implements it and documents the errors.
type People interface {
	List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error)
	ByEmail(ctx context.Context, email auth.Email) (auth.Account, error)
	Lock(ctx context.Context, email auth.Email) error
	Unlock(ctx context.Context, email auth.Email) error
	Disable(ctx context.Context, email auth.Email) error
	Enable(ctx context.Context, email auth.Email) error
}

// Sessions are the sessions and devices of all people. *devices.Operator implements it.
type Sessions interface {
	ListDevices(ctx context.Context, of auth.UserID) ([]auth.Device, error)
	ListSessions(ctx context.Context, of auth.UserID) ([]auth.Session, error)
	EndAllSessions(ctx context.Context, of auth.UserID) (int, error)
}

// Grants are what people may do. A store of grants implements it.
type Grants interface {
	Of(ctx context.Context, holder registry.Holder) ([]registry.Grant, error)
	List(ctx context.Context, after registry.Grant, limit int) ([]registry.Grant, error)
}

// GrantChanges changes grants. *grants.Operator implements it.
type GrantChanges interface {
	Add(ctx context.Context, g registry.Grant) error
	Remove(ctx context.Context, g registry.Grant) error
}

// Policies are the policies of publishers. *policies.Operator implements it.
type Policies interface {
	List(ctx context.Context) ([]delegating.Policy, error)
	Remove(ctx context.Context, id publisher.PolicyID) error
}

// Views are parts of the registry. *views.Operator implements it.
type Views interface {
	Add(ctx context.Context, d view.Draft) (view.View, error)
	List(ctx context.Context) ([]view.View, error)
	Remove(ctx context.Context, name view.Name) error
}

// Mirrors are other registries whose servers are taken over. *mirrors.Operator implements it.
type Mirrors interface {
	List(ctx context.Context) ([]mirror.Mirror, error)
}

// Webhooks are receivers of events. *events.Operator implements it.
type Webhooks interface {
	List(ctx context.Context) ([]notifying.Listed, error)
	Redeliver(ctx context.Context, id event.WebhookID, of event.ID) (int, error)
	Remove(ctx context.Context, id event.WebhookID) error
}

// Trail is the audit log of all people. *audit.Trail implements it.
type Trail interface {
	Search(ctx context.Context, user auth.UserID, q audit.Query) (audit.Page, error)
}

// Ports are the use cases that the pages call.
type Ports struct {
	Authorizer   Authorizer
	People       People
	Sessions     Sessions
	Grants       Grants
	GrantChanges GrantChanges
	Policies     Policies
	Views        Views
	Mirrors      Mirrors
	Webhooks     Webhooks
	Trail        Trail
	Limits       *Limits // nil if the part for rate limits does not run
	// Plugins returns the state of each plugin.
	Plugins func() []Plugin
	// Dependencies returns the state of each dependency, as /ready does.
	Dependencies func(ctx context.Context) (status string, states map[string]string)
}

// Plugin is the state of a plugin.
type Plugin struct {
	Name, Kind, Version, State, LastError string
	Restarts                              int
}

// Pages are the pages of operators. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages { return &Pages{s, p} }

// handler serves a page to an operator. Its context names the operator as the actor of changes.
type handler func(ctx context.Context, v *site.Visit) error

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(Path, p.page(p.overview))
	p.mountPeople(r)
	p.mountGrants(r)
	p.mountRegistry(r)
	r.Get(limitsPath, p.page(p.limits))
	r.Get(riskPath, p.page(p.risk))
	r.Get(logPath, p.page(p.log))
}

// page returns the handler of a page for operators.
func (p *Pages) page(h handler) fiber.Handler {
	return p.site.Require(auth.Unverified, p.authorized(h))
}

// act returns the act of a form of operators.
func (p *Pages) act(title string, do handler, show func(ctx context.Context, v *site.Visit, problems site.Problems) error) site.Act {
	a := site.Act{Level: auth.Unverified, Title: title, Do: p.authorized(do)}
	if show != nil {
		a.Show = func(v *site.Visit, problems site.Problems) error {
			return p.authorized(func(ctx context.Context, v *site.Visit) error { return show(ctx, v, problems) })(v)
		}
	}
	return a
}

func (p *Pages) authorized(h handler) site.Handler {
	return func(v *site.Visit) error {
		token, err := v.Token()
		if err != nil {
			return err
		}
		who, err := p.ports.Authorizer.Authorize(v.UserContext(), operate.Request{Token: token, Address: rest.Address(v.Ctx)})
		if err != nil {
			return err
		}
		return h(audit.By(v.UserContext(), auth.UserID(who)), v)
	}
}

var overviewPage = site.ParsePage(templates, "templates/overview.html")

// overviewView is the first page.
type overviewView struct {
	Status       string
	Dependencies map[string]string
	Plugins      []Plugin
	Failing      []mirror.Mirror
	Dead         int // events that could not be delivered
}

func (p *Pages) overview(ctx context.Context, v *site.Visit) error {
	view := overviewView{Plugins: p.ports.Plugins()}
	var states map[string]string
	view.Status, states = p.ports.Dependencies(ctx)
	view.Dependencies = maps.Clone(states)
	for _, one := range view.Plugins { // they have a table of their own
		delete(view.Dependencies, one.Name)
	}
	if err := p.addFailures(ctx, &view); err != nil {
		return err
	}
	return v.Render(overviewPage, site.Head{Title: "Operator"}, view)
}

// addFailures adds the mirrors that fail and the number of events that could not be delivered.
func (p *Pages) addFailures(ctx context.Context, view *overviewView) error {
	all, err := p.ports.Mirrors.List(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.State.Health() == mirror.Failing {
			view.Failing = append(view.Failing, m)
		}
	}
	webhooks, err := p.ports.Webhooks.List(ctx)
	for _, w := range webhooks {
		view.Dead += w.Dead
	}
	return err
}

// notices say what has just been done.
var notices = map[string]string{
	"locked": "The account is locked: nobody can sign in with it.", "unlocked": "The account is unlocked.",
	"disabled": "The account is disabled, and its sessions are ended.", "enabled": "The account is enabled.",
	"ended": "The sessions are ended.", "granted": "The grant is added.", "revoked": "The grant is removed.",
	"policy": "The policy is removed.", "view": "The view is added.", "unviewed": "The view is removed.",
	"redelivered": "The events are sent again.", "webhook": "The webhook is removed.",
}
