// Package guide serves the guides of the version that runs, which are in the program, as pages of the
// console. They are public: reading them never needs a session.
package guide

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/docs"
)

//go:embed templates
var templateFiles embed.FS

// repository is where links to files lead that are not in the program.
const repository = "https://github.com/tollgate-dev/tollgate/blob/main/"

var (
	page        = site.NewPage(templateFiles, "templates/guide.html")
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	anchorTag   = regexp.MustCompile(`^(<a id="[a-z0-9-]+">|</a>)$`)
	// markdown is that of GitHub. Of HTML, only anchors remain (showHTML).
	markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Linkify), goldmark.WithRendererOptions(html.WithUnsafe()),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))
)

// Guides are the pages. Each is rendered when it is first shown.
type Guides struct {
	site  *site.Site
	pages sync.Map // by name
}

type guide struct {
	Title   string
	Content template.HTML
}

// New returns the guides.
func New(s *site.Site) *Guides { return &Guides{site: s} }

// Mount adds the routes.
func (g *Guides) Mount(r fiber.Router) {
	r.Get(strings.TrimSuffix(site.GuidePath, "/"), func(c *fiber.Ctx) error { return c.Redirect(site.GuidePath, http.StatusMovedPermanently) })
	r.Get(site.GuidePath+"*", g.site.Open(g.show))
}

// show shows a page, or sends a file that one links to. What is no picture is sent as text.
func (g *Guides) show(v *site.Visit) error {
	address := strings.Clone(v.Params("*"))
	if made, known := g.pages.Load(address); known {
		return v.Render(page, site.Head{Title: made.(guide).Title}, made) //nolint:errcheck // nothing else is stored
	}
	if name := sourceOf(address); exists(name) {
		made, err := render(name)
		if err != nil {
			return err
		}
		g.pages.Store(address, made)
		return v.Render(page, site.Head{Title: made.Title}, made)
	}
	content, err := docs.Files.ReadFile(address)
	if err != nil {
		return fault.New(fault.NotFound, "there is no such guide")
	}
	v.Set(fiber.HeaderContentType, map[bool]string{true: "image/png", false: fiber.MIMETextPlainCharsetUTF8}[path.Ext(address) == ".png"])
	v.Response().SetBodyRaw(content)
	return nil
}

// sourceOf returns the name of the page at an address below site.GuidePath.
func sourceOf(address string) string {
	if address == "" || strings.HasSuffix(address, "/") {
		address += "README"
	}
	return address + ".md"
}

func exists(name string) bool {
	_, err := fs.Stat(docs.Files, name)
	return err == nil
}

// render renders the page with a name.
func render(name string) (guide, error) {
	source, err := docs.Files.ReadFile(name)
	if err != nil {
		return guide{}, fmt.Errorf("read a guide: %w", err)
	}
	document := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(headings{}))))
	first, _, _ := strings.Cut(string(source), "\n")
	made := guide{Title: strings.ReplaceAll(strings.TrimLeft(first, "# "), "`", "")}
	var inText []ast.Node
	// The function that walks returns no error.
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				n.Destination = []byte(resolve(name, string(n.Destination)))
			}
		case *ast.Image:
			if entering {
				n.Destination = []byte(resolve(name, string(n.Destination)))
			}
		case *ast.RawHTML:
			if entering && !anchorTag.Match(n.Segments.Value(source)) {
				inText = append(inText, n, ast.NewString(n.Segments.Value(source)))
			}
		case *ast.HTMLBlock:
			if shown := n.Lines().Value(source); entering && bytes.HasPrefix(shown, []byte("<!--")) {
				inText = append(inText, n, ast.NewString(nil)) // it is about the tests of the page
			} else if entering {
				inText = append(inText, n, ast.NewString(shown))
			}
		}
		return ast.WalkContinue, nil
	})
	for i := 0; i < len(inText); i += 2 {
		inText[i].Parent().ReplaceChild(inText[i].Parent(), inText[i], inText[i+1])
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, document); err != nil {
		return guide{}, fmt.Errorf("render a guide: %w", err)
	}
	made.Content = template.HTML(b.String()) // #nosec G203 -- of our own text, whose HTML is shown as text
	return made, nil
}

// resolve returns the link for one that is written in the page with a name: to another page, to a file, or
// to the repository.
func resolve(name, link string) string {
	u, err := url.Parse(link)
	if err != nil || u.IsAbs() || u.Path == "" {
		return link
	}
	target := path.Join(path.Dir(name), u.Path)
	switch {
	case !exists(target):
		return repository + path.Join("docs", target)
	case exists(target + "/README.md"):
		target += "/"
	}
	u.Path = site.GuidePath + strings.TrimSuffix(strings.TrimSuffix(target, ".md"), "README")
	return u.String()
}

// headings are the anchors of the headings of a page, which are those of GitHub. A second heading of the same
// words has "-1" at its end.
type headings map[string]bool

// Generate implements parser.IDs.
func (h headings) Generate(heading []byte, _ ast.NodeKind) []byte {
	anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(string(heading)), ""), " ", "-")
	unique := anchor
	for i := 1; h[unique]; i++ {
		unique = anchor + "-" + strconv.Itoa(i)
	}
	h[unique] = true
	return []byte(unique)
}

// Put implements parser.IDs.
func (h headings) Put(anchor []byte) { h[string(anchor)] = true }
