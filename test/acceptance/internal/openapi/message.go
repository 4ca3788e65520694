package openapi

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// commonHeaders holds the headers of every response. The document describes them once, in its
// introduction.
var commonHeaders = map[string]*regexp.Regexp{
	"X-Content-Type-Options":  regexp.MustCompile(`^nosniff$`),
	"Content-Security-Policy": regexp.MustCompile(`^default-src 'none'; `),
	"Referrer-Policy":         regexp.MustCompile(`^no-referrer$`),
}

// protocolHeaders holds the headers of HTTP and TLS that the document does not describe.
var protocolHeaders = []string{"Connection", "Content-Length", "Content-Type", "Date", "Strict-Transport-Security"}

// checkHeaders checks that a response has all described headers and no others. The headers of a
// limit must be all present or all absent.
func (d *Description) checkHeaders(pointer string, said openapi3.Headers, got http.Header) error {
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if err := d.checkHeader(pointer+"/headers/"+name, name, said[name], got); err != nil {
			return err
		}
	}
	for name, form := range commonHeaders {
		if value := got.Get(name); !form.MatchString(value) {
			return fmt.Errorf("header %s is %q", name, value)
		}
	}
	for name := range got {
		isSaid := func(other string) bool { return http.CanonicalHeaderKey(other) == name }
		if commonHeaders[name] == nil && !slices.Contains(protocolHeaders, name) &&
			!slices.ContainsFunc(slices.Collect(maps.Keys(said)), isSaid) {
			return fmt.Errorf("header %s is not described", name)
		}
	}
	limit, remaining, reset := got.Get("X-RateLimit-Limit"), got.Get("X-RateLimit-Remaining"),
		got.Get("X-RateLimit-Reset")
	if (limit == "") != (remaining == "") || (limit == "") != (reset == "") {
		return fmt.Errorf("of the headers X-RateLimit some are missing: %q, %q, %q", limit, remaining, reset)
	}
	return nil
}

func (d *Description) checkHeader(pointer, name string, h *openapi3.HeaderRef, got http.Header) error {
	values := got.Values(name)
	if len(values) == 0 && h.Value.Required {
		return fmt.Errorf("header %s is missing", name)
	}
	if h.Ref != "" {
		pointer = h.Ref
	}
	for _, text := range values {
		if err := d.validate(pointer+"/schema", parseText(h.Value.Schema.Value, text)); err != nil {
			return fmt.Errorf("header %s is %q: %w", name, text, err)
		}
	}
	return nil
}

// parseText returns the value of a text in a header, a query or an XML element, in the type of its
// schema.
func parseText(s *openapi3.Schema, text string) any {
	switch {
	case s.Type.Includes("integer"), s.Type.Includes("number"):
		return json.Number(text)
	case s.Type.Includes("boolean"):
		if flag, err := strconv.ParseBool(text); err == nil {
			return flag
		}
		return text
	default:
		return text
	}
}

// checkRequest checks an accepted request against the document, so that the document does not
// require anything that the service does not need.
func (d *Description) checkRequest(o *openapi3.Operation, item *openapi3.PathItem, r *http.Request) error {
	if o.Security != nil && len(*o.Security) > 0 && len((*o.Security)[0]) > 0 && r.Header.Get("Authorization") == "" {
		return errors.New("it bears no token, and was taken")
	}
	for _, p := range append(slices.Clone(item.Parameters), o.Parameters...) {
		if err := d.checkParameter(p, r.URL.Query()); err != nil {
			return err
		}
	}
	if o.RequestBody == nil || r.GetBody == nil || strings.HasSuffix(r.Header.Get("Content-Type"), "yaml") {
		return nil
	}
	return d.checkSentBody(o.RequestBody, r)
}

// checkParameter checks a query parameter. An empty parameter counts as absent.
func (d *Description) checkParameter(p *openapi3.ParameterRef, query url.Values) error {
	text := query.Get(p.Value.Name)
	if p.Value.In != openapi3.ParameterInQuery || text == "" || p.Ref == "" {
		return nil
	}
	pointer := p.Ref + "/schema"
	if ref := p.Value.Schema.Ref; ref != "" {
		pointer = ref
	}
	if err := d.validate(pointer, parseText(p.Value.Schema.Value, text)); err != nil {
		return fmt.Errorf("%s=%q: %w", p.Value.Name, text, err)
	}
	return nil
}

// checkSentBody checks the body of a request, unless it is a form.
func (d *Description) checkSentBody(body *openapi3.RequestBodyRef, r *http.Request) error {
	described := body.Value.Content.Get("application/json")
	if described == nil {
		return nil
	}
	schema := described.Schema
	pointer := body.Ref + "/content/application~1json/schema"
	switch {
	case schema.Ref != "":
		pointer = schema.Ref
	case body.Ref == "":
		return errors.New("the schema of the body has no name")
	}
	sent, err := r.GetBody()
	if err != nil {
		return fmt.Errorf("read the body again: %w", err)
	}
	text, err := io.ReadAll(sent)
	if err != nil {
		return fmt.Errorf("read the body again: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("the body is no JSON: %w", err)
	}
	if err := d.validate(pointer, value); err != nil {
		return fmt.Errorf("the body is %s: %w", text, err)
	}
	return nil
}

// element is an XML element with any name.
type element struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Elements []element `xml:",any"`
}

// decodeXML returns the JSON value of an XML document, by the element names and wrappers of a
// schema.
func decodeXML(s *openapi3.Schema, document []byte) (any, error) {
	var root element
	if err := xml.Unmarshal(document, &root); err != nil {
		return nil, fmt.Errorf("the body is no XML: %w", err)
	}
	if s.XML == nil || root.XMLName.Local != s.XML.Name {
		return nil, fmt.Errorf("the root element is %s", root.XMLName.Local)
	}
	return valueOf(s, root)
}

func valueOf(s *openapi3.Schema, e element) (any, error) {
	switch {
	case s.Type.Includes("object"):
		return decodeObject(s, e)
	case s.Type.Includes("array"):
		items := []any{}
		for _, child := range e.Elements {
			if one := s.Items.Value; one.XML == nil || child.XMLName.Local != one.XML.Name {
				return nil, fmt.Errorf("%s has an element %s", e.XMLName.Local, child.XMLName.Local)
			}
			item, err := valueOf(s.Items.Value, child)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	default:
		return parseText(s, strings.TrimSpace(e.Text)), nil
	}
}

// decodeObject converts elements to properties. A nullable property without an element is null.
func decodeObject(s *openapi3.Schema, e element) (any, error) {
	object := map[string]any{}
	for name, property := range s.Properties {
		if property.Value.Type.Includes("null") {
			object[name] = nil
		}
	}
	for _, child := range e.Elements {
		name := child.XMLName.Local
		property := s.Properties[name]
		if property == nil {
			return nil, fmt.Errorf("%s has an element %s", e.XMLName.Local, name)
		}
		value, err := valueOf(property.Value, child)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	return object, nil
}
