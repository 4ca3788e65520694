// Package webtest has a browser without JavaScript, for tests of the pages of the console. It is not for
// production code.
package webtest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// userAgent is the browser that all tests use.
const userAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// Browser is a browser without JavaScript: it keeps cookies, follows redirects and sends forms as
// they are in the page. What it does returns it, so that the page can be checked in the same statement.
type Browser struct {
	T      *testing.T
	Client *http.Client
	Base   string
	Page   Page
	// Seen is called with each page that is shown. It is optional.
	Seen func(body string)
}

// Page is the page that a browser shows.
type Page struct {
	URL    *url.URL
	Status int
	Header http.Header
	Body   string
	Root   *html.Node
}

// New returns a browser of the instance with the address of its API.
func New(t *testing.T, api string) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Browser{T: t, Client: &http.Client{Jar: jar}, Base: strings.Replace(api, "127.0.0.1", "localhost", 1)}
}

// Open opens a page and checks its status.
func (b *Browser) Open(path string, status int) *Browser {
	b.T.Helper()
	return b.Send(b.Request(http.MethodGet, path, nil, ""), status)
}

// Request returns a request of the page, as a form of it would send it, to a path or to another service.
func (b *Browser) Request(method, path string, body []byte, contentType string) *http.Request {
	b.T.Helper()
	if !strings.HasPrefix(path, "http://") {
		path = b.Base + path
	}
	r, err := http.NewRequestWithContext(b.T.Context(), method, path, bytes.NewReader(body))
	if err != nil {
		b.T.Fatal(err)
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	r.Header.Set("Accept-Language", "de-DE,de;q=0.9,en;q=0.5")
	if method != http.MethodGet {
		r.Header.Set("Origin", b.Base)
		if b.Page.URL != nil {
			r.Header.Set("Referer", b.Page.URL.String())
		}
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

// Send sends a request and checks the status of the page that it leads to.
func (b *Browser) Send(r *http.Request, status int) *Browser {
	b.T.Helper()
	b.Try(r)
	if b.Page.Status != status {
		b.T.Fatalf("%s %s is %d, want %d:\n%s", r.Method, r.URL, b.Page.Status, status, b.Text())
	}
	b.checkPage()
	return b
}

// Try sends a request and returns the status of the page that it leads to.
func (b *Browser) Try(r *http.Request) int {
	b.T.Helper()
	response, err := b.Client.Do(r)
	if err != nil {
		b.T.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.T.Fatal(err)
	}
	b.Page = Page{URL: response.Request.URL, Status: response.StatusCode, Header: response.Header, Body: string(body)}
	if b.Page.Root, err = html.Parse(bytes.NewReader(body)); err != nil {
		b.T.Fatal(err)
	}
	if b.Seen != nil {
		b.Seen(b.Page.Body)
	}
	return b.Page.Status
}

// callsAuthenticator reports whether the page has a form for passkeys, and so many scripts as it needs.
func (b *Browser) callsAuthenticator(scripts int) bool {
	return scripts == 2 && len(All(b.Page.Root, func(n *html.Node) bool {
		return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-passkey" })
	})) == 1
}

// checkPage checks what is so on each page: there is one script, the headers are right, a link to the guide about the page
// comes after its heading, and each mistake in the summary leads to its field, which has the mistake too.
func (b *Browser) checkPage() {
	b.T.Helper()
	if !strings.HasPrefix(b.Page.Header.Get("Content-Type"), "text/html") ||
		!strings.HasPrefix(b.Page.URL.Path, "/console/") && !strings.HasPrefix(b.Page.URL.Path, "/oauth2/") {
		return
	}
	scripts := All(b.Page.Root, func(n *html.Node) bool { return n.Data == "script" })
	if len(scripts) != 1 && !b.callsAuthenticator(len(scripts)) ||
		slices.ContainsFunc(scripts, func(n *html.Node) bool { return n.FirstChild != nil }) {
		b.T.Errorf("%s has %d scripts, or one in the page", b.Page.URL, len(scripts))
	}
	b.checkHeaders()
	headings := All(b.Page.Root, func(n *html.Node) bool { return n.Data == "h1" })
	guides := All(b.Page.Root, func(n *html.Node) bool {
		return Attribute(n, "class") == "help" && strings.HasPrefix(Attribute(n, "href"), "/docs/guide/")
	})
	if strings.HasPrefix(b.Page.URL.Path, "/console/") && len(headings) > 0 && len(guides) != 1 {
		b.T.Errorf("%s has %d links to the guide about it", b.Page.URL, len(guides))
	}
	summary := Find(b.Page.Root, func(n *html.Node) bool { return Attribute(n, "class") == "problems" })
	if summary == nil {
		return
	}
	if !HasAttribute(summary, "autofocus") {
		b.T.Errorf("%s: the summary of the mistakes does not take the focus", b.Page.URL)
	}
	for _, link := range All(summary, func(n *html.Node) bool { return n.Data == "a" }) {
		id := strings.TrimPrefix(Attribute(link, "href"), "#")
		field := Find(b.Page.Root, func(n *html.Node) bool { return Attribute(n, "id") == id })
		if field == nil || Attribute(field, "aria-invalid") != "true" {
			b.T.Errorf("%s: the mistake %q leads to %q, which is no field with a mistake", b.Page.URL, TextOf(link), id)
		} else if HasAttribute(link, "data-line") {
			continue
		}
		if mistake := Find(b.Page.Root, func(n *html.Node) bool {
			return Attribute(n, "id") == id+"-mistake"
		}); mistake == nil || TextOf(mistake) != TextOf(link) {
			b.T.Errorf("%s: the mistake %q is not at its field", b.Page.URL, TextOf(link))
		} else if !strings.Contains(Attribute(field, "aria-describedby"), id+"-mistake") {
			b.T.Errorf("%s: the field %s is not described by its mistake", b.Page.URL, id)
		}
	}
}

// Cookie returns the value of the session cookie; otherwise empty.
func (b *Browser) Cookie() string {
	for _, c := range b.Client.Jar.Cookies(b.Page.URL) {
		if c.Name == "tollgate" {
			return c.Value
		}
	}
	return ""
}

// checkHeaders checks the headers of a page.
func (b *Browser) checkHeaders() {
	b.T.Helper()
	h := b.Page.Header
	policy := h.Get("Content-Security-Policy")
	rest, good := strings.CutPrefix(policy, "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; form-action 'self'")
	// the page of a command leads to its port
	if !good || !strings.HasSuffix(rest, "; frame-ancestors 'none'; base-uri 'none'") || strings.Contains(rest, "*") {
		b.T.Errorf("%s has the policy %s", b.Page.URL, policy)
	}
	// no other site learns an address with a code, and forms are sent with their origin
	if referrer := h.Get("Referrer-Policy"); referrer != "same-origin" {
		b.T.Errorf("%s has Referrer-Policy: %s", b.Page.URL, referrer)
	}
	if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
		b.T.Errorf("%s has the headers %v", b.Page.URL, h)
	}
	if strings.Contains(b.Page.Body, `action="/console/sign-out"`) && h.Get("Cache-Control") != "no-store" {
		b.T.Errorf("%s of a person has Cache-Control: %s", b.Page.URL, h.Get("Cache-Control"))
	}
}

// Press presses the button with a text after filling in fields, given by their names and values in
// turn, and checks the status of the page that follows.
func (b *Browser) Press(button string, status int, fields ...string) *Browser {
	b.T.Helper()
	return b.Send(b.Submission(button, fields...), status)
}

// Submission returns the request that a browser sends when a button is pressed.
func (b *Browser) Submission(button string, fields ...string) *http.Request {
	b.T.Helper()
	pressed := Find(b.Page.Root, func(n *html.Node) bool {
		return n.Data == "button" && (TextOf(n) == button || Attribute(n, "aria-label") == button)
	})
	if pressed == nil {
		b.T.Fatalf("no button %q:\n%s", button, b.Text())
	}
	form := pressed
	if id := Attribute(pressed, "form"); id != "" {
		form = Find(b.Page.Root, func(n *html.Node) bool { return n.Data == "form" && Attribute(n, "id") == id })
	}
	for form.Data != "form" {
		form = form.Parent
	}
	values := url.Values{}
	for _, n := range All(form, isField) {
		addField(values, n)
	}
	if name := Attribute(pressed, "name"); name != "" {
		values.Set(name, Attribute(pressed, "value"))
	}
	for i := 0; i < len(fields); i += 2 {
		if !slices.ContainsFunc(All(form, isField), func(n *html.Node) bool {
			return Attribute(n, "name") == fields[i]
		}) {
			b.T.Fatalf("the form has no field %q", fields[i])
		}
		values.Set(fields[i], fields[i+1])
	}
	action := Attribute(form, "action")
	if a := Attribute(pressed, "formaction"); a != "" {
		action = a
	}
	if Attribute(form, "method") != "post" {
		path, _, _ := strings.Cut(action, "#")
		return b.Request(http.MethodGet, path+"?"+values.Encode(), nil, "")
	}
	body, contentType := encodeForm(b.T, values, Attribute(form, "enctype"))
	return b.Request(http.MethodPost, action, body, contentType)
}

// Follow follows the link with a text.
func (b *Browser) Follow(link string, status int) *Browser {
	b.T.Helper()
	n := Find(b.Page.Root, func(n *html.Node) bool { return n.Data == "a" && TextOf(n) == link })
	if n == nil {
		b.T.Fatalf("no link %q:\n%s", link, b.Text())
	}
	return b.Open(Attribute(n, "href"), status)
}

// WantText checks that the page shows texts.
func (b *Browser) WantText(texts ...string) *Browser {
	b.T.Helper()
	for _, text := range texts {
		if !strings.Contains(b.Text(), text) {
			b.T.Errorf("%s does not show %q:\n%s", b.Page.URL, text, b.Text())
		}
	}
	return b
}

// WantNoText checks that the page does not show texts.
func (b *Browser) WantNoText(texts ...string) *Browser {
	b.T.Helper()
	for _, text := range texts {
		if strings.Contains(b.Text(), text) {
			b.T.Errorf("%s shows %q:\n%s", b.Page.URL, text, b.Text())
		}
	}
	return b
}

// WantPath checks the address of the page.
func (b *Browser) WantPath(path string) *Browser {
	b.T.Helper()
	if got := b.Page.URL.RequestURI(); got != path {
		b.T.Errorf("the page is %s, want %s", got, path)
	}
	return b
}

// Field returns the value of a field of the page: of a visible one, if there is one with the name.
func (b *Browser) Field(name string) string {
	b.T.Helper()
	values := url.Values{}
	named := All(b.Page.Root, func(n *html.Node) bool { return isField(n) && Attribute(n, "name") == name })
	if visible := slices.DeleteFunc(slices.Clone(named), func(n *html.Node) bool {
		return Attribute(n, "type") == "hidden"
	}); len(visible) > 0 {
		named = visible
	}
	for _, n := range named {
		addField(values, n)
	}
	return values.Get(name)
}

// WantFields checks the values of fields of the page, given by their names and values in turn.
func (b *Browser) WantFields(fields ...string) *Browser {
	b.T.Helper()
	for i := 0; i < len(fields); i += 2 {
		if got := b.Field(fields[i]); got != fields[i+1] {
			b.T.Errorf("%s has the %s %q, want %q", b.Page.URL, fields[i], got, fields[i+1])
		}
	}
	return b
}

// SignIn signs a person in.
func (b *Browser) SignIn(email, password string) {
	b.T.Helper()
	b.Open("/console/sign-in", http.StatusOK)
	b.Press("Sign in", http.StatusOK, "email", email, "password", password)
	b.WantText(email)
}

// Mailbox has the codes that were sent.
type Mailbox interface {
	LastCode(t *testing.T, recipient string) string
}

// Verify enters the code for a step-up that the page offers.
func (b *Browser) Verify(mail Mailbox, email string, status int) *Browser {
	b.T.Helper()
	_, domain, _ := strings.Cut(email, "@")
	b.Press("Send a code to "+email[:1]+"…@"+domain, http.StatusOK)
	code := mail.LastCode(b.T, email)
	return b.Press("Verify", status, "step-up.code", code[:3]+" "+code[3:])
}

// Text returns what the page shows.
func (b *Browser) Text() string {
	return TextOf(Find(b.Page.Root, func(n *html.Node) bool { return n.Data == "body" }))
}
