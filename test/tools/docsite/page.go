package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

var (
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	idInHTML    = regexp.MustCompile(`<a id="([^"]+)">`)
	// markdown is that of GitHub. The pages are our own, so that HTML in them is rendered.
	markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(
		html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(checkBoxes{}, 0)),
	))
)

// page is a page of the site.
type page struct {
	source   string // its path in the project
	Address  string // its path in the site
	Title    string
	text     []byte
	document ast.Node
	anchors  map[string]bool
	sections []section
}

// section is what the search finds: a heading with the text up to the next one.
type section struct{ heading, anchor, text string }

// parsePage parses a page, and gives each heading the anchor that it has on GitHub.
func parsePage(source string, content []byte) *page {
	p := &page{source: source, Address: addressOf(source), text: content, anchors: map[string]bool{}}
	p.document = markdown.Parser().Parse(text.NewReader(content))
	for n := p.document.FirstChild(); n != nil; {
		next := n.NextSibling()
		switch n := n.(type) {
		case *ast.Heading:
			p.addHeading(n)
		case *ast.HTMLBlock:
			if raw := n.Lines().Value(content); bytes.HasPrefix(raw, []byte("<!--")) {
				p.document.RemoveChild(p.document, n) // they are about the tests of the page
			}
		}
		if _, heading := n.(*ast.Heading); !heading && len(p.sections) > 0 {
			last := &p.sections[len(p.sections)-1]
			last.text += " " + textOf(n, content)
		}
		n = next
	}
	for _, found := range idInHTML.FindAllSubmatch(content, -1) {
		p.anchors[string(found[1])] = true
	}
	return p
}

// checkBoxes renders the boxes of check lists as characters, since fields would need labels.
type checkBoxes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (checkBoxes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(extast.KindTaskCheckBox, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		box, _ := n.(*extast.TaskCheckBox)
		sign := "☐ "
		if box != nil && box.IsChecked {
			sign = "☑ "
		}
		if !entering {
			return ast.WalkContinue, nil
		}
		_, err := w.WriteString(sign)
		return ast.WalkContinue, err
	})
}

// addHeading gives a heading its anchor. A second heading of the same words has "-1" at its end.
func (p *page) addHeading(h *ast.Heading) {
	heading := textOf(h, p.text)
	if p.Title == "" {
		p.Title = heading
	}
	anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
	unique := anchor
	for i := 1; p.anchors[unique]; i++ {
		unique = anchor + "-" + strconv.Itoa(i)
	}
	p.anchors[unique] = true
	h.SetAttributeString("id", []byte(unique))
	p.sections = append(p.sections, section{heading: heading, anchor: unique})
}

// textOf returns the text of a node, without its markup, on one line.
func textOf(n ast.Node, source []byte) string {
	var b strings.Builder
	// The function that walks returns no error.
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(source))
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if n.Type() == ast.TypeBlock && !entering {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// resolveLinks changes the links of a page to those of the site, and returns an error for each that
// leads nowhere.
func (s *site) resolveLinks(p *page) (broken []error) {
	resolve := func(destination []byte) []byte {
		link, err := s.resolve(p, string(destination))
		if err != nil {
			broken = append(broken, fmt.Errorf("%s: the link %s: %w", p.source, destination, err))
		}
		return []byte(link)
	}
	// The function that walks returns no error.
	_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = resolve(n.Destination)
		case *ast.Image:
			n.Destination = resolve(n.Destination)
		}
		return ast.WalkContinue, nil
	})
	return broken
}
