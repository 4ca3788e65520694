package operating

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

const (
	providersPath = Path + "/providers"
	providerPath  = providersPath + "/:name"
)

var (
	providersPage = site.NewPage(templates, "templates/providers.html")
	providerPage  = site.NewPage(templates, "templates/provider.html")
)

// The inputs of the forms that are not fields of a provider: what becomes of the stored secret, and
// the values of enforce.
const (
	noSecretInput = "noSecret"
	enforced      = "true"
	enforcedSoon  = "force"
)

// providerInputs are the fields of a provider without its name.
var providerInputs = []site.Input{
	{Name: "displayName", Label: "Text of its button", Hint: "Empty for the name."},
	{Name: "issuer", Label: "Issuer", Hint: "Exactly as its discovery document has it.", Required: true},
	{Name: "clientId", Label: "Client ID", Required: true},
	{Name: "clientSecret", Label: "Client secret", Kind: "password", Hint: "It is not shown again, so enter it again after a mistake. Empty for PKCE alone."},
	{Name: "scopes", Label: "Scopes", Hint: "With spaces between them. Empty for openid profile email."},
	{Name: "domains", Label: "E-mail domains", Kind: "area", Hint: "That it speaks for, one on each line."},
	{Name: "create", Label: "New people", Kind: "choices", Options: []site.Option{
		{Value: "true", Text: "Who has no account and an address of these domains gets one"},
	}},
	{Name: "enforce", Label: "Passwords", Kind: "choices", Options: []site.Option{
		{Value: enforced, Text: "People of these domains sign in at the company only"},
		{Value: enforcedSoon, Text: "Even if no operator has tried that within 30 days"},
	}},
	{
		Name: "groupGrants", Label: "Grants by groups", Kind: "area",
		Hint: "One on each line, for example developers=publish:com.example/*.",
	},
	{
		Name: "requiredGroups", Label: "Required groups", Kind: "area",
		Hint: "One on each line. A person must be in one of them. Empty admits everybody.",
	},
	{Name: "emailClaim", Label: "Claim of the e-mail address", Hint: "Empty for email."},
	{Name: "groupsClaim", Label: "Claim of the groups", Hint: "Empty for groups."},
	{
		Name: "audiences", Label: "Audiences of access tokens", Kind: "area",
		Hint: "Whose tokens count as callers, one on each line. Empty for none.",
	},
	{Name: "scopeClaim", Label: "Claim of the scopes", Hint: "Of access tokens. Empty for scope."},
	{Name: "acr", Label: "Second factor: acr", Kind: "area", Hint: "Values that show one, each on a line."},
	{Name: "amr", Label: "Second factor: amr", Kind: "area", Hint: "Values that show one, each on a line."},
	{Name: "recheck", Label: "Check again every", Hint: "10s to 24h. Empty for 1h."},
	{Name: "maxSession", Label: "Longest session", Hint: "1m to 30d. Empty for 12h."},
	{
		Name: "networks", Label: "Networks", Kind: "area",
		Hint: "Where it may be besides public addresses, one on each line, for example 10.0.0.0/8.",
	},
}

// storedProviderInputs are the fields of a provider that exists.
var storedProviderInputs = newStoredProviderInputs()

func newStoredProviderInputs() []site.Input {
	all := slices.Clone(providerInputs)
	n := slices.IndexFunc(all, func(in site.Input) bool { return in.Name == "clientSecret" })
	all[n].Hint = "It is not shown again. Empty keeps the present one."
	return slices.Insert(all, n+1, site.Input{
		Name: noSecretInput, Label: "Without a secret", Kind: "choices",
		Options: []site.Option{{Value: "true", Text: "Remove the present secret: PKCE alone"}},
	})
}

func (p *Pages) mountProviders(r fiber.Router) {
	p.open(r, providersPath, p.providers)
	p.site.Post(r, providersPath, 0, p.act("Add this provider", p.addProvider, p.providers))
	p.open(r, providerPath, p.provider)
	p.site.Post(r, providerPath, 0, p.act("Save this provider", p.changeProvider, p.provider))
	p.site.Post(r, providerPath+"/test", 1, p.act("Test this provider", p.testProvider, nil))
	p.site.Post(r, providerPath+"/remove", 2, p.act("Remove this provider", p.removeProvider, nil))
}

// providerRow is a provider in words.
type providerRow struct {
	company.Provider

	Path, Text, Class string
}

// providerStates are the states of providers in words.
var providerStates = map[company.Health]struct{ text, class string }{
	company.Unused: {"Not used yet", "warn"}, company.Works: {"Works", "good"}, company.Troubled: {"Problem", "warn"},
	company.Away: {"Away", "bad"},
}

func newProviderRow(p company.Provider) providerRow {
	s := providerStates[p.Condition.Health()]
	return providerRow{p, providersPath + "/" + string(p.Name), s.text, s.class}
}

// providersView is the page with the providers.
type providersView struct {
	Providers []providerRow
	Redirect  string // of a provider that is called NAME
	Add       site.FormView
}

func (p *Pages) providers(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Providers.List(ctx)
	if err != nil {
		return err
	}
	page := providersView{Providers: make([]providerRow, len(all))}
	for i, one := range all {
		page.Providers[i] = newProviderRow(one)
	}
	page.Redirect, _ = p.ports.Companies.Addresses("NAME", v.LocalBase())
	page.Add = v.Fill(site.Form{
		Action: providersPath, Button: "Add this provider", Inputs: append([]site.Input{nameInput}, providerInputs...),
	}, nil, problems)
	return v.Render(providersPage, newHead(v, "Company sign-in", problems, page.Add), page)
}

// providerView is the page of a provider.
type providerView struct {
	providerRow

	Redirect, Logout string // addresses of the service that the provider needs
	Steps            []identity.Step
	Change           site.FormView
}

