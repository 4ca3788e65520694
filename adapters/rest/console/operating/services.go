package operating

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/policylist"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/tokenlist"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	servicesPath = Path + "/service-accounts"
	servicePath  = servicesPath + "/:name"
)

var (
	servicesPage = site.NewPage(templates, "templates/services.html")
	servicePage  = site.NewPage(templates, "templates/service.html")
)

// workloadInputs are the fields of a workload. Their names are not those of a token.
var workloadInputs = []site.Input{
	{Name: "issuer", Label: "Issuer", Hint: "Who signs its ID tokens. It must be configured.", Required: true},
	{Name: "subject", Label: "Subject", Hint: "* stands for any characters except / and :.", Required: true},
	{Name: "claims", Label: "Claims", Kind: "area", Hint: "One on each line, such as repository=acme/tools."},
	{Name: "audience", Label: "Audience", Hint: "Empty for that of this service."},
	{Name: "workloadScopes", Label: "It may", Kind: "choices", Options: site.Options(scope.All()...)},
}

func (p *Pages) mountServices(r fiber.Router) {
	p.mountKind(r, kindPages{
		Objects: p.ports.Services.Objects(), list: p.services, page: p.service, path: servicesPath,
		added: "service", removed: "unservice", put: p.putService,
	})
	p.site.Post(r, servicePath+"/grants", 1, p.act("Add this grant", p.addServiceGrant, p.service))
	p.site.Post(r, servicePath+"/workloads", 1, p.act("Add this workload", p.addWorkload, p.service))
	p.site.Post(r, servicePath+"/workloads/:number/remove", 3, p.act("Remove this workload", p.removeWorkload, nil))
	p.site.Post(r, servicePath+"/tokens", 1, p.act("Make this token", p.addServiceToken, p.service))
	p.site.Post(r, servicePath+"/tokens/:token/remove", 3, p.act("Remove this token", p.removeServiceToken, nil))
}

// servicesView is the page with the service accounts.
type servicesView struct {
	Accounts []service.Account
	Next     string
	Add      site.FormView
}

func (p *Pages) services(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Services.List(ctx, service.Name(v.Text("after")), perPage+1)
	if err != nil {
		return err
	}
	page := servicesView{Accounts: all[:min(len(all), perPage)]}
	if len(all) > perPage {
		page.Next = servicesPath + "?after=" + string(all[perPage-1].Name)
	}
	page.Add = v.Fill(site.Form{
		Action: servicesPath, Button: "Add this service account", Inputs: append([]site.Input{nameInput}, inputsOf(service.Kind.Fields)...),
	}, nil, problems)
	return v.Render(servicesPage, newHead(v, "Service accounts", problems, page.Add), page)
}

// serviceView is the page of a service account.
type serviceView struct {
	service.Account

	Path                    string
	Grants                  []registry.GrantRecord
	Change, Grant, Workload site.FormView
	List                    tokenlist.List
}

func (p *Pages) service(ctx context.Context, v *site.Visit, problems site.Problems) error {
	a, err := p.ports.Services.Get(ctx, key[service.Name](v, "name"))
	if err != nil {
		return err
	}
	setConflict(v, problems, a.ManagedBy)
	page := serviceView{Account: a, Path: servicesPath + "/" + string(a.Name)}
	held := registrystore.GrantQuery{Holders: []registry.Holder{a.Name.Holder()}}
	if page.Grants, err = p.ports.Grants.Records(ctx, held); err != nil {
		return err
	}
	if page.List, err = tokenlist.Read(
		v, p.ports.Tokens, auth.ServiceOwner(string(a.Name)), page.Path+"/tokens", problems); err != nil {
		return err
	}
	page.fill(v, problems)
	head := newHead(v, "Service account "+string(a.Name), problems,
		page.Change, page.Grant, page.Workload, page.List.Add)
	return v.Render(servicePage, head, page)
}

