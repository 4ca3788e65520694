package operating

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const (
	policiesPath = Path + "/policies"
	viewsPath    = Path + "/views"
	mirrorsPath  = Path + "/mirrors"
	webhooksPath = Path + "/webhooks"
)

var (
	policiesPage = site.ParsePage(templates, "templates/policies.html")
	viewsPage    = site.ParsePage(templates, "templates/views.html")
	mirrorsPage  = site.ParsePage(templates, "templates/mirrors.html")
	webhooksPage = site.ParsePage(templates, "templates/webhooks.html")
)

func (p *Pages) mountRegistry(r fiber.Router) {
	r.Get(policiesPath, p.page(p.policies))
	p.site.Post(r, policiesPath+"/:id/remove", 2, p.act("Remove this policy", p.removePolicy, nil))
	r.Get(viewsPath, p.page(func(ctx context.Context, v *site.Visit) error { return p.views(ctx, v, nil) }))
	p.site.Post(r, viewsPath, 0, p.act("Add this view", p.addView, p.views))
	p.site.Post(r, viewsPath+"/:name/remove", 2, p.act("Remove this view", p.removeView, nil))
	r.Get(mirrorsPath, p.page(p.mirrors))
	r.Get(webhooksPath, p.page(p.webhooks))
	p.site.Post(r, webhooksPath+"/:id/redeliver", 2, p.act("Send the dead events again", p.redeliver, nil))
	p.site.Post(r, webhooksPath+"/:id/remove", 2, p.act("Remove this webhook", p.removeWebhook, nil))
}

// policyRow is a policy of a publisher in words.
type policyRow struct {
	delegating.Policy

	Who []string // lines that say whom it admits
}

// describePublisher returns whom a policy admits: a domain, or who has a token of an issuer.
func describePublisher(p publisher.Policy) (lines []string) {
	for _, text := range [...]string{p.Domain.String(), p.Subject.String(), p.Issuer} {
		if text != "" {
			lines = append(lines, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Claims)) {
		lines = append(lines, name+": "+p.Claims[name])
	}
	return lines
}

func (p *Pages) policies(ctx context.Context, v *site.Visit) error {
	all, err := p.ports.Policies.List(ctx, authority.Operator())
	if err != nil {
		return err
	}
	rows := make([]policyRow, len(all))
	for i, one := range all {
		rows[i] = policyRow{one, describePublisher(one.Policy)}
	}
	return v.Render(policiesPage, site.Head{Title: "Policies of publishers", Notice: notices[v.Text("done")]}, rows)
}

func (p *Pages) removePolicy(ctx context.Context, v *site.Visit) error {
	id, err := v.Param("id")
	if err == nil {
		err = p.ports.Policies.Remove(ctx, authority.Operator(), publisher.PolicyID(id), nil)
	}
	if err != nil {
		return err
	}
	return v.Redirect(policiesPath + "?done=policy")
}

// viewsView is the page with the views.
type viewsView struct {
	Views                                      []view.View
	Name, Include, Exclude, Deprecated, Access string // as the form was filled in
}

func (p *Pages) views(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Views.List(ctx)
	if err != nil {
		return err
	}
	page := viewsView{
		Views: all, Name: v.Form.Get("name"), Include: v.Form.Get("include"), Exclude: v.Form.Get("exclude"),
		Deprecated: v.Form.Get("deprecated"), Access: v.Form.Get("access"),
	}
	return v.Render(viewsPage, site.Head{Title: "Views", Notice: notices[v.Text("done")], Problems: problems}, page)
}

func (p *Pages) addView(ctx context.Context, v *site.Visit) error {
	_, err := p.ports.Views.Add(ctx, view.Draft{
		Name: strings.TrimSpace(v.Form.Get("name")), Include: strings.Fields(v.Form.Get("include")),
		Exclude:    strings.Fields(v.Form.Get("exclude")),
		Deprecated: v.Form.Get("deprecated"), Access: v.Form.Get("access"),
	})
	if err != nil {
		return err
	}
	return v.Redirect(viewsPath + "?done=view")
}

func (p *Pages) removeView(ctx context.Context, v *site.Visit) error {
	name, err := v.Param("name")
	if err == nil {
		err = p.ports.Views.Remove(ctx, view.Name(name), nil)
	}
	if err != nil {
		return err
	}
	return v.Redirect(viewsPath + "?done=unviewed")
}

// mirrorRow is a mirror in words.
type mirrorRow struct {
	mirror.Mirror

	State mirror.State
	Text  string
	Class string
}

// mirrorStates are the states of mirrors in words.
var mirrorStates = map[mirror.Health]struct{ text, class string }{
	mirror.OK: {"Up to date", "good"}, mirror.Waiting: {"Not read yet", "warn"}, mirror.Failing: {"Failing", "bad"},
}

func (p *Pages) mirrors(ctx context.Context, v *site.Visit) error {
	all, err := p.ports.Mirrors.List(ctx)
	if err != nil {
		return err
	}
	rows := make([]mirrorRow, len(all))
	for i, m := range all {
		s := mirrorStates[m.State.Health()]
		rows[i] = mirrorRow{m, m.State, s.text, s.class}
	}
	return v.Render(mirrorsPage, site.Head{Title: "Mirrors"}, rows)
}

// webhookRow is a webhook in words.
type webhookRow struct {
	notifying.Listed

	Address, Kinds string
}

func (p *Pages) webhooks(ctx context.Context, v *site.Visit) error {
	all, err := p.ports.Webhooks.List(ctx)
	if err != nil {
		return err
	}
	rows := make([]webhookRow, len(all))
	for i, w := range all {
		kinds := make([]string, len(w.Events))
		for j, k := range w.Events {
			kinds[j] = string(k)
		}
		rows[i] = webhookRow{w, w.URL.Host(), strings.Join(kinds, ", ")}
	}
	return v.Render(webhooksPage, site.Head{Title: "Webhooks", Notice: notices[v.Text("done")]}, rows)
}

func (p *Pages) redeliver(ctx context.Context, v *site.Visit) error {
	id, err := v.Param("id")
	if err == nil {
		_, err = p.ports.Webhooks.Redeliver(ctx, event.WebhookID(id), event.ID(v.Form.Get("event")))
	}
	if err != nil {
		return err
	}
	return v.Redirect(webhooksPath + "?done=redelivered")
}

func (p *Pages) removeWebhook(ctx context.Context, v *site.Visit) error {
	id, err := v.Param("id")
	if err == nil {
		err = p.ports.Webhooks.Remove(ctx, event.WebhookID(id), nil)
	}
	if err != nil {
		return err
	}
	return v.Redirect(webhooksPath + "?done=webhook")
}
