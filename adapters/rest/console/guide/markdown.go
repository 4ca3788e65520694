package guide

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/docs"
)

// repository is where links to files lead that are no guides.
const repository = "https://github.com/tollgate-dev/tollgate/blob/main/"

var (
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	anchorTag   = regexp.MustCompile(`^(<a id="[a-z0-9-]+">|</a>)$`)
	// markdown is that of GitHub. HTML in it is shown as text, but for anchors.
	markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(anchors{}, 0))))
)

// render renders the page with a name.
func (g *Guides) render(name string) (Guide, error) {
	source, err := docs.Files.ReadFile(name)
	if err != nil {
		return Guide{}, fmt.Errorf("read a guide: %w", err)
	}
	document := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(headings{}))))
	made := Guide{Title: name}
	if h, ok := document.FirstChild().(*ast.Heading); ok {
		made.Title = strings.ReplaceAll(string(h.Lines().Value(source)), "`", "")
	}
	// The function that walks returns no error.
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				n.Destination = []byte(g.resolve(name, string(n.Destination)))
			}
		case *ast.Image:
			if entering {
				n.Destination = []byte(g.resolve(name, string(n.Destination)))
			}
		}
		return ast.WalkContinue, nil
	})
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, document); err != nil {
		return Guide{}, fmt.Errorf("render a guide: %w", err)
	}
	made.Content = template.HTML(b.String()) // #nosec G203 -- of our own text, whose HTML is shown as text
	return made, nil
}

// resolve returns the link for one that is written in the page with a name: to another page, to a file, or
// to the repository.
func (g *Guides) resolve(name, link string) string {
	u, err := url.Parse(link)
	if err != nil || u.IsAbs() || u.Path == "" {
		return link
	}
	target := path.Join(path.Dir(name), u.Path)
	switch {
	case g.pages[addressOf(target)] != nil:
		u.Path = site.GuidePath + addressOf(target)
	case g.pages[target+"/"] != nil:
		u.Path = site.GuidePath + target + "/"
	case g.files[target] != nil:
		u.Path = site.GuidePath + target
	default:
		return repository + strings.TrimPrefix(path.Join("docs", target), "/")
	}
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

// anchors renders HTML: anchors as they are, comments not at all, because they are about the tests of a page,
// and all else as text.
type anchors struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (anchors) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	write := func(w util.BufWriter, raw []byte) {
		switch raw = bytes.TrimSpace(raw); {
		case anchorTag.Match(raw):
			_, _ = w.Write(raw) // the error is that of the flush
		case !bytes.HasPrefix(raw, []byte("<!--")):
			_, _ = w.Write(util.EscapeHTML(raw))
		}
	}
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if raw, ok := n.(*ast.RawHTML); ok && entering {
			write(w, raw.Segments.Value(source))
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			write(w, n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
}
