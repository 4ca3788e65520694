// Package operating has the pages on which people with the grant operate do what operator commands
// do.
package operating

import (
	"context"
	"embed"
	"maps"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

//go:embed templates
var templates embed.FS

// Path is the path of the first page.
const Path = site.Root + "operator"

// Ports are the use cases that the pages call.
type Ports struct {
	Operators    *delegating.Operators
	People       *people.Service
	Sessions     *devices.Operator
	Grants       registrystore.Grants
	GrantChanges *delegating.GrantOperator
	Policies     *delegating.Policies
	Views        *viewing.Operator
	Mirrors      *mirroring.Operator
	Webhooks     *notifying.Operator
	Trail        *auditing.Trail
	Limits       *Limits // nil if the part for rate limits does not run
	Plugins      PluginStates
	Dependencies *rest.Health
}

// PluginStates returns the state of each plugin.
type PluginStates func() []Plugin

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
func (p *Pages) act(
	title string, do handler, show func(ctx context.Context, v *site.Visit, problems site.Problems) error,
) site.Act {
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
		who, err := v.Caller()
		if err != nil {
			return err
		}
		holder, err := p.ports.Operators.Authorize(v.UserContext(), who)
		if err != nil {
			return err
		}
		return h(auditing.By(v.UserContext(), audit.Actor{Who: audit.PersonActor + string(holder)}), v)
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
	view.Status, states = p.ports.Dependencies.States(ctx)
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
