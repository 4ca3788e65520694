// Package guide serves the guides of the version that runs, which are in the program, as pages of the
// console. They are public: reading them never needs a session.
package guide

import (
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/docs"
)

//go:embed templates
var templateFiles embed.FS

var page = site.NewPage(templateFiles, "templates/guide.html")

// The index of a folder, and the types of files that browsers show.
const index = "README.md"

var contentTypes = map[string]string{".png": "image/png", ".json": fiber.MIMEApplicationJSONCharsetUTF8}

// Guides are the pages and files by their path below site.GuidePath. Each is made when it is first shown.
type Guides struct {
	site  *site.Site
	pages map[string]func() (Guide, error)
	files map[string]func() (*responsebody.Fixed, error)
}

// Guide is a page.
type Guide struct {
	Title   string
	Content template.HTML
}

// New returns the guides.
func New(s *site.Site) *Guides {
	g := &Guides{s, map[string]func() (Guide, error){}, map[string]func() (*responsebody.Fixed, error){}}
	// The files are in the program, so that they can be listed.
	_ = fs.WalkDir(docs.Files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case path.Ext(name) == ".md":
			g.pages[addressOf(name)] = sync.OnceValues(func() (Guide, error) { return g.render(name) })
		default:
			g.files[name] = sync.OnceValues(func() (*responsebody.Fixed, error) {
				content, err := docs.Files.ReadFile(name)
				return responsebody.NewFixed(contentTypeOf(name), content), err
			})
		}
		return nil
	})
	return g
}

// contentTypeOf returns the type of a file: what browsers do not show is text, and never active.
func contentTypeOf(name string) string {
	if known := contentTypes[path.Ext(name)]; known != "" {
		return known
	}
	return fiber.MIMETextPlainCharsetUTF8
}

// addressOf returns where the page with a name is below site.GuidePath.
func addressOf(name string) string {
	if folder, file := path.Split(name); file == index {
		return folder
	}
	return strings.TrimSuffix(name, ".md")
}

// Mount adds the routes.
func (g *Guides) Mount(r fiber.Router) {
	r.Get(strings.TrimSuffix(site.GuidePath, "/"), func(c *fiber.Ctx) error {
		return c.Redirect(site.GuidePath, http.StatusMovedPermanently)
	})
	for name, read := range g.files {
		r.Get(site.GuidePath+name, func(c *fiber.Ctx) error {
			file, err := read()
			if err != nil {
				return err
			}
			return file.Send(c)
		})
	}
	r.Get(site.GuidePath+"*", g.site.Open(g.show))
}

// show shows a page.
func (g *Guides) show(v *site.Visit) error {
	render := g.pages[v.Params("*")]
	if render == nil {
		return fault.New(fault.NotFound, "there is no such guide")
	}
	one, err := render()
	if err != nil {
		return err
	}
	return v.Render(page, site.Head{Title: one.Title}, one)
}
