// Package apidocs serves the documentation of the API: the OpenAPI document of all routes as YAML
// and as JSON, and HTML pages that load nothing from other sites (contract O-16). It does not
// check requests against the document. The JSON and the pages are generated from openapi.yaml, and in it
// what is about kinds of objects that operators manage from the descriptions of the kinds.
package apidocs

import (
	"embed"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
)

//go:generate go run -C ../../../test/tools ./apidocs ../../adapters/rest/apidocs

var (
	//go:embed openapi.yaml
	documentYAML []byte
	//go:embed openapi.json
	documentJSON []byte
	//go:embed pages
	pageFiles embed.FS
	//go:embed page.policy
	pagePolicy string // the Content-Security-Policy of the pages: they may use their own style and nothing else
)

// The paths of the document, which views of the registry have too, below their own, and of the pages
// (contract O-16).
const (
	YAMLPath = "/openapi.yaml"
	JSONPath = "/openapi.json"
	PagePath = "/docs"
)

// Document returns the OpenAPI document of the API listener as YAML.
func Document() []byte { return append([]byte(nil), documentYAML...) }

// Docs is the documentation in its three formats. It is safe for concurrent use.
type Docs struct{ bodies func() *bodies }

type bodies struct {
	yaml, json *responsebody.Fixed
	pages      map[string]*responsebody.Fixed // by the name of the part; that of all is "index"
}

// New returns the documentation of this program's API. The formats are compressed at the first
// request, so that they do not delay the start of the service.
func New() *Docs {
	return &Docs{sync.OnceValue(func() *bodies {
		b := &bodies{
			yaml: responsebody.NewFixed("application/yaml", documentYAML), pages: map[string]*responsebody.Fixed{},
			json: responsebody.NewFixed(fiber.MIMEApplicationJSON, documentJSON),
		}
		pages, _ := pageFiles.ReadDir("pages") // they are in the program
		for _, page := range pages {
			text, _ := pageFiles.ReadFile("pages/" + page.Name())
			b.pages[strings.TrimSuffix(page.Name(), ".html")] = responsebody.NewFixed(fiber.MIMETextHTMLCharsetUTF8, text)
		}
		return b
	})}
}

// Mount adds the routes.
func (d *Docs) Mount(r fiber.Router) {
	r.Get(YAMLPath, allowAnyOrigin, d.SendYAML)
	r.Get(JSONPath, allowAnyOrigin, d.SendJSON)
	r.Get(PagePath, d.sendPage)
	r.Get(PagePath+"/:part", d.sendPage)
}

// SendYAML sends the document as YAML.
func (d *Docs) SendYAML(c *fiber.Ctx) error { return d.bodies().yaml.Send(c) }

// SendJSON sends the document as JSON.
func (d *Docs) SendJSON(c *fiber.Ctx) error { return d.bodies().json.Send(c) }

// allowAnyOrigin lets web pages of any origin read the document, for example tools that show
// OpenAPI documents.
func allowAnyOrigin(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	return c.Next()
}

// sendPage sends the page of a part, or the one that lists all. The console has guides below the path too.
func (d *Docs) sendPage(c *fiber.Ctx) error {
	page := d.bodies().pages[c.Params("part", "index")]
	if page == nil {
		return c.Next()
	}
	c.Set(fiber.HeaderContentSecurityPolicy, pagePolicy)
	return page.Send(c)
}
