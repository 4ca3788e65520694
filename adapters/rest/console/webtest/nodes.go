package webtest

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func isField(n *html.Node) bool {
	return Attribute(n, "name") != "" && slices.Contains([]string{"input", "textarea", "select"}, n.Data)
}

func addField(values url.Values, n *html.Node) {
	name := Attribute(n, "name")
	switch {
	case n.Data == "textarea":
		values.Add(name, strings.TrimPrefix(rawText(n), "\n"))
	case n.Data == "select":
		options := All(n, func(n *html.Node) bool { return n.Data == "option" })
		chosen := slices.IndexFunc(options, func(n *html.Node) bool { return HasAttribute(n, "selected") })
		option := options[max(chosen, 0)]
		if !HasAttribute(option, "value") {
			values.Add(name, TextOf(option))
			break
		}
		values.Add(name, Attribute(option, "value"))
	case Attribute(n, "type") == "file":
		values.Add(name, "")
	case Attribute(n, "type") == "checkbox" && !HasAttribute(n, "checked"):
	default:
		values.Add(name, Attribute(n, "value"))
	}
}

// encodeForm encodes a form as browsers do: with CRLF at the ends of lines.
func encodeForm(t *testing.T, values url.Values, enctype string) ([]byte, string) {
	t.Helper()
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	for name, all := range values {
		for i, v := range all {
			v = strings.ReplaceAll(v, "\n", "\r\n")
			all[i] = v
			var part io.Writer
			var err error
			if name == "file" {
				part, err = parts.CreateFormFile(name, map[bool]string{true: "server.json"}[v != ""])
			} else {
				part, err = parts.CreateFormField(name)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(part, v) // a buffer never fails to write
		}
	}
	if enctype != "multipart/form-data" {
		return []byte(values.Encode()), "application/x-www-form-urlencoded"
	}
	if err := parts.Close(); err != nil {
		t.Fatal(err)
	}
	return body.Bytes(), parts.FormDataContentType()
}

var spaces = regexp.MustCompile(`\s+`)

// TextOf returns the text of a node with single spaces, also between blocks.
func TextOf(n *html.Node) string {
	var text strings.Builder
	for c := range n.Descendants() {
		switch {
		case c.Type == html.TextNode:
			text.WriteString(c.Data)
		case !slices.Contains(inline, c.Data):
			text.WriteByte(' ')
		}
	}
	return strings.TrimSpace(spaces.ReplaceAllString(text.String(), " "))
}

// inline are the elements that do not begin a block.
var inline = []string{"a", "b", "bdi", "code", "em", "i", "span", "strong", "time"}

func rawText(n *html.Node) string {
	var text strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			text.WriteString(c.Data)
		}
	}
	return text.String()
}

// Find returns the first element below a node that is wanted; otherwise nil.
func Find(n *html.Node, wanted func(*html.Node) bool) *html.Node {
	if found := All(n, wanted); len(found) > 0 {
		return found[0]
	}
	return nil
}

// All returns the elements below a node that are wanted.
func All(n *html.Node, wanted func(*html.Node) bool) (found []*html.Node) {
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && wanted(c) {
			found = append(found, c)
		}
	}
	return found
}

// Attribute returns the value of an attribute; otherwise empty.
func Attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// HasAttribute reports whether an element has an attribute.
func HasAttribute(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}
