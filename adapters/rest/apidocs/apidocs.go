// Package apidocs serves the description of the API: the OpenAPI document of all routes, and a page
// made from it that loads nothing from elsewhere (contract O-16). It checks no request.
package apidocs

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/gofiber/fiber/v2"
	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/adapters/rest/representation"
)

//go:embed openapi.yaml
var document []byte

// The content types of the answers (RFC 9512 for YAML).
const (
	typeYAML = "application/yaml"
	typeHTML = "text/html; charset=utf-8"
)

// pagePath is the path of the page (contract O-16).
const pagePath = "/docs"

// Document returns the OpenAPI document of the API listener as YAML.
func Document() []byte { return append([]byte(nil), document...) }

// Docs are the description in its three forms. It is safe for concurrent use.
type Docs struct{ forms func() (*forms, error) }

// forms are made from the document when one is first asked for, so that no start of the service waits for them.
type forms struct {
	yaml, json, page *representation.Fixed
	policy           string
}

// New returns the description of this program's API.
func New() *Docs { return &Docs{sync.OnceValues(makeForms)} }

// makeForms reads the document and makes its other forms. The error tells what is wrong with the document that this program was
// built with.
func makeForms() (*forms, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	json, err := toJSON(&root)
	if err != nil {
		return nil, fmt.Errorf("write openapi.json: %w", err)
	}
	page, policy, err := renderPage(&root)
	if err != nil {
		return nil, fmt.Errorf("write page of openapi.yaml: %w", err)
	}
	return &forms{
		yaml:   representation.NewFixed(typeYAML, document),
		json:   representation.NewFixed(fiber.MIMEApplicationJSON, json),
		page:   representation.NewFixed(typeHTML, page),
		policy: policy,
	}, nil
}

// Mount adds the routes.
func (d *Docs) Mount(r fiber.Router) {
	r.Get("/openapi.yaml", forBrowsers, d.answer(func(c *fiber.Ctx, f *forms) error { return f.yaml.Send(c) }))
	r.Get("/openapi.json", forBrowsers, d.answer(func(c *fiber.Ctx, f *forms) error { return f.json.Send(c) }))
	r.Get(pagePath, d.answer(read))
}

// Path returns where the page is.
func (d *Docs) Path() string { return pagePath }

func (d *Docs) answer(send func(*fiber.Ctx, *forms) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		f, err := d.forms()
		if err != nil {
			return err
		}
		return send(c, f)
	}
}

// forBrowsers lets pages of any origin read the document, as tools that show
// such documents do.
func forBrowsers(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	return c.Next()
}

// read answers the page. It may use its own style and nothing else.
func read(c *fiber.Ctx, f *forms) error {
	c.Set(fiber.HeaderContentSecurityPolicy, f.policy)
	return f.page.Send(c)
}
