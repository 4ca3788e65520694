package webtest

import (
	"net/http"
	"net/url"

	"golang.org/x/net/html"
)

// Form returns the request of a form with fields that no page offers.
func (b *Browser) Form(path string, fields url.Values) *http.Request {
	b.T.Helper()
	return b.Request(http.MethodPost, path, []byte(fields.Encode()), "application/x-www-form-urlencoded")
}

// Submit sends a form with fields that no page offers, and checks the status.
func (b *Browser) Submit(path string, status int, fields url.Values) *Browser {
	b.T.Helper()
	return b.Send(b.Form(path, fields), status)
}

// FromElsewhere returns a request as a page of another site sends it.
func FromElsewhere(r *http.Request) *http.Request {
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	return r
}

// Shown returns the text of the element with an id, which a button copies.
func (b *Browser) Shown(id string) string {
	b.T.Helper()
	n := b.Element("id", id)
	if n == nil || TextOf(n) == "" || b.Element("data-copy", id) == nil {
		b.T.Fatalf("%s has nothing to copy with the id %s:\n%s", b.Page.URL, id, b.Text())
	}
	return TextOf(n)
}

// Secret returns the secret that the page shows, and checks that it can be copied and is not kept.
func (b *Browser) Secret() string {
	b.T.Helper()
	b.WantText("It is shown once.")
	if got := b.Page.Header.Get("Cache-Control"); got != "no-store" {
		b.T.Errorf("the page with the secret has Cache-Control: %s", got)
	}
	return b.Shown("secret")
}

// Element returns the first element of the page with an attribute of a value; otherwise nil.
func (b *Browser) Element(name, value string) *html.Node {
	return Find(b.Page.Root, func(n *html.Node) bool { return Attribute(n, name) == value })
}

// Codes returns the texts of the code elements of the page.
func (b *Browser) Codes() (texts []string) {
	for _, n := range All(b.Page.Root, func(n *html.Node) bool { return n.Data == "code" }) {
		texts = append(texts, TextOf(n))
	}
	return texts
}
