package operating

import (
	"cmp"
	"context"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

const (
	providersPath = Path + "/providers"
	providerPath  = providersPath + "/:name"
)

var (
	providersPage = site.NewPage(templates, "templates/providers.html", "templates/providerform.html")
	providerPage  = site.NewPage(templates, "templates/provider.html", "templates/providerform.html")
)

// providerParts are the parts of the form of a provider, with the fields of each. The last one has the others.
var providerParts = []struct {
	title  string
	fields []string
}{
	{"Connect", []string{"name", "issuer", "clientId", company.SecretField, noSecretInput}},
	{"Who may come in", []string{"domains", "create", "requiredGroups", "enforce"}},
	{"What they get", []string{"groupGrants", "acr", "amr", "maxSession"}},
	{"More", nil},
}

// providerInputs returns the fields of a provider in their parts.
func providerInputs(first ...site.Input) (inputs []site.Input) {
	all := append(first, inputsOf(company.Kind.Fields)...)
	for _, part := range providerParts {
		for _, in := range all {
			in.Part = cmp.Or(in.Part, part.title)
			if slices.Contains(part.fields, in.Name) || part.fields == nil && !slices.ContainsFunc(inputs, func(i site.Input) bool { return i.Name == in.Name }) {
				inputs = append(inputs, in)
			}
		}
	}
	return inputs
}

// storedProviderInputs returns the fields of a provider that exists.
func storedProviderInputs() []site.Input {
	all := providerInputs(site.Input{
		Name: noSecretInput, Label: "Without a secret", Kind: "choices",
		Options: []site.Option{{Value: "true", Text: "Remove the present secret: PKCE alone"}},
	})
	n := slices.IndexFunc(all, func(in site.Input) bool { return in.Name == company.SecretField })
	all[n].Hint = "It is not shown again. Empty keeps the present one."
	return all
}

// newProviderTest is where the form of a new provider is tested. No provider has this name.
const newProviderTest = providersPath + "/_new/test"

func (p *Pages) mountProviders(r fiber.Router) {
	p.site.Post(r, newProviderTest, 2, p.act("Test this provider", p.testNewProvider, p.providers))
	p.mountKind(r, kindPages{
		Objects: p.ports.Providers.Objects(), list: p.providers, page: p.provider, path: providersPath,
		added: "provider", removed: "unprovider", leads: true, put: p.putProvider,
	})
	p.site.Post(r, providerPath+"/test", 1, p.act("Test this provider", p.testProvider, nil))
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
	Redirect  string // of the new provider
	Steps     []identity.Step
	Add       site.FormView
}

func (p *Pages) providers(ctx context.Context, v *site.Visit, problems site.Problems) error {
	return p.renderProviders(ctx, v, problems, nil)
}

func (p *Pages) renderProviders(ctx context.Context, v *site.Visit, problems site.Problems, steps []identity.Step) error {
	all, err := p.ports.Providers.List(ctx)
	if err != nil {
		return err
	}
	page := providersView{Providers: make([]providerRow, len(all)), Steps: steps}
	for i, one := range all {
		page.Providers[i] = newProviderRow(one)
	}
	name, err := company.ParseName(v.Trimmed("name"))
	if err != nil {
		name = "NAME"
	}
	page.Redirect, _ = p.ports.Companies.Addresses(name, v.LocalBase())
	page.Add = site.FillForm(site.Form{Action: providersPath, Button: "Add this provider", Inputs: providerInputs(nameInput)}, v.Form, problems)
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
	form := site.Form{Action: page.Path, Button: "Save this provider", Inputs: storedProviderInputs()}
	if one.ManagedBy != "" {
		form.Action = "" // the page shows what is stored, also after a change was refused
	}
	page.Change = v.Fill(form, formValues(company.Kind.Fields, one.Fields()), problems)
	return v.Render(providerPage, newHead(v, "Provider "+one.DisplayName, problems, page.Change), page)
}

// putProvider stores the provider that a form describes.
func (p *Pages) putProvider(ctx context.Context, v *site.Visit, name string, exists bool) error {
	c, err := formChange(v, &company.Kind, name, exists)
	c.Force = slices.Contains(v.Form["enforce"], "force")
	if err == nil {
		_, _, err = p.ports.Providers.Objects().Put(ctx, c)
	}
	return err
}

// testProvider shows the page of a provider with the steps of its test.
func (p *Pages) testProvider(ctx context.Context, v *site.Visit) error {
	steps, err := p.ports.Providers.Test(ctx, key[string](v, "name"))
	if err != nil {
		return err
	}
	return p.renderProvider(ctx, v, nil, steps)
}

// testNewProvider shows the form of a new provider with the steps of its test.
func (p *Pages) testNewProvider(ctx context.Context, v *site.Visit) error {
	given, err := readForm(v, company.Kind.Fields)
	if err != nil {
		return err
	}
	steps, err := p.ports.Providers.TestDraft(ctx, given)
	if err != nil {
		return err
	}
	return p.renderProviders(ctx, v, nil, steps)
}
