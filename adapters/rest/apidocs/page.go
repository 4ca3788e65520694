package apidocs

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

// page is what the template shows.
type page struct {
	Title, Version, Summary string
	Description             string
	Style                   template.CSS
	Groups                  []group
	Tables                  []table
}

type group struct {
	Name, Description string
	Calls             []call
}

// call is one operation.
type call struct {
	ID, Method, Path     string
	Alias                string // the same call below /v0
	Summary, Description string
	Token                bool
	Command              string // a call of curl
	Parameters           []row
	Body                 []content
	Answers              []reply // 2xx and 3xx
	Failures             []reply
	Form                 []word   // of all failures
	Headers              []string // of all answers
}

// renderPage returns the page and the policy that lets it have its own style
// and nothing else.
func renderPage(root *yaml.Node) (body []byte, policy string, err error) {
	var s spec
	if err := root.Decode(&s); err != nil {
		return nil, "", fmt.Errorf("read: %w", err)
	}
	p, err := pageOf(&s)
	if err != nil {
		return nil, "", err
	}
	t, err := template.New("page").Funcs(template.FuncMap{"paragraphs": paragraphs, "spans": spans}).Parse(pageTemplate)
	if err != nil {
		return nil, "", fmt.Errorf("read template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, "", fmt.Errorf("fill template: %w", err)
	}
	sum := sha256.Sum256([]byte(pageStyle))
	return b.Bytes(), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", nil
}

func pageOf(s *spec) (*page, error) {
	p := &page{
		Title: s.Info.Title, Version: s.Info.Version, Summary: s.Info.Summary, Description: s.Info.Description,
		Style: template.CSS(pageStyle), // our own file, embedded
	}
	for _, tag := range s.Tags {
		g := group{Name: tag.Name, Description: tag.Description}
		for _, path := range s.Paths {
			calls, err := s.calls(path, tag.Name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path.Name, err)
			}
			g.add(calls)
		}
		p.Groups = append(p.Groups, g)
	}
	for _, c := range s.Components.Schemas {
		p.Tables = append(p.Tables, tableOf(c.Name, c.Value))
	}
	return p, nil
}

// add notes the calls of a path. One that is served a second time, below /v0,
// is told beside the first.
func (g *group) add(calls []call) {
	for _, c := range calls {
		first := slices.IndexFunc(g.Calls, func(other call) bool { return other.ID+"V0" == c.ID })
		if first >= 0 {
			g.Calls[first].Alias = c.Path
			continue
		}
		g.Calls = append(g.Calls, c)
	}
}

// calls returns the operations of a path that have a tag.
func (s *spec) calls(path named[pathItem], tag string) ([]call, error) {
	var list []call
	for _, method := range path.Value.Methods {
		o := method.Value
		if !slices.Contains(o.Tags, tag) {
			continue
		}
		c := call{
			ID: o.ID, Method: strings.ToUpper(method.Name), Path: path.Name,
			Summary: o.Summary, Description: o.Description, Token: len(o.Security) > 0,
		}
		if err := s.fill(&c, &o, path.Value.Parameters); err != nil {
			return nil, fmt.Errorf("%s: %w", method.Name, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// fill adds what is sent and what is answered.
func (s *spec) fill(c *call, o *operation, shared []parameter) error {
	parameters, err := s.resolved(append(slices.Clone(shared), o.Parameters...))
	if err != nil {
		return err
	}
	c.Parameters = rowsOfParameters(parameters)
	if o.RequestBody != nil {
		body, err := s.Components.RequestBodies.find(o.RequestBody.Ref, *o.RequestBody)
		if err != nil {
			return err
		}
		if c.Body, err = s.contents(body.Content); err != nil {
			return err
		}
	}
	all, err := s.replies(o.Responses)
	if err != nil {
		return err
	}
	c.Headers = takeCommonHeaders(all)
	for _, r := range all {
		if r.succeeds() {
			c.Answers = append(c.Answers, r)
		} else {
			c.Failures = append(c.Failures, r)
			c.Form = r.form()
		}
	}
	c.Command = command(c, parameters)
	return nil
}

// paragraphs splits a text at its empty lines.
func paragraphs(text string) []string { return strings.Split(strings.TrimSpace(text), "\n\n") }

// span is a part of a sentence: plain, code between backticks, or a link
// [text](#target) within the page.
type span struct {
	Text, Link string
	Code       bool
}

func spans(text string) []span {
	var list []span
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			list = append(list, span{Text: part, Code: true})
			continue
		}
		list = append(list, links(part)...)
	}
	return list
}

// links splits a text without code at its links.
func links(text string) []span {
	var list []span
	for text != "" {
		before, rest, begun := strings.Cut(text, "[")
		label, rest, labelled := strings.Cut(rest, "](#")
		target, after, ended := strings.Cut(rest, ")")
		if !begun || !labelled || !ended {
			return append(list, span{Text: text})
		}
		if before != "" {
			list = append(list, span{Text: before})
		}
		list = append(list, span{Text: label, Link: target})
		text = after
	}
	return list
}
