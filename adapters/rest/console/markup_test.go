package console

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// markup is a text that would be an element on a page that does not escape it.
const markup = `"'></textarea></pre></title><img src=x onerror=alert(1)>`

// TestMarkup stores markup in every field that takes it: in documents, statuses, comments, reasons,
// names of people and devices. No page has an element of it.
func TestMarkup(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
	e.RunCommand(t, fixture.Password+"\n", "user", "add", "--email", "mallory@example.com", "--name", markup,
		"--password-stdin")
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
	bea := e.NewWriter(t, s, "bea@example.com", "review *", "operate *")
	inputs := []any{
		map[string]any{
			"name": "KEY" + markup, "description": markup, "default": markup, "placeholder": markup,
			"choices": []string{markup},
		},
	}
	doc := fixture.NewServerDocument("com.example/weather", "1.0.0")
	doc["title"], doc["description"] = markup, markup
	doc["repository"] = map[string]any{
		"url": "https://github.com/example/weather", "source": markup, "id": markup, "subfolder": markup,
	}
	doc["remotes"] = []any{
		map[string]any{"type": "streamable-http", "url": "https://weather.example.com/mcp", "headers": inputs},
	}
	doc["packages"] = []any{map[string]any{
		"registryType": "nuget", "identifier": "Example" + markup, "version": "1.0.0", "runtimeHint": markup,
		"transport": map[string]any{"type": "stdio"}, "environmentVariables": inputs,
		"packageArguments": []any{
			map[string]any{"type": "positional", "value": markup, "valueHint": markup, "description": markup},
		},
	}}
	doc["_meta"] = map[string]any{"com.example/x": markup}
	ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
	check := func(b *browser, pages ...string) {
		t.Helper()
		for _, page := range pages {
			b.open(page, http.StatusOK)
			if n := find(b.page.root, func(n *html.Node) bool {
				return n.Data == "img" && attribute(n, "src") == "x" || hasAttribute(n, "onerror")
			}); n != nil {
				t.Errorf("%s has markup that was published", page)
			}
			if strings.Contains(b.page.body, "<img src=x") {
				t.Errorf("%s has the text of the markup as it is", page)
			}
		}
	}
	a, b := newBrowser(t, s), newBrowser(t, s)
	a.signIn(ada)
	b.signIn(bea)
	b.open("/console/step-up", http.StatusOK)
	b.verify(e, bea, http.StatusOK)
	b.open("/console/reviews", http.StatusOK)
	b.follow("com.example/weather", http.StatusOK)
	review := b.page.url.RequestURI()
	check(b, review)
	check(a, review, "/console/own")
	b.open(review, http.StatusOK)
	b.press("Approve", http.StatusOK, "comment", markup)
	apiclient.Call(t, "PATCH", s.API+"/v0.1/servers/com.example%2Fweather/versions/1.0.0/status", map[string]string{
		"status": "deprecated", "statusMessage": markup,
	}, ada.Bearer()...).WantStatus(t, http.StatusOK)
	a.open("/console/account", http.StatusOK)
	a.press("Save the name of Firefox on Linux", http.StatusOK, "name", markup)
	check(a, review, "/console/", "/console/?q="+strings.ReplaceAll(markup, " ", "+"),
		"/console/servers/com.example/weather", "/console/account", "/console/account/log",
		"/console/own/com.example/weather")
	b.open("/console/quarantine", http.StatusOK)
	b.press("Put in quarantine", http.StatusOK, "name", "com.example/weather", "version", "", "reason", markup)
	check(b, "/console/quarantine", "/console/reviews?state=approved", "/console/operator/people",
		"/console/operator/people/mallory@example.com",
		"/console/operator/log", "/console/operator/limits?for=shop&descriptors=a%3D%3Cimg+src%3Dx%3E",
		"/console/operator/grants")
}

// TestUnseenCharacters publishes texts with characters that turn the direction of text, or that are
// not seen. The pages write them out.
func TestUnseenCharacters(t *testing.T) {
	t.Parallel()
	const hostile = "\u202egnp.exe\u202c pay\u200bpal"
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *", "review *")
	doc := fixture.NewServerDocument("com.example/weather", "1.0.0")
	doc["title"], doc["description"] = hostile, hostile
	doc["remotes"] = []any{map[string]any{
		"type": "streamable-http", "url": "https://weather.example.com/mcp",
		"headers": []any{map[string]any{"name": "X-Key", "description": hostile, "isSecret": true}},
	}}
	ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
	b := newBrowser(t, s)
	b.signIn(ada)
	b.open("/console/reviews", http.StatusOK)
	b.follow("com.example/weather", http.StatusOK)
	pages := []string{b.page.url.RequestURI(), "/console/", "/console/?q=gnp", "/console/servers/com.example/weather"}
	e.RunCommand(t, "", "review", "approve", "--all-pending")
	apiclient.Call(t, "PATCH", s.API+"/v0.1/servers/com.example%2Fweather/versions/1.0.0/status", map[string]string{
		"status": "deprecated", "statusMessage": hostile,
	}, ada.Bearer()...).WantStatus(t, http.StatusOK)
	for _, page := range append(pages, "/console/own/com.example/weather", "/console/account/log") {
		b.open(page, http.StatusOK)
		if i := strings.IndexAny(b.page.body, "\u202e\u202c\u200b"); i >= 0 {
			t.Errorf("%s has them as they are: …%q…", page, b.page.body[max(0, i-80):min(len(b.page.body), i+20)])
		}
		if !strings.Contains(b.page.body, `\u202egnp.exe\u202c pay\u200bpal`) {
			t.Errorf("%s does not show them", page)
		}
	}
}
