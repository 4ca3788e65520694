package console_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCatalogue checks the list, the search, the pages and the page of a server, without signing
// in.
func TestCatalogue(t *testing.T) {
	e, s := start(t)
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
	b.Open("/console/", http.StatusOK).WantText("com.example/server-00 ", "Version 1.1.0", "com.example/server-29 ")
	b.WantNoText("com.example/server-30")
	b.Follow("Next page", http.StatusOK).WantText("com.example/server-30", "com.example/server-34")
	b.Follow("First page", http.StatusOK)
	b.Press("Search", http.StatusOK, "q", "SERVER-3").WantText("com.example/server-30")
	b.WantNoText("com.example/server-29", "Next page")
	b.Press("Search", http.StatusOK, "q", "nothing at all").WantText("No server matches.")
	b.Open("/console/?status=nonsense", http.StatusUnprocessableEntity)
	b.Open("/console/", http.StatusOK)
	b.Open("/console/?status=deprecated&remote=true", http.StatusOK).WantText("No server matches. Show all servers")
	b.Open("/console/", http.StatusOK).WantText("active 35", "deleted").WantNoText("streamable-http")
	b.Follow("active 35", http.StatusOK)
	b.Open("/console/?status=active&remote=true", http.StatusOK).WantText("com.example/server-29 ", "Filter (2)")
	b.Follow("Next page", http.StatusOK).WantText("com.example/server-34").WantNoText("Next page")
	b.Follow("First page", http.StatusOK)
	if got := b.Field("status") + b.Field("remote"); got != "activetrue" {
		t.Errorf("the filters of the first page are %q", got)
	}
	b.Press("Search", http.StatusOK, "q", "server-1").WantText("10 servers", "Filter (2)")
	b.Follow("with an address: remove this filter ×", http.StatusOK).WantPath("/console/?q=server-1&status=active")
	for _, wrong := range []string{
		"page=0", "page=x", "sort=age", "remote=perhaps", "view=secret", "view=A", "q=" + strings.Repeat("a", 201),
		"q=1+2+3+4+5+6+7+8+9", "namespace=" + strings.Repeat("n", 301), "origin=%00",
	} {
		b.Open("/console/?"+wrong, http.StatusUnprocessableEntity)
	}
	b.Open("/console/servers/com.example/server-00", http.StatusOK)
	b.WantText("Version 1.1.0", "Latest", "VS Code", "Claude Code", "Cursor", "Gemini CLI",
		"https://remote.example.com/mcp", "www.example.com", ".vscode/mcp.json")
	checkLinks(t, b)
	b.Follow("1.0.0", http.StatusOK).WantText("This is not the latest version.")
	wantTitle(t, b, "com.example/server-00 1.0.0 - ")
	b.Follow("JSON", http.StatusOK)
	if !strings.Contains(b.Page.Body, `"version":"1.0.0"`) {
		t.Errorf("the document is %s", b.Page.Body)
	}
	b.Open("/console/servers/com.example/server-00?use=package-7", http.StatusNotFound)
	b.Open("/console/servers/com.example/server-00?format=x", http.StatusBadRequest)
	b.Open("/console/servers/com.example/unknown", http.StatusNotFound)
	b.Open("/console/servers/com.example/server-00/versions/9.9.9", http.StatusNotFound)
	b.Open("/console/servers/com.example/%00", http.StatusNotFound)
}

