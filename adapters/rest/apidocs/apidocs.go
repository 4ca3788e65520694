// Package apidocs serves the description of the API: the OpenAPI document of
// all routes, and a page made from it that loads nothing from anywhere
// (decisions 0). It describes; it checks no request.
package apidocs

import (
	_ "embed"
	"fmt"

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

// Document returns the OpenAPI document of the API listener as YAML.
func Document() []byte { return append([]byte(nil), document...) }

// Docs are the description in its three forms.
type Docs struct {
	yaml, json, page *representation.Fixed
	policy           string
}

// New reads the document and makes its other forms. The error tells what is
// wrong with the document that this program was built with.
func New() (*Docs, error) {
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
	return &Docs{
		yaml:   representation.NewFixed(typeYAML, document),
		json:   representation.NewFixed(fiber.MIMEApplicationJSON, json),
		page:   representation.NewFixed(typeHTML, page),
		policy: policy,
	}, nil
}

// Mount adds the routes.
func (d *Docs) Mount(r fiber.Router) {
	r.Get("/openapi.yaml", forBrowsers, d.yaml.Send)
	r.Get("/openapi.json", forBrowsers, d.json.Send)
	r.Get("/docs", d.read)
}

// forBrowsers lets pages of any origin read the document, as tools that show
// such documents do.
func forBrowsers(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	return c.Next()
}

// read answers the page. It may use its own style and nothing else.
func (d *Docs) read(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentSecurityPolicy, d.policy)
	return d.page.Send(c)
}
