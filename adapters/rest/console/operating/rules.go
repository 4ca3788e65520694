package operating

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

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
	return done(v, err, rulesPath, "rule")
}

func (p *Pages) removeRule(ctx context.Context, v *site.Visit) error {
	err := p.ports.Reviews.RemoveRule(ctx, key[review.RuleID](v, "id"),
		byHand(func(r *review.Rule) string { return r.ManagedBy }))
	return done(v, err, rulesPath, "unruled")
}
