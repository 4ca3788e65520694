package operating

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const policiesPath = Path + "/policies"

var policiesPage = site.ParsePage(templates, "templates/policies.html")

// policyInputs are the fields of a policy.
var policyInputs = []site.Input{
	{Name: "method", Label: "How", Kind: "select", Options: []site.Option{
		{Value: "dns", Text: "A key in the DNS of a domain"}, {Value: "http", Text: "A key on the site of a domain"},
		{Value: "github-oidc", Text: "A token of GitHub Actions"}, {Value: "oidc", Text: "A token of another issuer"},
	}},
	{Name: "pattern", Label: "Servers", Hint: "A name, a prefix such as com.example/*, or *.", Required: true},
	{Name: "actions", Label: "May", Kind: "choices", Options: site.Options(publisher.Publish, publisher.Status)},
	{Name: "domain", Label: "Domain", Hint: "For a domain, for example example.com."},
	{Name: "keyFingerprint", Label: "Key", Hint: "For a domain: the only key that is admitted. Empty for all."},
	{Name: "subject", Label: "Subject", Hint: "For a token: * stands for any characters except / and :."},
	{
		Name: "claims", Label: "Claims", Kind: "area",
		Hint: "For a token: one on each line, such as repository=acme/tools.",
	},
	{Name: "issuer", Label: "Issuer", Hint: "For a token of another issuer than GitHub."},
	{Name: "expiresAt", Label: "End", Kind: "date", Hint: "It ends at the beginning of this day, UTC. Empty: never."},
	{
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
	Policies []policyRow
	Add      site.FormView
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

func (p *Pages) policies(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Policies.List(ctx, authority.Operator())
	if err != nil {
		return err
	}
	page := policiesView{Policies: make([]policyRow, len(all))}
	for i, one := range all {
		page.Policies[i] = policyRow{one, describePublisher(one.Policy)}
	}
	page.Add = v.Fill(site.Form{Action: policiesPath, Button: "Add this policy", Inputs: policyInputs},
		url.Values{"actions": {string(publisher.Publish)}}, problems)
	return v.Render(policiesPage, newHead(v, "Policies of publishers", problems, page.Add), page)
}

// policyDraft returns the policy that a form describes, without its owner.
func policyDraft(v *site.Visit) (publisher.Draft, error) {
	d := publisher.Draft{
		Method: v.Form.Get("method"), Pattern: v.Trimmed("pattern"), Actions: v.Form["actions"],
		Domain: v.Trimmed("domain"), KeyFingerprint: v.Trimmed("keyFingerprint"), Issuer: v.Trimmed("issuer"),
		Subject: v.Trimmed("subject"),
	}
	var err error
	if d.Claims, err = formClaims(v); err != nil {
		return d, err
	}
	if text := v.Form.Get("expiresAt"); text != "" {
		if d.ExpiresAt, err = time.Parse(time.DateOnly, text); err != nil {
			err = fault.New(fault.Invalid, "expiresAt must be a day such as 2027-01-31")
		}
	}
	return d, err
}

// formClaims returns the claims in a form, one on each line.
func formClaims(v *site.Visit) (map[string]string, error) {
	claims := map[string]string{}
	for line := range strings.Lines(v.Form.Get("claims")) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if _, twice := claims[name]; twice || !found && name != "" {
			return nil, fault.New(fault.Invalid, "claims must be of the form name=value, each name once")
		}
		if found {
			claims[name] = value
		}
	}
	return claims, nil
}

func (p *Pages) addPolicy(ctx context.Context, v *site.Visit) error {
	d, err := policyDraft(v)
	if email := v.Trimmed("owner"); err == nil && email != "" {
		d.Owner, err = p.personOf(ctx, "owner", email)
	}
	if err == nil {
		_, err = p.ports.Policies.Add(ctx, authority.Operator(), d)
	}
	return done(v, err, policiesPath, "policed")
}

func (p *Pages) removePolicy(ctx context.Context, v *site.Visit) error {
	err := p.ports.Policies.Remove(ctx, authority.Operator(), key[publisher.PolicyID](v, "id"),
		byHand(true, func(one *publisher.Policy) string { return one.ManagedBy }))
	return done(v, err, policiesPath, "policy")
}
