package console

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestCatalogue checks the list, the search, the pages and the page of a server, without signing
// in.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish *")
		for i := range 35 {
			doc := fixture.NewServerDocument(fmt.Sprintf("com.example/server-%02d", i), "1.0.0")
			ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
		}
		doc := fixture.NewServerDocument("com.example/server-00", "1.1.0")
		doc["remotes"] = []map[string]any{{"type": "streamable-http", "url": "https://remote.example.com/mcp"}}
		doc["websiteUrl"] = "https://www.example.com/"
		ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
		b := newBrowser(t, s)
		b.open("/console/", http.StatusOK)
		b.wantText("com.example/server-00 ", "Version 1.1.0", "com.example/server-29 ")
		b.wantNoText("com.example/server-30")
		b.follow("Next page", http.StatusOK)
		b.wantText("com.example/server-30", "com.example/server-34")
		b.follow("First page", http.StatusOK)
		b.press("Search", http.StatusOK, "q", "SERVER-3")
		b.wantText("com.example/server-30")
		b.wantNoText("com.example/server-29", "Next page")
		b.press("Search", http.StatusOK, "q", "nothing at all")
		b.wantText("No server matches.")
		b.open("/console/?status=nonsense", http.StatusUnprocessableEntity)
		b.open("/console/", http.StatusOK)
		b.press("Search", http.StatusOK, "status", "deprecated", "remote", "true")
		b.wantText("No server matches. Show all servers")
		b.press("Search", http.StatusOK, "q", "", "status", "active", "remote", "true", "package", "")
		b.wantText("com.example/server-29 ")
		b.follow("Next page", http.StatusOK)
		b.wantText("com.example/server-34")
		b.wantNoText("Next page")
		b.follow("First page", http.StatusOK)
		if got := b.field("status") + b.field("remote"); got != "activetrue" {
			t.Errorf("the filters of the first page are %q", got)
		}
		for _, wrong := range []string{
			"page=0", "page=x", "sort=age", "remote=perhaps", "view=secret", "view=A", "q=" + strings.Repeat("a", 201),
			"q=1+2+3+4+5+6+7+8+9", "namespace=" + strings.Repeat("n", 301), "origin=%00",
		} {
			b.open("/console/?"+wrong, http.StatusUnprocessableEntity)
		}
		b.open("/console/servers/com.example/server-00", http.StatusOK)
		b.wantText("Version 1.1.0", "Latest", "VS Code", "Claude Code", "Cursor", "Gemini CLI",
			"https://remote.example.com/mcp", "www.example.com", ".vscode/mcp.json")
		checkLinks(t, b)
		b.follow("1.0.0", http.StatusOK)
		b.wantText("This is not the latest version.")
		wantTitle(t, b, "com.example/server-00 1.0.0 - ")
		b.follow("JSON", http.StatusOK)
		if !strings.Contains(b.page.body, `"version":"1.0.0"`) {
			t.Errorf("the document is %s", b.page.body)
		}
		b.open("/console/servers/com.example/server-00?use=package-7", http.StatusNotFound)
		b.open("/console/servers/com.example/server-00?format=x", http.StatusBadRequest)
		b.open("/console/servers/com.example/unknown", http.StatusNotFound)
		b.open("/console/servers/com.example/server-00/versions/9.9.9", http.StatusNotFound)
		b.open("/console/servers/com.example/%00", http.StatusNotFound)
	})
}

// checkLinks checks the links that lead out of the page of a server.
func checkLinks(t *testing.T, b *browser) {
	t.Helper()
	schemes := map[string]bool{}
	for _, n := range all(b.page.root, func(n *html.Node) bool { return n.Data == "a" }) {
		target := attribute(n, "href")
		scheme, _, _ := strings.Cut(target, ":")
		switch {
		case strings.HasPrefix(target, "/") || strings.HasPrefix(target, "#"):
		case scheme == "https":
			if attribute(n, "rel") != "noopener noreferrer nofollow" {
				t.Errorf("the link to %s has rel %q", target, attribute(n, "rel"))
			}
		default:
			schemes[scheme] = true
		}
	}
	if len(schemes) != 2 || !schemes["vscode"] || !schemes["cursor"] {
		t.Errorf("the schemes of other links are %v", schemes)
	}
	for _, n := range all(b.page.root, func(n *html.Node) bool { return attribute(n, "src") != "" }) {
		if !strings.HasPrefix(attribute(n, "src"), "/console/static/") {
			t.Errorf("the page loads %s", attribute(n, "src"))
		}
	}
}