// TestCatalogueIsBeingMade checks that a server which waits for its place in the catalogue is found by
// its name, and that the page, JSON and tollgate server search say what the catalogue lacks. The
// database refuses to index, as it does when it cannot be written.
func TestCatalogueIsBeingMade(t *testing.T) {
	e, s := start(t)
	ada := e.NewWriter(t, s, "ada@example.com", "publish *")
	publish := func(name string) {
		t.Helper()
		ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).WantStatus(t, http.StatusOK)
	}
	b := newBrowser(t, s)
	publish("com.example/early")
	b.Open("/console/?q=example", http.StatusOK).WantText("com.example/early").WantNoText("is being made")
	_, err := e.OpenDatabase(t).ExecContext(t.Context(), `CREATE TRIGGER refuses BEFORE DELETE ON catalogue_backlog
		BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	must.Succeed(t, err)
	publish("com.example/late")
	const progress = "catalogue is being made: 1 of 2 servers are in it"
	for query, found := range map[string][]string{
		"": {"com.example/early", "com.example/late"}, "late": {"com.example/late"}, "nothing": {"No server matches."},
	} {
		b.Open("/console/?q="+query, http.StatusOK).WantText(append(found, "The "+progress)...)
	}
	for word, found := range map[string]int{"late": 1, "example": 2, "nothing": 0} {
		stdout, stderr, code := e.TryCommand(t, "", "server", "search", word, "--server", s.API, "-o", "json")
		if code != 0 || strings.Count(stdout, `"name"`) != found || !strings.Contains(stderr, progress) {
			t.Errorf("search %s: exit code %d, %s\n%s", word, code, stdout, stderr)
		}
	}
}

// checkLinks checks the links that lead out of the page of a server.
func checkLinks(t *testing.T, b *browser) {
	t.Helper()
	schemes := map[string]bool{}
	for _, n := range webtest.All(b.Page.Root, func(n *html.Node) bool { return n.Data == "a" }) {
		target := webtest.Attribute(n, "href")
		scheme, _, _ := strings.Cut(target, ":")
		switch {
		case strings.HasPrefix(target, "/") || strings.HasPrefix(target, "#"):
		case scheme == "https":
			if webtest.Attribute(n, "rel") != "noopener noreferrer nofollow" {
				t.Errorf("the link to %s has rel %q", target, webtest.Attribute(n, "rel"))
			}
		default:
			schemes[scheme] = true
		}
	}
	if len(schemes) != 2 || !schemes["vscode"] || !schemes["cursor"] {
		t.Errorf("the schemes of other links are %v", schemes)
	}
	for _, n := range webtest.All(b.Page.Root, func(n *html.Node) bool { return webtest.Attribute(n, "src") != "" }) {
		if !strings.HasPrefix(webtest.Attribute(n, "src"), "/console/static/") {
			t.Errorf("the page loads %s", webtest.Attribute(n, "src"))
		}
	}
}

// checkResponses checks the headers of what is no page: redirects, and the files that pages load.
func checkResponses(t *testing.T, b *browser) {
	t.Helper()
	b.Open("/console/", http.StatusOK)
	want := map[string]map[string]string{
		"/console/operator":                {"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"},
		"/console/account/devices/1/trust": {"Location": "/console/account"},
	}
	for _, redirect := range want {
		redirect["Referrer-Policy"], redirect["Cache-Control"] = "same-origin", "no-store"
	}
	for _, n := range webtest.All(b.Page.Root, func(n *html.Node) bool { return n.Data == "link" || n.Data == "script" }) {
		want[webtest.Attribute(n, "href")+webtest.Attribute(n, "src")] = map[string]string{
			"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
		}
	}
	if len(want) != 5 {
		t.Errorf("the page loads %d files, want a style, a script and an icon", len(want)-2)
	}
	for path, headers := range want {
		r := b.Request(http.MethodGet, path, nil, "")
		for _, c := range b.Client.Jar.Cookies(b.Page.URL) {
			r.AddCookie(c)
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		must.Succeed(t, err)
		response.Body.Close()
		for name, value := range headers {
			if got := response.Header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got, value)
			}
		}
	}
}

// TestHeaders checks the headers of what is no page, and which forms are refused.
func TestHeaders(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com", publish)
	b := signedIn(t, s, ada)
	checkResponses(t, b)
	for _, other := range [][2]string{{"cross-site"}, {"same-site"}, {"", "https://evil.example"}, {"", "null"}} {
		for _, button := range []string{"Sign out", "Publish"} {
			b.Open("/console/publish", http.StatusOK)
			r := b.Submission(button)
			r.Header.Set("Sec-Fetch-Site", other[0])
			if other[0] == "" {
				r.Header.Del("Sec-Fetch-Site")
				r.Header.Set("Origin", other[1])
			}
			b.Send(r, http.StatusForbidden).WantText("The form was sent from a page of another site")
		}
	}
	b.Open("/console/account", http.StatusOK).WantText("My account")
	// A client that is no browser sends neither header, and has no cookie that a page could use.
	r := b.Submission("Sign out")
	r.Header.Del("Origin")
	r.Header.Del("Sec-Fetch-Site")
	b.Send(r, http.StatusOK)
	for _, c := range []struct { // what is not a form is refused
		contentType, body string
		status            int
	}{
		{"application/json", `{"email":"a"}`, http.StatusUnsupportedMediaType}, {"multipart/form-data", "", http.StatusBadRequest},
		{"multipart/form-data; boundary=x", "a", http.StatusBadRequest},
		{"application/x-www-form-urlencoded", "a=%zz", http.StatusBadRequest},
		{"application/x-www-form-urlencoded", strings.Repeat("a=1&", 300), http.StatusBadRequest},
	} {
		b.Send(b.Request(http.MethodPost, "/console/sign-in", []byte(c.body), c.contentType), c.status)
	}
}

// TestSearch searches the catalogue as people do, and as the command does.
func TestSearch(t *testing.T) {
	e, s := start(t)
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
		b.Open("/console/?"+query, http.StatusOK)
		var got []string
		for _, n := range webtest.All(b.Page.Root, func(n *html.Node) bool {
			return n.Data == "a" && strings.HasPrefix(webtest.Attribute(n, "href"), "/console/servers/")
		}) {
			got = append(got, strings.TrimPrefix(webtest.Attribute(n, "href"), "/console/servers/"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	order("q=WEATHER", "org.mine/weather", "com.example/beta", "com.example/alpha")
	b.WantText("3 servers")
	order("q=city+weath", "com.example/alpha")
	b.WantText("1 server")
	for mistyped, corrected := range map[string]string{"forcasts": "forecasts", "wheather+clouds": "weather clouds", "forecazts": "forecasts"} {
		order("q="+mistyped, map[bool]string{true: "com.example/alpha", false: "com.example/beta"}[corrected == "forecasts"])
		b.WantText("These have " + corrected + ".")
	}
	order("q=rein") // a short word is not corrected
	order("q=weather&sort=name", "com.example/alpha", "com.example/beta", "org.mine/weather")
	order("sort=newest", "org.mine/weather", "com.example/beta", "com.example/alpha")
	order("namespace=org.mine", "org.mine/weather")
	order("transport=sse&remote=true", "com.example/beta")
	order("origin=here&q=clouds", "com.example/beta")
	order("origin=corp")
	b.WantText("No server matches.")
	e.RunCommand(t, "", "view", "add", "rain", "--include", "org.mine/*")
	order("view=rain", "org.mine/weather")
	e.RunCommand(t, "", "view", "add", "closed", "--include", "org.mine/*", "--access", "token")
	b.Open("/console/?view=closed", http.StatusUnprocessableEntity)
	publish("com.example/alpha2", "Sun", "no clouds", nil)
	order("q=sun", "com.example/alpha2")

	order("Q=city", "com.example/alpha")
	b.Open("/console/?q=%00", http.StatusUnprocessableEntity).WantText("without the character NUL")
	wrong := b.Request(http.MethodGet, "/console/?page=0", nil, "")
	wrong.Header.Set("Accept", "application/json")
	b.Send(wrong, http.StatusBadRequest)
	if want := `{"error":"page must be a whole number from 1 to 100000"}`; b.Page.Body != want {
		t.Errorf("a program gets %s, want %s", b.Page.Body, want)
	}
	r := b.Request(http.MethodGet, "/console/?q=weather&page=1", nil, "")
	r.Header.Set("Accept", "application/json")
	response, err := b.Client.Do(r)
	must.Succeed(t, err)
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
}

// TestServerPage looks at what a server offers, who published and approved it, and its history.
func TestServerPage(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on")
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
	rey := e.NewWriter(t, s, "rey@example.com", "review *")
	for i := range 12 {
		doc := fixture.NewServerDocument("com.example/crm", fmt.Sprintf("1.%d.0", i))
		doc["title"] = "Customers"
		doc["remotes"] = []map[string]any{
			{"type": "streamable-http", "url": "https://one.example.com/mcp"}, {"type": "sse", "url": "https://two.example.com/sse"},
		}
		doc["packages"] = []map[string]any{{
			"registryType": "npm", "identifier": "crm", "version": "1.0.0", "transport": map[string]any{"type": "stdio"},
			"packageArguments": []map[string]any{{"type": "positional", "valueHint": "customer", "isRequired": true}},
		}}
		ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
	}
	reviewer := openVerified(t, e, s, rey)
	reviewer.Open("/console/reviews", http.StatusOK)
	reviewer.Follow("com.example/crm", http.StatusOK)
	reviewer.Press("Approve", http.StatusOK, "comment", "between us")
	e.RunCommand(t, "", "review", "approve", "--all-pending")
	e.RunCommand(t, "", "view", "add", "sales", "--include", "com.example/*")
	e.RunCommand(t, "", "view", "add", "closed", "--include", "com.example/*", "--access", "token")
	publishVersion(t, s, ada, "com.example/crm", "9.0.0")

	b := newBrowser(t, s)
	b.Open("/console/servers/com.example/crm/versions/1.0.0", http.StatusOK)
	wantTitle(t, b, "Customers 1.0.0 - ")
	b.WantText("2 older versions", "the view sales", "Kiro", "https://one.example.com/mcp")
	b.WantNoText("ada@example.com", "rey@example.com", "the view closed", "History", "Active")
	b.WantText("sse https://two.example.com/sse")
	b.Open("/console/servers/com.example/crm/versions/1.0.0?use=remote-2", http.StatusOK)
	if n := webtest.Find(b.Page.Root, func(n *html.Node) bool { return webtest.Attribute(n, "id") == "install-claude" }); n == nil ||
		!strings.Contains(webtest.TextOf(n), "https://two.example.com/sse") {
		t.Error("Claude Code does not get the remote that was chosen")
	}
	b.WantText("server-sent events").WantNoText("Allow lists of this registry cannot have this")
	b.Open("/console/servers/com.example/crm/versions/1.0.0?use=package-1", http.StatusOK)
	b.WantText("Allow lists of this registry cannot have this: each user completes the command.", "<customer>", "~/.codex/config.toml")
	b.signIn(ada)
	b.Open("/console/servers/com.example/crm/versions/1.0.0", http.StatusOK)
	b.WantText("by ada@example.com", "by rey@example.com", "the view closed", "submitted com.example/crm 1.11.0 for review",
		"approved com.example/crm 1.11.0")
	b.WantNoText("between us", "published com.example/crm 9.0.0")
	b.Open("/console/servers/com.example/crm/versions/1.1.0", http.StatusOK).WantText("by an operator command")
}

// wantTitle checks how the title of the page begins.
func wantTitle(t *testing.T, b *browser, want string) {
	t.Helper()
	title := webtest.Find(b.Page.Root, func(n *html.Node) bool { return n.Data == "title" })
	if title == nil || !strings.HasPrefix(webtest.TextOf(title), want) {
		t.Errorf("the title of %s does not begin with %q", b.Page.URL, want)
	}
}

// TestTools checks that the page of a server has the tools of its recorded list, how they change data, and
// whether a reviewer has approved the list.
func TestTools(t *testing.T) {
	e, s := start(t)
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
	publishVersion(t, s, ada, "com.example/crm", "1.0.0")
	b := newBrowser(t, s)
	const page = "/console/servers/com.example/crm"
	b.Open(page, http.StatusOK).WantText("It is not known which tools this version has", "tollgate tools record com.example/crm@1.0.0")
	record := func(tools ...map[string]any) {
		t.Helper()
		answer := apiclient.Call(t, http.MethodPut, s.API+"/v0.1/x/dev.tollgate/servers/com.example%2Fcrm/versions/1.0.0/tools",
			map[string]any{"remote": "https://com.example.crm/mcp", "tools": tools}, ada.Bearer()...)
		if answer.Status != http.StatusCreated && answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
	}
	many := []map[string]any{
		{"name": "find", "description": "Finds customers. By name.", "inputSchema": map[string]any{"type": "object", "title": "A filter"}, "annotations": map[string]any{"readOnlyHint": true}},
		{"name": "remove", "description": hostile, "inputSchema": map[string]any{"type": "object", "description": strings.Repeat("\"", 9000)}},
	}
	for i := range 100 {
		many = append(many, map[string]any{"name": fmt.Sprintf("z-%03d", i), "description": strings.Repeat("\"long\" ", 500), "inputSchema": map[string]any{"type": "object"}})
	}
	record(many...)
	b.Open(page, http.StatusOK).WantText("find Finds customers reads", "A filter", "1 only read, 101 may change something", "Approved", "62 more tools are not listed here.")
	if size := len(b.Page.Body); size > largePage {
		t.Errorf("the page has %d bytes", size)
	}
	b.wantHarmless(page)
	record(map[string]any{"name": "find", "inputSchema": map[string]any{"type": "object"}})
	b.Open(page, http.StatusOK).WantText("Changed since", "The server shows other tools now than those that were approved", "find Finds customers reads")
	b.Follow("The whole lists", http.StatusOK)
}
