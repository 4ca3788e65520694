// Package console serves the pages for people below /console/: the catalogue of servers, and for
// those who sign in what they may do. The pages are rendered here, without a build step and without
// a framework in the browser; every act works without JavaScript. They call the same use cases as
// the API, and have no rules of their own. Package site has what they share.
package console

import (
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/account"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/authorizing"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/catalogue"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/guide"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/inbox"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/operating"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/publishing"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/reviewing"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/signin"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Ports are the use cases that the pages call. Auth is nil if the part for authentication does not
// run: then there is the catalogue alone.
type Ports struct {
	Brand   site.Brand
	Servers *browsing.Browser
	Finder  *browsing.Finder
	Hidden  *quarantining.Service
	Views   *viewing.Gate
	Tools   *browsing.Tools
	Owners  registrystore.Owners
	Public  catalogue.PublicURL
	MCP     catalogue.MCP
	Reading viewing.Config
	Auth    *AuthPorts
}

// AuthPorts are the use cases for people who sign in.
type AuthPorts struct {
	Site       site.Ports
	SignIn     signin.Ports
	Account    account.Ports
	Publishing publishing.Ports
	Reviewing  reviewing.Ports
	Operating  operating.Ports
	// Authorizing is empty without the authorization server.
	Authorizing authorizing.Ports
}

// Console is the part of the API listener with the pages.
type Console struct {
	site       *site.Site
	pages      []pages
	authorizes bool // there are the pages of authorization requests
}

// pages are the pages of one subject.
type pages interface{ Mount(r fiber.Router) }

// New returns the console.
func New(p Ports) *Console {
	of := catalogue.Ports{Servers: p.Servers, Finder: p.Finder, Hidden: p.Hidden, Views: p.Views, Tools: p.Tools, Owners: p.Owners}
	if p.Auth == nil {
		s := site.New(site.Ports{Reading: p.Reading}, p.Brand)
		return &Console{site: s, pages: []pages{s, guide.New(s), catalogue.New(s, of), catalogue.NewConnect(s, p.Views, p.Public, p.MCP)}}
	}
	of.Reviews, of.IsEmpty, of.Trail = p.Auth.Reviewing.Reviews, p.Auth.SignIn.Joining.IsEmpty, p.Auth.SignIn.Trail
	of.Access = p.Auth.Operating.Access
	s := site.New(p.Auth.Site, p.Brand)
	c := &Console{site: s, authorizes: p.Auth.Authorizing.On(), pages: []pages{
		s, guide.New(s), catalogue.New(s, of), catalogue.NewConnect(s, p.Views, p.Public, p.MCP), signin.New(s, p.Auth.SignIn),
		account.New(s, p.Auth.Account), publishing.New(s, p.Auth.Publishing),
		reviewing.New(s, p.Auth.Reviewing), operating.New(s, p.Auth.Operating), inbox.New(s, inbox.Ports{
			Account: p.Auth.Account, Operating: p.Auth.Operating, Policies: p.Auth.Publishing.Policies, Allow: publishing.AllowAddress,
			Reviews: p.Auth.Reviewing.Reviews, Finder: p.Finder,
		}),
	}}
	if c.authorizes {
		c.pages = append(c.pages, authorizing.New(s, p.Auth.Authorizing))
	}
	return c
}

// Mount adds the routes. The root of the site leads browsers to the console, and only them.
func (c *Console) Mount(r fiber.Router) {
	for _, p := range c.pages {
		p.Mount(r)
	}
	r.Get("/", leadBrowsers)
	r.Get(strings.TrimSuffix(site.Root, "/"), func(c *fiber.Ctx) error {
		return c.Redirect(site.Home, http.StatusMovedPermanently)
	})
}

// leadBrowsers redirects requests of browsers, which ask for HTML, to the console.
func leadBrowsers(c *fiber.Ctx) error {
	if c.Path() != "/" || !strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		return c.Next()
	}
	c.Set(fiber.HeaderVary, fiber.HeaderAccept)
	return c.Redirect(site.Home, http.StatusFound)
}

// Name implements rest.Part.
func (*Console) Name() string { return "console" }

// Owns implements rest.Part. No limit applies to the static files.
func (c *Console) Owns(path string) bool {
	return c.authorizes && authorizing.Owns(path) || strings.HasPrefix(path, site.GuidePath) || path+"/" == site.Root || strings.HasPrefix(path, site.Root) && !strings.HasPrefix(path, site.StaticRoot)
}

// Scope implements rest.Part: forms with secrets have the limit of the paths below /auth.
func (*Console) Scope(method, path string) throttle.Scope {
	switch {
	case method != http.MethodPost:
		return throttle.APIAddress
	case signin.TakesSecrets(path), strings.HasPrefix(path, account.Path):
		return throttle.AuthAddress
	}
	return throttle.APIAddress
}

// MaxBody implements rest.Part. Forms for a document have it, and those of a step-up carry it
// along.
func (*Console) MaxBody(_, path string) int {
	switch {
	case strings.HasPrefix(path, publishing.Path), strings.HasPrefix(path, site.StepUpPath):
		return rest.MaxBody
	case strings.Contains(path, "/passkey"): // a credential, encoded for a form
		return rest.MaxSecretBody + 3*auth.MaxCredential
	case signin.TakesSecrets(path), strings.HasPrefix(path, account.Path):
		return rest.MaxSecretBody
	}
	return rest.MaxRecordBody
}

// WriteFault implements rest.Part.
func (c *Console) WriteFault(ctx *fiber.Ctx, f *fault.Error) error { return c.site.WriteFault(ctx, f) }
