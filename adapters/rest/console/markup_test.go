package console_test

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// markup is a text that would be an element on a page that does not escape it. hostile has characters
// too that turn the direction of text, or that are not seen.
const (
	markup  = `"'></textarea></pre></title><img src=x onerror=alert(1)>`
	hostile = markup + "\u202egnp.exe\u202c pay\u200bpal"
)

// newHostileDocument returns a document with hostile texts wherever it takes them.
func newHostileDocument() map[string]any {
	doc := fixture.NewServerDocument("com.example/weather", "1.0.0")
	inputs := []any{map[string]any{
		"name": "KEY" + markup, "description": hostile, "default": hostile, "placeholder": hostile, "choices": []string{hostile}, "isSecret": true,
	}}
	doc["title"], doc["description"] = hostile, hostile
	doc["repository"] = map[string]any{
		"url": "https://github.com/example/weather", "source": markup, "id": markup, "subfolder": hostile,
	}
	doc["remotes"] = []any{
		map[string]any{"type": "streamable-http", "url": "https://weather.example.com/mcp", "headers": inputs},
	}
	doc["packages"] = []any{map[string]any{
		"registryType": "nuget", "identifier": "Example" + markup, "version": "1.0.0", "runtimeHint": hostile,
		"transport": map[string]any{"type": "stdio"}, "environmentVariables": inputs,
		"packageArguments": []any{
			map[string]any{"type": "positional", "value": hostile, "valueHint": hostile, "description": hostile},
		},
	}}
	doc["_meta"] = map[string]any{"com.example/x": hostile}
	return doc
}

// wantHarmless opens pages, and checks that none has an element of the markup, nor a character that is
// not seen.
func (b *browser) wantHarmless(pages ...string) {
	b.T.Helper()
	for _, page := range pages {
		b.Open(page, http.StatusOK)
		if webtest.Find(b.Page.Root, func(n *html.Node) bool {
			return n.Data == "img" && webtest.Attribute(n, "src") == "x" || webtest.HasAttribute(n, "onerror")
		}) != nil || strings.Contains(b.Page.Body, "<img src=x") {
			b.T.Errorf("%s has the markup", page)
		}
		if i := strings.IndexAny(b.Page.Body, "\u202e\u202c\u200b"); i >= 0 {
			b.T.Errorf("%s has them as they are: …%q…", page, b.Page.Body[max(0, i-80):min(len(b.Page.Body), i+20)])
		}
	}
}

// TestHostileTexts stores hostile texts in every field that takes them: in documents, statuses, comments,
// reasons, names of people and devices. No page has markup of them, and pages write out what is not seen.
func TestHostileTexts(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on")
	e.RunCommand(t, fixture.Password+"\n", "user", "add", "--email", "mallory@example.com", "--name", markup,
		"--password-stdin")
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
	ada.PostJSON(t, s, "/v0.1/publish", newHostileDocument()).WantStatus(t, http.StatusOK)
	a, b := newBrowser(t, s), newVerified(t, e, s, "bea@example.com", "review *", "operate *")
	a.signIn(ada)
	b.Open("/console/reviews", http.StatusOK).Follow("com.example/weather", http.StatusOK)
	review := b.Page.URL.RequestURI()
	b.wantHarmless(review, "/console/inbox", "/console/home")
	a.wantHarmless(review, "/console/own", "/console/home")
	b.Open(review, http.StatusOK).Press("Approve", http.StatusOK, "comment", markup)
	apiclient.Call(t, "PATCH", s.API+"/v0.1/servers/com.example%2Fweather/versions/1.0.0/status", map[string]string{
		"status": "deprecated", "statusMessage": hostile,
	}, ada.Bearer()...).WantStatus(t, http.StatusOK)
	a.Open("/console/account", http.StatusOK).Press("Save the name of Firefox on Linux", http.StatusOK, "name", markup)
	shown := []string{
		review, "/console/", "/console/?q=gnp", "/console/servers/com.example/weather", "/console/own/com.example/weather", "/console/account/log",
	}
	for _, page := range shown {
		a.wantHarmless(page)
		if !strings.Contains(a.Page.Body, `\u202egnp.exe\u202c pay\u200bpal`) {
			t.Errorf("%s does not show what is not seen", page)
		}
	}
	a.wantHarmless("/console/?q="+strings.ReplaceAll(markup, " ", "+"), "/console/account", "/console/home")
	b.Open("/console/quarantine", http.StatusOK)
	b.Press("Put in quarantine", http.StatusOK, "name", "com.example/weather", "version", "", "reason", markup)
	b.wantHarmless("/console/quarantine", "/console/reviews?state=approved", "/console/operator/people",
		"/console/operator/people/mallory@example.com", "/console/operator/log", "/console/operator/rights",
		"/console/operator/limits?for=shop&descriptors=a%3D%3Cimg+src%3Dx%3E")
}