// fill fills the forms of the page in, but for that of a token.
func (page *serviceView) fill(v *site.Visit, problems site.Problems) {
	form := func(path, button string, inputs []site.Input, stored url.Values) site.FormView {
		return v.Fill(site.Form{Action: page.Path + path, Button: button, Inputs: inputs}, stored, problems)
	}
	page.Change = form("", "Save this service account", inputsOf(service.Kind.Fields),
		formValues(service.Kind.Fields, page.Fields()))
	page.Grant = form("/grants", "Add this grant", grantInputs, nil)
	page.Workload = form("/workloads", "Add this workload", workloadInputs, nil)
}

// serviceAddress returns the path of the page of the service account in the path.
func serviceAddress(v *site.Visit) string {
	return servicesPath + "/" + url.PathEscape(key[string](v, "name"))
}

// changeStored stores the service account in the path after a change of its draft.
func (p *Pages) changeStored(ctx context.Context, v *site.Visit, change func(*service.Draft) error) error {
	stored, err := p.ports.Services.Get(ctx, key[service.Name](v, "name"))
	if err != nil {
		return err
	}
	d := stored.Draft()
	if err = change(&d); err != nil {
		return err
	}
	a, err := p.ports.Services.Parse(d)
	if err == nil {
		_, _, err = p.ports.Services.Put(ctx, a, byHand(func(a *service.Account) string { return a.ManagedBy }))
	}
	return err
}

func (p *Pages) putService(ctx context.Context, v *site.Visit, name string, exists bool) error {
	if !exists {
		_, err := putObject(ctx, v, p.ports.Services.Objects(), name, false)
		return err
	}
	return p.changeStored(ctx, v, func(d *service.Draft) error {
		d.Description, d.State = v.Form.Get("description"), v.Form.Get("state")
		return nil
	})
}

func (p *Pages) addWorkload(ctx context.Context, v *site.Visit) error {
	return v.Done(p.changeStored(ctx, v, func(d *service.Draft) error {
		claims, err := policylist.ReadClaims(v)
		d.Workloads = append(d.Workloads, service.WorkloadDraft{
			Issuer: v.Trimmed("issuer"), Subject: v.Trimmed("subject"), Claims: claims, Audience: v.Trimmed("audience"),
			Scopes: v.Form["workloadScopes"],
		})
		return err
	}), serviceAddress(v), "saved")
}

func (p *Pages) removeWorkload(ctx context.Context, v *site.Visit) error {
	return v.Done(p.changeStored(ctx, v, func(d *service.Draft) error {
		n, err := strconv.Atoi(key[string](v, "number"))
		if err != nil || n < 0 || n >= len(d.Workloads) || d.Workloads[n].Subject != v.Form.Get("subject") {
			return fault.New(fault.NotFound, "there is no such workload")
		}
		d.Workloads = slices.Delete(d.Workloads, n, n+1)
		return nil
	}), serviceAddress(v), "saved")
}

func (p *Pages) addServiceGrant(ctx context.Context, v *site.Visit) error {
	a, err := p.ports.Services.Get(ctx, key[service.Name](v, "name"))
	if err != nil {
		return err
	}
	g, err := registry.ParseGrant(a.Name.Holder(), v.Form.Get("action"), v.Trimmed("resource"))
	if err == nil {
		err = p.ports.GrantChanges.Add(ctx, g)
	}
	return v.Done(err, serviceAddress(v), "granted")
}

func (p *Pages) addServiceToken(ctx context.Context, v *site.Visit) error {
	name := strings.Clone(key[string](v, "name"))
	return tokenlist.Add(ctx, v, tokenlist.Makers{Tokens: p.ports.Tokens, Credentials: p.ports.Credentials}, auth.ServiceOwner(name),
		site.Link{Text: "The service account " + name, Path: serviceAddress(v)})
}

func (p *Pages) removeServiceToken(ctx context.Context, v *site.Visit) error {
	err := tokenlist.Remove(ctx, v, p.ports.Tokens, auth.ServiceOwner(key[string](v, "name")))
	return v.Done(err, serviceAddress(v), "untoken")
}
