package operating

import (
	"context"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/policylist"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
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
	return v.Done(err, policiesPath, "policed")
}

func (p *Pages) removePolicy(ctx context.Context, v *site.Visit) error {
	err := p.ports.Policies.Remove(ctx, authority.Operator(), key[registry.PolicyID](v, "id"),
		byHand(func(one *publisher.Policy) string { return one.ManagedBy }))
	return v.Done(err, policiesPath, "policy")
}

const rulesPath = Path + "/review-rules"

var rulesPage = site.NewPage(templates, "templates/rules.html")

// ruleWhen are the conditions of rules in words.
var ruleWhen = []site.Option{
	{Value: string(review.SameOrigins), Text: "Its packages and remotes are those of an approved version"},
	{Value: string(review.Any), Text: "Always"},
}

func (p *Pages) mountRules(r fiber.Router) {
	p.open(r, rulesPath, p.rules)
	p.site.Post(r, rulesPath, 0, p.act("Add this rule", p.addRule, p.rules))
	p.site.Post(r, rulesPath+"/:id/remove", 2, p.act("Remove this rule", p.removeRule, nil))
}

// rulesView is the page with the rules by which documents are approved without a person.
type rulesView struct {
	Rules []review.Rule
	When  []site.Option
	Add   site.FormView
}

func (p *Pages) rules(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Reviews.Rules(ctx)
	if err != nil {
		return err
	}
	add := v.Fill(site.Form{Action: rulesPath, Button: "Add this rule", Inputs: []site.Input{
		{Name: "resource", Label: "Servers", Hint: "A name, a prefix such as com.example/*, or *.", Required: true},
		{Name: "publisher", Label: "Publisher", Hint: "The e-mail address of a person, or the id of a policy. Empty for all."},
		{Name: "when", Label: "Approve when", Kind: "select", Options: ruleWhen},
	}}, nil, problems)
	return v.Render(rulesPage, newHead(v, "Review rules", problems, add), rulesView{all, ruleWhen, add})
}

func (p *Pages) addRule(ctx context.Context, v *site.Visit) error {
	d := reviewing.RuleDraft{Pattern: v.Trimmed("resource"), Publisher: v.Trimmed("publisher"), When: v.Form.Get("when")}
	if strings.Contains(d.Publisher, "@") {
		id, err := p.personOf(ctx, "publisher", d.Publisher)
		if err != nil {
			return err
		}
		d.Publisher = string(id)
	}
	_, err := p.ports.Reviews.AddRule(ctx, d)
	return v.Done(err, rulesPath, "rule")
}

func (p *Pages) removeRule(ctx context.Context, v *site.Visit) error {
	err := p.ports.Reviews.RemoveRule(ctx, key[review.RuleID](v, "id"),
		byHand(func(r *review.Rule) string { return r.ManagedBy }))
	return v.Done(err, rulesPath, "unruled")
}
