package main

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

//go:embed template.html
var pageTemplate string

//go:embed style.css
var pageStyle string

// pageSize is the size in bytes up to which a part is one page, so that no page has more than 300 KB.
const pageSize = 230_000

// page is the data of the template.
type page struct {
	Title, Version, Summary string
	Description             string
	Style                   template.CSS
	Parts                   []*section
	Current                 *section // nil for the page that lists all
}

// section holds the operations that have one tag, or schemas, as one page.
type section struct {
	Name, Label, Description string
	Entries                  []entry
}

// entry is an operation or a schema.
type entry struct {
	ID, Method, Summary string
	Group               string // entries of one group are on one page
	Operation           *operationView
	Table               *table
	HTML                template.HTML
}

// operationView is an operation as the page shows it.
type operationView struct {
	ID, Method, Path     string
	Alias                string // the path of the same operation below /v0
	Summary, Description string
	NeedsToken           bool
	Curl                 string // a command that calls the operation
	Parameters           []row
	Body                 []bodyView
	Successes            []responseView // 2xx and 3xx
	Failures             []responseView
	FailureType          []typePart // the type of the body of every failure
	CommonHeaders        []string   // of every response
}

// renderPages returns the HTML pages by name, the one that lists all with an empty name, and their
// Content-Security-Policy, which allows the style of the pages and nothing else.
func renderPages(root *yaml.Node) (pages map[string][]byte, policy string, err error) {
	var d document
	if err := root.Decode(&d); err != nil {
		return nil, "", fmt.Errorf("decode: %w", err)
	}
	p, err := newPage(&d)
	if err != nil {
		return nil, "", err
	}
	places := map[string]string{}
	t, err := template.New("page").Funcs(template.FuncMap{
		"paragraphs": splitParagraphs, "spans": splitSpans,
		"at": func(id string) string { return places[id] + "#" + id },
	}).Parse(pageTemplate)
	if err != nil {
		return nil, "", fmt.Errorf("parse template: %w", err)
	}
	// The sizes say on which pages the entries are, and then the links are known.
	if err := p.renderEntries(t); err != nil {
		return nil, "", err
	}
	p.split(places)
	if err := p.renderEntries(t); err != nil {
		return nil, "", err
	}
	pages = map[string][]byte{}
	for _, current := range append([]*section{nil}, p.Parts...) {
		var b bytes.Buffer
		name := ""
		if p.Current = current; current != nil {
			name = current.Name
		}
		if err := t.Execute(&b, p); err != nil {
			return nil, "", fmt.Errorf("execute template: %w", err)
		}
		pages[name] = b.Bytes()
	}
	sum := sha256.Sum256([]byte(pageStyle))
	return pages, "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", nil
}

// renderEntries renders the entries of all parts.
func (p *page) renderEntries(t *template.Template) error {
	for _, s := range p.Parts {
		for i := range s.Entries {
			var b bytes.Buffer
			if err := t.ExecuteTemplate(&b, "entry", s.Entries[i]); err != nil {
				return fmt.Errorf("execute template: %w", err)
			}
			s.Entries[i].HTML = template.HTML(b.String()) // #nosec G203 -- a template has rendered it
		}
	}
	return nil
}

// split makes several pages of the parts that are too large for one, and sets where each part and entry is.
func (p *page) split(places map[string]string) {
	var all []*section
	for _, s := range p.Parts {
		pages, size := []*section{{Name: s.Name, Description: s.Description}}, 0
		for i := 0; i < len(s.Entries); {
			group, length := []entry(nil), 0
			for ; i < len(s.Entries) && (group == nil || s.Entries[i].Group == group[0].Group); i++ {
				group, length = append(group, s.Entries[i]), length+len(s.Entries[i].HTML)
			}
			if size > 0 && size+length > pageSize {
				pages, size = append(pages, &section{Name: fmt.Sprintf("%s-%d", s.Name, len(pages)+1)}), 0
			}
			last := pages[len(pages)-1]
			last.Entries, size = append(last.Entries, group...), size+length
		}
		for i, one := range pages {
			if one.Label = s.Name; len(pages) > 1 {
				one.Label = fmt.Sprintf("%s, %d of %d", s.Name, i+1, len(pages))
			}
			places[one.Name] = "/docs/" + one.Name
			for _, e := range one.Entries {
				places[e.ID] = "/docs/" + one.Name
			}
		}
		all = append(all, pages...)
	}
	p.Parts = all
}