// checkResponses checks the headers of what is no page: redirects, and the files that pages load.
func checkResponses(t *testing.T, b *browser) {
	t.Helper()
	b.open("/console/", http.StatusOK)
	want := map[string]map[string]string{
		"/console/operator": {
			"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
			"X-Content-Type-Options": "nosniff",
		},
		"/console/account/devices/1/trust": {
			"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "Location": "/console/account",
		},
	}
	for _, n := range all(b.page.root, func(n *html.Node) bool { return n.Data == "link" || n.Data == "script" }) {
		want[attribute(n, "href")+attribute(n, "src")] = map[string]string{
			"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
		}
	}
	if len(want) != 5 {
		t.Errorf("the page loads %d files, want a style, a script and an icon", len(want)-2)
	}
	for path, headers := range want {
		r := b.request(http.MethodGet, path, nil, "")
		for _, c := range b.client.Jar.Cookies(b.page.url) {
			r.AddCookie(c)
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		for name, value := range headers {
			if got := response.Header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got, value)
			}
		}
	}
}

// TestHeaders checks the headers of pages, and that forms of other sites are refused.
func TestHeaders(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	ada := e.NewPerson(t, "ada@example.com")
	b := newBrowser(t, s)
	check := func(path string, status int) {
		b.open(path, status)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"Referrer-Policy":         "same-origin", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Content-Type": "text/html; charset=utf-8",
		} {
			if got := b.page.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if size := len(b.page.body); size > 100_000 {
			t.Errorf("%s has %d bytes", path, size)
		}
	}
	check("/console/", http.StatusOK)
	check("/console/sign-in", http.StatusOK)
	check("/console/nothing", http.StatusNotFound)
	b.signIn(ada)
	for _, path := range []string{
		"/console/account", "/console/account/log", "/console/account/password", "/console/account/authenticator",
		"/console/publish", "/console/own", "/console/reviews", "/console/step-up",
	} {
		check(path, http.StatusOK)
	}
	check("/console/quarantine", http.StatusForbidden)
	checkResponses(t, b)
	for _, other := range []map[string]string{
		{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {
			"Sec-Fetch-Site": "", "Origin": "https://evil.example",
		}, {"Sec-Fetch-Site": "", "Origin": "null"},
	} {
		for _, button := range []string{"Sign out", "Publish"} {
			b.open("/console/publish", http.StatusOK)
			r := b.submission(button)
			for name, value := range other {
				r.Header.Set(name, value)
				if value == "" {
					r.Header.Del(name)
				}
			}
			b.send(r, http.StatusForbidden)
			b.wantText("The form was sent from a page of another site")
		}
	}
	b.open("/console/account", http.StatusOK)
	b.wantText("My account")
	// A client that is no browser sends neither header, and has no cookie that a page could use.
	r := b.submission("Sign out")
	r.Header.Del("Origin")
	r.Header.Del("Sec-Fetch-Site")
	b.send(r, http.StatusOK)
	// What is not a form is refused.
	for contentType, status := range map[string]int{
		"application/json": http.StatusUnsupportedMediaType, "multipart/form-data": http.StatusBadRequest,
		"multipart/form-data; boundary=x": http.StatusBadRequest,
	} {
		b.send(b.request(http.MethodPost, "/console/sign-in", []byte(`{"email":"a"}`), contentType), status)
	}
	b.send(b.request(http.MethodPost, "/console/sign-in", []byte("a=%zz"), "application/x-www-form-urlencoded"),
		http.StatusBadRequest)
	b.send(b.request(http.MethodPost, "/console/sign-in", []byte(strings.Repeat("a=1&", 300)),
		"application/x-www-form-urlencoded"), http.StatusBadRequest)
}

// TestSearch searches the catalogue as people do, and as the command does.
func TestSearch(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*", "publish org.mine/*")
		publish := func(name, title, description string, more map[string]any) {
			doc := fixture.NewServerDocument(name, "1.0.0")
			doc["title"], doc["description"] = title, description
			maps.Copy(doc, more)
			ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
		}
		publish("com.example/alpha", "Forecasts", "Shows the weather of a city", nil)
		publish("com.example/beta", "Weather maps", "Draws clouds", map[string]any{
			"remotes": []map[string]any{{"type": "sse", "url": "https://maps.example.com/sse"}},
		})
		publish("org.mine/weather", "Rain", "Counts drops", nil)
		b := newBrowser(t, s)
		order := func(query string, want ...string) {
			t.Helper()
			b.open("/console/?"+query, http.StatusOK)
			var got []string
			for _, n := range all(b.page.root, func(n *html.Node) bool {
				return n.Data == "a" && strings.HasPrefix(attribute(n, "href"), "/console/servers/")
			}) {
				got = append(got, strings.TrimPrefix(attribute(n, "href"), "/console/servers/"))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s finds %q, want %q", query, got, want)
			}
		}
		order("q=WEATHER", "org.mine/weather", "com.example/beta", "com.example/alpha")
		b.wantText("3 servers")
		order("q=city+weath", "com.example/alpha")
		b.wantText("1 server")
		order("q=weather&sort=name", "com.example/alpha", "com.example/beta", "org.mine/weather")
		order("sort=newest", "org.mine/weather", "com.example/beta", "com.example/alpha")
		order("namespace=org.mine", "org.mine/weather")
		order("transport=sse&remote=true", "com.example/beta")
		order("origin=here&q=clouds", "com.example/beta")
		order("origin=corp")
		b.wantText("No server matches.")
		e.RunCommand(t, "", "view", "add", "rain", "--include", "org.mine/*")
		order("view=rain", "org.mine/weather")
		e.RunCommand(t, "", "view", "add", "closed", "--include", "org.mine/*", "--access", "token")
		b.open("/console/?view=closed", http.StatusUnprocessableEntity)
		publish("com.example/alpha2", "Sun", "no clouds", nil)
		order("q=sun", "com.example/alpha2")

		order("Q=city", "com.example/alpha")
		b.open("/console/?q=%00", http.StatusUnprocessableEntity)
		b.wantText("without the character NUL")
		wrong := b.request(http.MethodGet, "/console/?page=0", nil, "")
		wrong.Header.Set("Accept", "application/json")
		b.send(wrong, http.StatusBadRequest)
		if want := `{"error":"page must be a whole number from 1 to 100000"}`; b.page.body != want {
			t.Errorf("a program gets %s, want %s", b.page.body, want)
		}
		r := b.request(http.MethodGet, "/console/?q=weather&page=1", nil, "")
		r.Header.Set("Accept", "application/json")
		response, err := b.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		found, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("status %d, error %v", response.StatusCode, err)
		}
		for _, part := range []string{`"total":3`, `"pages":1`, `"title":"Rain"`, `"isLatest":true`} {
			if !strings.Contains(string(found), part) {
				t.Errorf("the answer in JSON has no %s: %s", part, found)
			}
		}
		b.signIn(ada)
		order("", "com.example/alpha", "com.example/alpha2", "com.example/beta", "org.mine/weather")
	})
}

// TestServerPage looks at what a server offers, who published and approved it, and its history.
func TestServerPage(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
	rey := e.NewWriter(t, s, "rey@example.com", "review *")
	for i := range 12 {
		doc := fixture.NewServerDocument("com.example/crm", fmt.Sprintf("1.%d.0", i))
		doc["title"] = "Customers"
		doc["remotes"] = []map[string]any{
			{"type": "streamable-http", "url": "https://one.example.com/mcp"}, {"type": "sse", "url": "https://two.example.com/sse"},
		}
		ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
	}
	reviewer := newBrowser(t, s)
	reviewer.signIn(rey)
	reviewer.open("/console/step-up", http.StatusOK)
	reviewer.verify(e, rey, http.StatusOK)
	reviewer.open("/console/reviews", http.StatusOK)
	reviewer.follow("com.example/crm", http.StatusOK)
	reviewer.press("Approve", http.StatusOK, "comment", "between us")
	e.RunCommand(t, "", "review", "approve", "--all-pending")
	e.RunCommand(t, "", "view", "add", "sales", "--include", "com.example/*")
	e.RunCommand(t, "", "view", "add", "closed", "--include", "com.example/*", "--access", "token")
	ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/crm", "9.0.0")).WantStatus(t, http.StatusOK)

	b := newBrowser(t, s)
	b.open("/console/servers/com.example/crm/versions/1.0.0", http.StatusOK)
	wantTitle(t, b, "Customers 1.0.0 - ")
	b.wantText("2 older versions", "the view sales", "Kiro", "https://one.example.com/mcp")
	b.wantNoText("ada@example.com", "rey@example.com", "the view closed", "History", "Active")
	b.wantText("sse https://two.example.com/sse")
	b.open("/console/servers/com.example/crm/versions/1.0.0?use=remote-2", http.StatusOK)
	if n := find(b.page.root, func(n *html.Node) bool { return attribute(n, "id") == "install-claude" }); n == nil ||
		!strings.Contains(textOf(n), "https://two.example.com/sse") {
		t.Error("Claude Code does not get the remote that was chosen")
	}
	b.signIn(ada)
	b.open("/console/servers/com.example/crm/versions/1.0.0", http.StatusOK)
	b.wantText("by ada@example.com", "by rey@example.com", "the view closed", "published com.example/crm 1.11.0",
		"approved com.example/crm 1.11.0")
	b.wantNoText("between us", "published com.example/crm 9.0.0")
	b.open("/console/servers/com.example/crm/versions/1.1.0", http.StatusOK)
	b.wantText("by an operator command")
}

// wantTitle checks how the title of the page begins.
func wantTitle(t *testing.T, b *browser, want string) {
	t.Helper()
	title := find(b.page.root, func(n *html.Node) bool { return n.Data == "title" })
	if title == nil || !strings.HasPrefix(textOf(title), want) {
		t.Errorf("the title of %s does not begin with %q", b.page.url, want)
	}
}
