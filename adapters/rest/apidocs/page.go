package apidocs

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
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
	Parameters           []row
	Body                 []content
	Answers              []reply
}

type content struct {
	Media   string
	Type    []word
	Example string
}

type reply struct {
	Status, Description string
	Headers             []string
	Content             []content
}

// table is a named schema.
type table struct {
	Name, Description string
	Type              []word
	Rules             []string
	Rows              []row
}

type row struct {
	Name, In, Description string
	Required              bool
	Type                  []word
	Rules                 []string
}

// word is a piece of a type; Link names a table.
type word struct{ Text, Link string }

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
		var err error
		if c.Parameters, err = s.parameters(append(slices.Clone(path.Value.Parameters), o.Parameters...)); err != nil {
			return nil, err
		}
		if o.RequestBody != nil {
			body, err := s.Components.RequestBodies.find(o.RequestBody.Ref, *o.RequestBody)
			if err != nil {
				return nil, err
			}
			if c.Body, err = contents(body.Content); err != nil {
				return nil, err
			}
		}
		if c.Answers, err = s.replies(o.Responses); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

func (s *spec) parameters(list []parameter) ([]row, error) {
	var rows []row
	for _, p := range list {
		p, err := s.Components.Parameters.find(p.Ref, p)
		if err != nil {
			return nil, err
		}
		r := row{Name: p.Name, In: p.In, Required: p.Required, Description: p.Description, Type: typeOf(p.Schema), Rules: rulesOf(p.Schema)}
		if p.Example != nil {
			r.Rules = append(r.Rules, "such as "+plain(p.Example))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (s *spec) replies(responses ordered[response]) ([]reply, error) {
	var list []reply
	for _, r := range responses {
		v, err := s.Components.Responses.find(r.Value.Ref, r.Value)
		if err != nil {
			return nil, err
		}
		a := reply{Status: r.Name, Description: v.Description}
		for _, h := range v.Headers {
			a.Headers = append(a.Headers, h.Name)
		}
		if a.Content, err = contents(v.Content); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

func contents(all ordered[media]) ([]content, error) {
	var list []content
	for _, m := range all {
		c := content{Media: m.Name, Type: typeOf(m.Value.Schema)}
		if !m.Value.Example.IsZero() {
			text, err := toJSON(&m.Value.Example)
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			if err := json.Indent(&b, text, "", "  "); err != nil {
				return nil, fmt.Errorf("write example: %w", err)
			}
			c.Example = b.String()
		}
		list = append(list, c)
	}
	return list, nil
}

// paragraphs splits a text at its empty lines.
func paragraphs(text string) []string { return strings.Split(strings.TrimSpace(text), "\n\n") }

// span is a part of a sentence; code stands between backticks.
type span struct {
	Text string
	Code bool
}

func spans(text string) []span {
	var list []span
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			list = append(list, span{part, i%2 == 1})
		}
	}
	return list
}