func newPage(d *document) (*page, error) {
	p := &page{
		Title: d.Info.Title, Version: d.Info.Version, Summary: d.Info.Summary, Description: d.Info.Description,
		Style: template.CSS(pageStyle), // #nosec G203 -- a file of this package
	}
	for _, tag := range d.Tags {
		s := &section{Name: tag.Name, Description: tag.Description}
		for _, path := range d.Paths {
			views, err := d.operationViews(path, tag.Name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path.Name, err)
			}
			s.addOperations(views)
		}
		p.Parts = append(p.Parts, s)
	}
	schemas := &section{Name: "schemas"}
	for _, c := range d.Components.Schemas {
		t := newTable(c.Name, c.Value)
		schemas.Entries = append(schemas.Entries, entry{ID: "schema-" + c.Name, Summary: c.Name, Group: c.Name, Table: &t})
	}
	p.Parts = append(p.Parts, schemas)
	return p, nil
}

// addOperations adds operations to the section. An operation that repeats an earlier one below /v0
// becomes its alias. Operations of one kind of objects below /admin/v1 are a group.
func (s *section) addOperations(views []operationView) {
	for _, v := range views {
		first := slices.IndexFunc(s.Entries, func(other entry) bool { return other.ID+"V0" == v.ID })
		if first >= 0 {
			s.Entries[first].Operation.Alias = v.Path
			continue
		}
		group := v.ID
		if parts := strings.Split(v.Path, "/"); len(parts) > 3 && parts[1] == "admin" {
			group = parts[3]
		}
		s.Entries = append(s.Entries, entry{ID: v.ID, Method: v.Method, Summary: v.Summary, Group: group, Operation: &v})
	}
}

// operationViews returns the operations of a path that have the tag.
func (d *document) operationViews(path member[pathItem], tag string) ([]operationView, error) {
	var list []operationView
	for _, method := range path.Value.Methods {
		o := method.Value
		if !slices.Contains(o.Tags, tag) {
			continue
		}
		v := operationView{
			ID: o.ID, Method: strings.ToUpper(method.Name), Path: path.Name,
			// an empty alternative comes first
			Summary: o.Summary, Description: o.Description, NeedsToken: len(o.Security) > 0 && len(o.Security[0]) > 0,
		}
		if err := d.addDetails(&v, &o, path.Value.Parameters); err != nil {
			return nil, fmt.Errorf("%s: %w", method.Name, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// addDetails adds parameters, request body, responses and the curl command. shared are the
// parameters of the path.
func (d *document) addDetails(v *operationView, o *operation, shared []parameter) error {
	parameters, err := d.resolveParameters(append(slices.Clone(shared), o.Parameters...))
	if err != nil {
		return err
	}
	v.Parameters = parameterRows(parameters)
	if o.RequestBody != nil {
		body, err := d.Components.RequestBodies.resolve(o.RequestBody.Ref, *o.RequestBody)
		if err != nil {
			return err
		}
		if v.Body, err = d.bodyViews(body.Content); err != nil {
			return err
		}
	}
	all, err := d.responseViews(o.Responses)
	if err != nil {
		return err
	}
	v.CommonHeaders = extractCommonHeaders(all)
	shown := map[string]bool{} // examples of errors
	for _, r := range all {
		if r.isSuccess() {
			v.Successes = append(v.Successes, r)
		} else {
			for i := range r.Bodies {
				r.Bodies[i].Examples = slices.DeleteFunc(r.Bodies[i].Examples, func(e exampleView) bool {
					defer func() { shown[e.Text] = true }()
					return shown[e.Text]
				})
			}
			v.Failures = append(v.Failures, r)
			v.FailureType = r.bodyType()
		}
	}
	v.Curl = curlCommand(v, parameters)
	return nil
}
