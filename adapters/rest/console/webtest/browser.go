package console

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// userAgent is the browser that all tests use.
const userAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// browser is a browser without JavaScript: it keeps cookies, follows redirects and sends forms as
// they are in the page.
type browser struct {
	t      *testing.T
	client *http.Client
	base   string
	page   page
}

// page is the page that a browser shows.
type page struct {
	url    *url.URL
	status int
	header http.Header
	body   string
	root   *html.Node
}

// newBrowser returns a browser of an instance.
func newBrowser(t *testing.T, s *fixture.Service) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, client: &http.Client{Jar: jar}, base: strings.Replace(s.API, "127.0.0.1", "localhost", 1)}
}

// open opens a page and checks its status.
func (b *browser) open(path string, status int) {
	b.t.Helper()
	b.send(b.request(http.MethodGet, path, nil, ""), status)
}

func (b *browser) request(method, path string, body []byte, contentType string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	r.Header.Set("Accept-Language", "de-DE,de;q=0.9,en;q=0.5")
	if method != http.MethodGet {
		r.Header.Set("Origin", b.base)
		if b.page.url != nil {
			r.Header.Set("Referer", b.page.url.String())
		}
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

func (b *browser) send(r *http.Request, status int) {
	b.t.Helper()
	response, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.page = page{url: response.Request.URL, status: response.StatusCode, header: response.Header, body: string(body)}
	if b.page.root, err = html.Parse(bytes.NewReader(body)); err != nil {
		b.t.Fatal(err)
	}
	if response.StatusCode != status {
		b.t.Fatalf("%s %s is %d, want %d:\n%s", r.Method, r.URL, response.StatusCode, status, b.text())
	}
	b.checkPage()
}

// callsAuthenticator reports whether the page has a form for passkeys, and so many scripts as it needs.
func (b *browser) callsAuthenticator(scripts int) bool {
	return scripts == 2 && len(all(b.page.root, func(n *html.Node) bool {
		return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-passkey" })
	})) == 1
}

// checkPage checks what is so on each page: there is one script, and each mistake in the summary
// leads to its field, which has the mistake too.
func (b *browser) checkPage() {
	b.t.Helper()
	if !strings.HasPrefix(b.page.header.Get("Content-Type"), "text/html") ||
		!strings.HasPrefix(b.page.url.Path, "/console/") {
		return
	}
	scripts := all(b.page.root, func(n *html.Node) bool { return n.Data == "script" })
	if len(scripts) != 1 && !b.callsAuthenticator(len(scripts)) ||
		slices.ContainsFunc(scripts, func(n *html.Node) bool { return n.FirstChild != nil }) {
		b.t.Errorf("%s has %d scripts, or one in the page", b.page.url, len(scripts))
	}
	summary := find(b.page.root, func(n *html.Node) bool { return attribute(n, "class") == "problems" })
	if summary == nil {
		return
	}
	if !hasAttribute(summary, "autofocus") {
		b.t.Errorf("%s: the summary of the mistakes does not take the focus", b.page.url)
	}
	for _, link := range all(summary, func(n *html.Node) bool { return n.Data == "a" }) {
		id := strings.TrimPrefix(attribute(link, "href"), "#")
		field := find(b.page.root, func(n *html.Node) bool { return attribute(n, "id") == id })
		if field == nil || attribute(field, "aria-invalid") != "true" {
			b.t.Errorf("%s: the mistake %q leads to %q, which is no field with a mistake", b.page.url, textOf(link), id)
		} else if hasAttribute(link, "data-line") {
			continue
		}
		if mistake := find(b.page.root, func(n *html.Node) bool {
			return attribute(n, "id") == id+"-mistake"
		}); mistake == nil || textOf(mistake) != textOf(link) {
			b.t.Errorf("%s: the mistake %q is not at its field", b.page.url, textOf(link))
		} else if !strings.Contains(attribute(field, "aria-describedby"), id+"-mistake") {
			b.t.Errorf("%s: the field %s is not described by its mistake", b.page.url, id)
		}
	}
}

// cookie returns the value of the session cookie; otherwise empty.
func (b *browser) cookie() string {
	for _, c := range b.client.Jar.Cookies(b.page.url) {
		if c.Name == "tollgate" {
			return c.Value
		}
	}
	return ""
}

// press presses the button with a text after filling in fields, given by their names and values in
// turn, and checks the status of the page that follows.
func (b *browser) press(button string, status int, fields ...string) {
	b.t.Helper()
	b.send(b.submission(button, fields...), status)
}

// submission returns the request that a browser sends when a button is pressed.
func (b *browser) submission(button string, fields ...string) *http.Request {
	b.t.Helper()
	pressed := find(b.page.root, func(n *html.Node) bool {
		return n.Data == "button" && (textOf(n) == button || attribute(n, "aria-label") == button)
	})
	if pressed == nil {
		b.t.Fatalf("no button %q:\n%s", button, b.text())
	}
	form := pressed
	for form.Data != "form" {
		form = form.Parent
	}
	values := url.Values{}
	for _, n := range all(form, isField) {
		addField(values, n)
	}
	if name := attribute(pressed, "name"); name != "" {
		values.Set(name, attribute(pressed, "value"))
	}
	for i := 0; i < len(fields); i += 2 {
		if !slices.ContainsFunc(all(form, isField), func(n *html.Node) bool {
			return attribute(n, "name") == fields[i]
		}) {
			b.t.Fatalf("the form has no field %q", fields[i])
		}
		values.Set(fields[i], fields[i+1])
	}
	action := attribute(form, "action")
	if a := attribute(pressed, "formaction"); a != "" {
		action = a
	}
	if attribute(form, "method") != "post" {
		path, _, _ := strings.Cut(action, "#")
		return b.request(http.MethodGet, path+"?"+values.Encode(), nil, "")
	}
	body, contentType := encodeForm(b.t, values, attribute(form, "enctype"))
	return b.request(http.MethodPost, action, body, contentType)
}

func isField(n *html.Node) bool {
	return attribute(n, "name") != "" && slices.Contains([]string{"input", "textarea", "select"}, n.Data)
}

func addField(values url.Values, n *html.Node) {
	name := attribute(n, "name")
	switch {
	case n.Data == "textarea":
		values.Add(name, strings.TrimPrefix(rawText(n), "\n"))
	case n.Data == "select":
		options := all(n, func(n *html.Node) bool { return n.Data == "option" })
		chosen := slices.IndexFunc(options, func(n *html.Node) bool { return hasAttribute(n, "selected") })
		option := options[max(chosen, 0)]
		if !hasAttribute(option, "value") {
			values.Add(name, textOf(option))
			break
		}
		values.Add(name, attribute(option, "value"))
	case attribute(n, "type") == "file":
		values.Add(name, "")
	case attribute(n, "type") == "checkbox" && !hasAttribute(n, "checked"):
	default:
		values.Add(name, attribute(n, "value"))
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

// follow follows the link with a text.
func (b *browser) follow(link string, status int) {
	b.t.Helper()
	n := find(b.page.root, func(n *html.Node) bool { return n.Data == "a" && textOf(n) == link })
	if n == nil {
		b.t.Fatalf("no link %q:\n%s", link, b.text())
	}
	b.open(attribute(n, "href"), status)
}

// wantText checks that the page shows texts.
func (b *browser) wantText(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		if !strings.Contains(b.text(), text) {
			b.t.Errorf("%s does not show %q:\n%s", b.page.url, text, b.text())
		}
	}
}

// wantNoText checks that the page does not show texts.
func (b *browser) wantNoText(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		if strings.Contains(b.text(), text) {
			b.t.Errorf("%s shows %q:\n%s", b.page.url, text, b.text())
		}
	}
}

// wantPath checks the address of the page.
func (b *browser) wantPath(path string) {
	b.t.Helper()
	if got := b.page.url.RequestURI(); got != path {
		b.t.Errorf("the page is %s, want %s", got, path)
	}
}

// field returns the value of a field of the page: of a visible one, if there is one with the name.
func (b *browser) field(name string) string {
	b.t.Helper()
	values := url.Values{}
	named := all(b.page.root, func(n *html.Node) bool { return isField(n) && attribute(n, "name") == name })
	if visible := slices.DeleteFunc(slices.Clone(named), func(n *html.Node) bool {
		return attribute(n, "type") == "hidden"
	}); len(visible) > 0 {
		named = visible
	}
	for _, n := range named {
		addField(values, n)
	}
	return values.Get(name)
}

// signIn signs a person in, who stays on the page for that if status says so.
func (b *browser) signIn(p *fixture.Person) {
	b.t.Helper()
	b.open("/console/sign-in", http.StatusOK)
	b.press("Sign in", http.StatusOK, "email", p.Email, "password", fixture.Password)
	b.wantText(p.Email)
}

// verify enters the code for a step-up that the page offers.
func (b *browser) verify(e *fixture.Environment, p *fixture.Person, status int) {
	b.t.Helper()
	b.press("Send a code to "+p.Email[:1]+"…"+p.Email[strings.Index(p.Email, "@"):], http.StatusOK)
	code := e.LastCode(b.t, p.Email)
	b.press("Verify", status, "step-up.code", code[:3]+" "+code[3:])
}

// text returns what the page shows.
func (b *browser) text() string {
	return textOf(find(b.page.root, func(n *html.Node) bool { return n.Data == "body" }))
}

var spaces = regexp.MustCompile(`\s+`)

// textOf returns the text of a node with single spaces, also between blocks.
func textOf(n *html.Node) string {
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

func find(n *html.Node, wanted func(*html.Node) bool) *html.Node {
	if found := all(n, wanted); len(found) > 0 {
		return found[0]
	}
	return nil
}

func all(n *html.Node, wanted func(*html.Node) bool) (found []*html.Node) {
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && wanted(c) {
			found = append(found, c)
		}
	}
	return found
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttribute(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}
