package operating

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/policylist"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const policiesPath = Path + "/policies"

var policiesPage = site.NewPage(templates, "templates/policies.html")

// policyInputs are the fields of a policy.
var policyInputs = []site.Input{
	{Name: "method", Label: "How", Kind: "select", Options: []site.Option{
		{Value: "dns", Text: "A key in the DNS of a domain"}, {Value: "http", Text: "A key on the site of a domain"},
		{Value: "github-oidc", Text: "A token of GitHub Actions"}, {Value: "oidc", Text: "A token of another issuer"},
	}},
	policylist.Pattern, policylist.Actions, policylist.Domain, policylist.Key, policylist.Subject, policylist.Claims,
	{Name: "issuer", Label: "Issuer", Hint: "For a token of another issuer than GitHub."},
	policylist.ExpiresAt, {
		Name: "owner", Label: "Owner", Kind: "email",
		Hint: "A person on whose grant it depends. Empty: it depends on nobody.",
	},
}

func (p *Pages) mountPolicies(r fiber.Router) {
	p.open(r, policiesPath, p.policies)
	p.site.Post(r, policiesPath, 0, p.act("Add this policy", p.addPolicy, p.policies))
	p.site.Post(r, policiesPath+"/:id/remove", 2, p.act("Remove this policy", p.removePolicy, nil))
}

// policiesView is the page with the policies of publishers.
type policiesView struct {
	Policies []policylist.Row
	Add      site.FormView
}

func (p *Pages) policies(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Policies.List(ctx, authority.Operator())
	if err != nil {
		return err
	}
	page := policiesView{Policies: policylist.NewRows(all)}
	page.Add = v.Fill(site.Form{Action: policiesPath, Button: "Add this policy", Inputs: policyInputs},
		url.Values{"actions": {string(publisher.Publish)}}, problems)
	return v.Render(policiesPage, newHead(v, "Policies of publishers", problems, page.Add), page)
}

func (p *Pages) addPolicy(ctx context.Context, v *site.Visit) error {
	d, err := policylist.ReadDraft(v)
	if email := v.Trimmed("owner"); err == nil && email != "" {
		d.Owner, err = p.personOf(ctx, "owner", email)
	}
	if err == nil {
		_, err = p.ports.Policies.Add(ctx, authority.Operator(), d)
	}
	return done(v, err, policiesPath, "policed")
}

func (p *Pages) removePolicy(ctx context.Context, v *site.Visit) error {
	err := p.ports.Policies.Remove(ctx, authority.Operator(), key[registry.PolicyID](v, "id"),
		byHand(func(one *publisher.Policy) string { return one.ManagedBy }))
	return done(v, err, policiesPath, "policy")
}
