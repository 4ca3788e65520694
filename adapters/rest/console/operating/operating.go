// Package operating has the pages on which people with the grant operate do what operator commands
// do.
package operating

import (
	"context"
	"embed"
	"maps"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/overview"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

//go:embed templates
var templates embed.FS

// Path is the path of the first page.
const Path = site.Root + "operator"

// Ports are the use cases that the pages call.
type Ports struct {
	Operators    *permit.Operators
	People       *people.Service
	Sessions     *devices.Operator
	Grants       registrystore.Grants
	GrantChanges *delegating.GrantOperator
	Asked        *delegating.Rights
	Policies     *delegating.Policies
	Views        *viewing.Operator
	Mirrors      *mirroring.Operator
	Webhooks     *notifying.Operator
	State        *declaring.Service
	Reviews      *reviewing.Service
	Services     *delegating.Services
	Providers    *federating.Providers
	Companies    *federating.Service
	Tokens       *tokens.Service
	Credentials  *credentials.Service
	AccessRules  *ruling.Operator
	Access       *deciding.Service
	Trail        *auditing.Trail
	Limits       *Limits // nil if the part for rate limits does not run
	Overview     overview.Source
	Kinds        management.Kinds
	Documents    authorization.Sightings // of clients
}

// ownPages are the kinds with pages of their own.
var ownPages = []string{access.RuleKind.List, company.Kind.List, mirror.Kind.List, service.Kind.List, view.Kind.List}

// Pages are the pages of operators. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages {
	for _, k := range []*kinds.Kind{&oauth.ClientKind, &oauth.ResourceKind} {
		if p.Kinds[k.List] == nil {
			s.Hide(Path + "/" + k.Path())
		}
	}
	return &Pages{s, p}
}

// handler serves a page to an operator. Its context names the operator as the actor of changes.
type handler func(ctx context.Context, v *site.Visit) error

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(Path, p.page(p.overview))
	p.site.Post(r, dismissPath, 1, p.act("Dismiss this step", p.dismiss, nil))
	p.mountPeople(r)
	p.mountGrants(r)
	p.mountRights(r)
	p.mountRequests(r)
	r.Get(statePath, p.page(p.state))
	for _, mount := range [...]func(fiber.Router){
		p.mountPolicies, p.mountViews, p.mountMirrors, p.mountWebhooks, p.mountRules, p.mountServices, p.mountProviders,
		p.mountAccess,
	} {
		mount(r)
	}
	for _, name := range slices.Sorted(maps.Keys(p.ports.Kinds)) {
		if !slices.Contains(ownPages, name) {
			k := kindPages{Objects: p.ports.Kinds[name], documents: p.ports.Documents}
			if k.Kind() == &view.CollectionKind { // its page says what is missing
				k.doubts, k.leads = p.doubtCollection, true
			}
			p.mountKind(r, k)
		}
	}
	r.Get(limitsPath, p.page(p.limits))
	r.Get(riskPath, p.page(p.risk))
	r.Get(logPath, p.page(p.log))
}

// doubtCollection says which servers of a collection nothing has.
func (p *Pages) doubtCollection(ctx context.Context, o *management.Object) ([]string, error) {
	c, err := view.ParseCollection(o.Fields)
	if err != nil {
		return nil, err
	}
	return p.ports.Access.Doubts(ctx, &access.Rule{Servers: c.Servers}, nil)
}

// page returns the handler of a page for operators.
func (p *Pages) page(h handler) fiber.Handler {
	return p.site.Require(auth.Unverified, p.authorized(h))
}

// act returns the act of a form of operators.
func (p *Pages) act(
	title string, do handler, show shower,
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
		return h(auditing.ByPerson(v.UserContext(), auth.UserID(holder)), v)
	}
}

var overviewPage = site.NewPage(templates, "templates/overview.html")

// notices say what has just been done.
var notices = map[string]string{
	"locked": "The account is locked: nobody can sign in with it.", "unlocked": "The account is unlocked.",
	"disabled": "The account is disabled, and its sessions are ended.", "enabled": "The account is enabled.",
	"ended": "The sessions are ended.", "unfactored": "The second factor is removed, and the sessions are ended.",
	"granted": "The grant is added.", "revoked": "The grant is removed.", "confirmed": "The selected rights are confirmed.", "declined": "The request is declined.",
	"policy": "The policy is removed.", "view": "The view is added.", "unviewed": "The view is removed.",
	"added": "It is added.", "removed": "It is removed.",
	"redelivered": "The events are sent again.", "webhook": "The webhook is removed.", "saved": "The changes are saved.",
	"policed": "The policy is added.", "untoken": "The token is removed.", "mirror": "The mirror is added.",
	"sync": "It is read soon.", "unmirrored": "The mirror is removed.", "rule": "The rule is added.",
	"unruled": "The rule is removed.", "service": "The service account is added.",
	"provider":   "The provider is added. Test it, and sign in there once.",
	"unprovider": "The provider is removed.", "unservice": "The service account is removed.", "tested": "The receiver has accepted the test.",
}
