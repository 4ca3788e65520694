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

// page is the data of the template.
type page struct {
	Title, Version, Summary string
	Description             string
	Style                   template.CSS
	Sections                []section
	Tables                  []table
}

// section holds the operations that have one tag.
type section struct {
	Name, Description string
	Operations        []operationView
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

// renderPage returns the HTML page and its Content-Security-Policy, which allows the style of the
// page and nothing else.
func renderPage(root *yaml.Node) (body []byte, policy string, err error) {
	var d document
	if err := root.Decode(&d); err != nil {
		return nil, "", fmt.Errorf("decode: %w", err)
	}
	p, err := newPage(&d)
	if err != nil {
		return nil, "", err
	}
	t, err := template.New("page").Funcs(template.FuncMap{"paragraphs": splitParagraphs, "spans": splitSpans}).
		Parse(pageTemplate)
	if err != nil {
		return nil, "", fmt.Errorf("parse template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, "", fmt.Errorf("execute template: %w", err)
	}
	sum := sha256.Sum256([]byte(pageStyle))
	return b.Bytes(), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", nil
}

func newPage(d *document) (*page, error) {
	p := &page{
		Title: d.Info.Title, Version: d.Info.Version, Summary: d.Info.Summary, Description: d.Info.Description,
		Style: template.CSS(pageStyle), // #nosec G203 -- a file of this package
	}
	for _, tag := range d.Tags {
		s := section{Name: tag.Name, Description: tag.Description}
		for _, path := range d.Paths {
			views, err := d.operationViews(path, tag.Name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path.Name, err)
			}
			s.addOperations(views)
		}
		p.Sections = append(p.Sections, s)
	}
	for _, c := range d.Components.Schemas {
		p.Tables = append(p.Tables, newTable(c.Name, c.Value))
	}
	return p, nil
}

// addOperations adds operations to the section. An operation that repeats an earlier one below /v0
// becomes its alias.
func (s *section) addOperations(views []operationView) {
	for _, v := range views {
		first := slices.IndexFunc(s.Operations, func(other operationView) bool { return other.ID+"V0" == v.ID })
		if first >= 0 {
			s.Operations[first].Alias = v.Path
			continue
		}
		s.Operations = append(s.Operations, v)
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
	for _, r := range all {
		if r.isSuccess() {
			v.Successes = append(v.Successes, r)
		} else {
			v.Failures = append(v.Failures, r)
			v.FailureType = r.bodyType()
		}
	}
	v.Curl = curlCommand(v, parameters)
	return nil
}