func (p *Pages) provider(ctx context.Context, v *site.Visit, problems site.Problems) error {
	return p.renderProvider(ctx, v, problems, nil)
}

func (p *Pages) renderProvider(
	ctx context.Context, v *site.Visit, problems site.Problems, steps []identity.Step,
) error {
	one, err := p.ports.Providers.Get(ctx, key[string](v, "name"))
	if err != nil {
		return err
	}
	setConflict(v, problems, one.ManagedBy)
	page := providerView{providerRow: newProviderRow(one), Steps: steps}
	page.Redirect, page.Logout = p.ports.Companies.Addresses(one.Name, v.LocalBase())
	form := site.Form{Action: page.Path, Button: "Save this provider", Inputs: storedProviderInputs}
	if one.ManagedBy != "" {
		form.Action = "" // the page shows what is stored, also after a change was refused
	}
	page.Change = v.Fill(form, providerValues(&one), problems)
	return v.Render(providerPage, newHead(v, "Provider "+one.DisplayName, problems, page.Change), page)
}

// providerValues returns a provider as its form has it, without the secret.
func providerValues(p *company.Provider) url.Values {
	networks, grants := make([]string, len(p.Networks)), make([]string, len(p.GroupGrants))
	for i, n := range p.Networks {
		networks[i] = n.String()
	}
	for i, g := range p.GroupGrants {
		grants[i] = g.String()
	}
	values := url.Values{
		"displayName": {p.DisplayName}, "issuer": {p.Issuer}, "clientId": {p.ClientID}, "emailClaim": {p.EmailClaim},
		"groupsClaim": {p.GroupsClaim}, "scopeClaim": {p.ScopeClaim}, "scopes": {strings.Join(p.Scopes, " ")},
		"recheck": {company.FormatDuration(p.Recheck)}, "maxSession": {company.FormatDuration(p.MaxSession)},
	}
	for name, lines := range map[string][]string{
		"domains": p.Domains, "requiredGroups": p.RequiredGroups, "acr": p.ACR, "amr": p.AMR, "networks": networks,
		"groupGrants": grants, "audiences": p.Audiences,
	} {
		values.Set(name, strings.Join(lines, "\n"))
	}
	if p.Create {
		values.Set("create", "true")
	}
	if p.Enforce {
		values.Set("enforce", enforced)
	}
	return values
}

// formLines returns the lines of a field of a form, without empty ones and spaces around them.
func formLines(v *site.Visit, field string) (lines []string) {
	for line := range strings.Lines(v.Form.Get(field)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// formProvider returns the fields of a provider that a form describes, for Parse.
func formProvider(v *site.Visit, name string) (audit.Details, error) {
	grants, err := company.ReadGroupGrants(formLines(v, "groupGrants"))
	fields := audit.Details{
		"name": audit.Text(name), "scopes": audit.Texts(strings.Fields(v.Form.Get("scopes"))), "groupGrants": grants,
		"create": audit.Flag(v.Form.Get("create") != ""), "enforce": audit.Flag(slices.Contains(v.Form["enforce"], enforced)),
		"secondFactor": audit.Details{
			"acr": audit.Texts(formLines(v, "acr")), "amr": audit.Texts(formLines(v, "amr")),
		},
	}
	for _, text := range [...]string{
		"displayName", "issuer", "clientId", "emailClaim", "groupsClaim", "scopeClaim", "recheck", "maxSession",
	} {
		fields.Set(text, v.Trimmed(text))
	}
	for _, list := range [...]string{"domains", "audiences", "requiredGroups", "networks"} {
		fields[list] = audit.Texts(formLines(v, list))
	}
	return fields, err
}

// formSecret returns the secret of a form: nil if the present one stays.
func formSecret(v *site.Visit) (*string, error) {
	secret := v.Trimmed("clientSecret")
	switch {
	case secret != "":
		return &secret, company.CheckSecret(secret)
	case v.Form.Get(noSecretInput) != "":
		return &secret, nil
	}
	return nil, nil
}

// putProvider stores the provider that a form describes.
func (p *Pages) putProvider(ctx context.Context, v *site.Visit, name string, exists bool) error {
	fields, err := formProvider(v, name)
	if err != nil {
		return err
	}
	draft := federating.Draft{Force: slices.Contains(v.Form["enforce"], enforcedSoon)}
	if draft.ClientSecret, err = formSecret(v); err != nil {
		return err
	}
	if draft.Provider, err = p.ports.Providers.Parse(fields); err == nil {
		_, _, err = p.ports.Providers.Put(ctx, draft, byHand(exists, managerOfProvider))
	}
	return err
}

func managerOfProvider(p *company.Provider) string { return p.ManagedBy }

func (p *Pages) addProvider(ctx context.Context, v *site.Visit) error {
	name := v.Trimmed("name")
	return done(v, p.putProvider(ctx, v, name, false), providersPath+"/"+name, "provider")
}

func (p *Pages) changeProvider(ctx context.Context, v *site.Visit) error {
	return done(v, p.putProvider(ctx, v, key[string](v, "name"), true), v.Path(), "saved")
}

// testProvider shows the page of a provider with the steps of its test.
func (p *Pages) testProvider(ctx context.Context, v *site.Visit) error {
	steps, err := p.ports.Providers.Test(ctx, key[string](v, "name"))
	if err != nil {
		return err
	}
	return p.renderProvider(ctx, v, nil, steps)
}

func (p *Pages) removeProvider(ctx context.Context, v *site.Visit) error {
	err := p.ports.Providers.Remove(ctx, key[string](v, "name"), byHand(true, managerOfProvider))
	return done(v, err, providersPath, "unprovider")
}
