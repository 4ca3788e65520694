package operating

import (
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
	providersPage = site.NewPage(templates, "templates/providers.html")
	providerPage  = site.NewPage(templates, "templates/provider.html")
)

// storedProviderInputs returns the fields of a provider that exists.
func storedProviderInputs() []site.Input {
	all := inputsOf(company.Kind.Fields)
	n := slices.IndexFunc(all, func(in site.Input) bool { return in.Name == company.SecretField })
	all[n].Hint = "It is not shown again. Empty keeps the present one."
	return slices.Insert(all, n+1, site.Input{
		Name: noSecretInput, Label: "Without a secret", Kind: "choices",
		Options: []site.Option{{Value: "true", Text: "Remove the present secret: PKCE alone"}},
	})
}

func (p *Pages) mountProviders(r fiber.Router) {
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
		Action: providersPath, Button: "Add this provider", Inputs: append([]site.Input{nameInput}, inputsOf(company.Kind.Fields)...),
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
