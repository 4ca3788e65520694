package console

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const documentWithMistakes = `{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "com.example",
  "description": "Weather for <b>everybody</b>",
  "version": "1.0.0",
  "remotes": [
    { "type": "streamable-http", "url": "ftp://weather.example.com" },
    { "type": "sse" }
  ]
}
`

const goodDocument = `{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "com.example/weather",
  "title": "<script>alert(1)</script>",
  "description": "Weather for <b>everybody</b>",
  "websiteUrl": "https://weather.example.com/?a=1&b=2",
  "version": "1.0.0",
  "remotes": [ { "type": "streamable-http", "url": "https://weather.example.com/mcp" } ]
}
`

// TestPublish publishes a document from the first mistake to its page, with a step-up in between.
func TestPublish(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewPerson(t, "ada@example.com", "publish com.example/*", "edit com.example/*")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.follow("Publish", http.StatusOK)
		b.press("Publish", http.StatusUnprocessableEntity, "document", "{\n  \"name\": 1,\n}")
		b.wantText("Line 3, column 1 Body is not valid JSON")
		b.press("Publish", http.StatusUnprocessableEntity, "document", " \n")
		b.wantText("Paste a document, or choose a file.")
		many := `{"remotes":[` + strings.Repeat(`{"type":"x"},`, 3000) + `1]}`
		b.press("Publish", http.StatusUnprocessableEntity, "document", many)
		b.wantText("Line 1, column 25", "more, which you see after you have mended these.")
		if size := len(b.page.body) - len(html.EscapeString(many)); size > largePage {
			t.Errorf("the page has %d bytes around the document", size)
		}
		b.press("Publish", http.StatusUnprocessableEntity, "document", documentWithMistakes)
		b.wantText("Line 3, column 11: name", "Line 7, column 41: remotes[0].url",
			"Line 8, column 5: remotes[1].url is required", "The document breaks 3 rules")
		if b.field("document") != documentWithMistakes {
			t.Errorf("the form has the document %q", b.field("document"))
		}
		b.press("Check only", http.StatusOK, "document", goodDocument)
		b.wantText("The document of com.example/weather 1.0.0 keeps all rules. Nothing that was checked prevents the publication.")
		apiclient.Call(t, "GET", s.API+"/v0.1/servers/com.example%2Fweather/versions/1.0.0", nil).WantStatus(t,
			http.StatusNotFound)
		b.press("Publish", http.StatusForbidden)
		b.wantText("To go on with Publish, enter a one-time code. What you typed is kept.")
		b.verify(e, ada, http.StatusOK)
		b.wantPath("/console/publish")
		if b.field("document") != goodDocument {
			t.Errorf("after the step-up the form has the document %q", b.field("document"))
		}
		b.press("Publish", http.StatusOK)
		b.wantPath("/console/servers/com.example/weather/versions/1.0.0")
		b.wantText("<script>alert(1)</script>", "Weather for <b>everybody</b>", "Latest")
		for _, markup := range []string{"<script>alert", "<b>everybody"} {
			if strings.Contains(b.page.body, markup) {
				t.Errorf("the page has the published markup %s", markup)
			}
		}
		b.open("/console/publish", http.StatusOK)
		b.press("Publish", http.StatusUnprocessableEntity, "document", goodDocument)
		b.wantText("already")
		b.press("Publish", http.StatusForbidden, "document",
			strings.Replace(goodDocument, "com.example/", "org.example/", 1))
		b.wantText("You have no publish permission for org.example/weather.", "You may publish com.example/*")
		if !strings.Contains(b.field("document"), "org.example/weather") {
			t.Errorf("after the refusal the form has the document %q", b.field("document"))
		}
		b.press("Check only", http.StatusOK)
		b.wantText("But it cannot be published as it is.", "Refused your permission: You have no publish permission",
			"Passed remote addresses")
		b.press("Check only", http.StatusOK, "document", goodDocument)
		b.wantText("Refused the version is new: Version 1.0.0 of com.example/weather already exists")
		b.press("Check only", http.StatusOK, "document", strings.Replace(goodDocument, `"version": "1.0.0"`, `"version": "1.2.0"`, 1))
		b.wantText("Nothing that was checked prevents the publication.", "Passed your permission")
		b.follow("Begin with a template", http.StatusOK)
		if !strings.Contains(b.field("document"), `"name": "com.example/my-server"`) {
			t.Errorf("the template is %q", b.field("document"))
		}
	})
}

// TestPublishAFile checks that a chosen file takes the place of the text.
func TestPublishAFile(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, fixture.RegistrySettings()...)
	ada := e.NewPerson(t, "ada@example.com", "publish *")
	b := newBrowser(t, s)
	b.signIn(ada)
	b.open("/console/step-up?next=/console/publish", http.StatusOK)
	b.verify(e, ada, http.StatusOK)
	b.press("Publish", http.StatusOK, "file", goodDocument)
	b.wantPath("/console/servers/com.example/weather/versions/1.0.0")
	b.open("/console/publish", http.StatusOK)
	r := b.submission("Publish", "document", strings.Repeat("x", 1<<20))
	b.send(r, http.StatusRequestEntityTooLarge)
	b.wantText("Not possible", "Body is larger than 1048576 bytes.")
}

// TestOwnServers checks the list of the person's servers, and changes of status.
func TestOwnServers(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		root := e.NewWriter(t, s, "root@example.com", "publish *")
		for _, name := range []string{"com.example/weather", "com.example/news", "org.example/other"} {
			root.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).WantStatus(t, http.StatusOK)
		}
		root.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/weather", "1.1.0")).WantStatus(t,
			http.StatusOK)
		ada := e.NewPerson(t, "ada@example.com", "publish com.example/*", "edit com.example/weather")
		nobody := e.NewPerson(t, "nobody@example.com")
		b := newBrowser(t, s)
		b.signIn(nobody)
		b.follow("My servers", http.StatusOK)
		b.wantText("None is published yet.")
		b.press("Sign out", http.StatusOK)
		b.signIn(ada)
		b.follow("My servers", http.StatusOK)
		b.wantText("com.example/news", "com.example/weather")
		b.wantNoText("org.example/other")
		b.follow("com.example/weather", http.StatusOK)
		b.wantNoText("Change the status")
		b.open("/console/own/com.example/weather?version=1.0.0", http.StatusOK)
		b.wantText("Change 1.0.0, which is active")
		if b.field("status") != "" {
			t.Errorf("the status %q is selected", b.field("status"))
		}
		b.press("Change the status", http.StatusForbidden, "status", "deprecated", "message",
			"Use 1.1.0 <i>instead</i>.")
		b.verify(e, ada, http.StatusOK)
		b.wantPath("/console/own/com.example/weather/status")
		if b.field("version") != "1.0.0" || b.field("status") != "deprecated" ||
			b.field("message") != "Use 1.1.0 <i>instead</i>." {
			t.Errorf("the form has %q, %q, %q", b.field("version"), b.field("status"), b.field("message"))
		}
		b.press("Change the status", http.StatusOK)
		b.wantText("The status is changed.", "1.0.0 deprecated")
		b.open("/console/own/com.example/weather?version=1.0.0", http.StatusOK)
		b.press("Change the status", http.StatusUnprocessableEntity, "status", "active", "message", "x")
		b.wantText("Message is allowed with deprecated and deleted only")
		b.open("/console/own/com.example/weather", http.StatusOK)
		b.follow("Change all versions", http.StatusOK)
		b.press("Change the status", http.StatusUnprocessableEntity, "status", "deleted", "message", "Gone.")
		b.wantText("Say that you are sure", "Yes, change every version")
		b.press("Change the status", http.StatusOK, "sure", "yes")
		b.open("/console/servers/com.example/weather/versions/1.0.0", http.StatusOK)
		b.wantText("Deleted", "Gone.")
		b.wantNoText("Install")
		b.open("/console/", http.StatusOK)
		b.wantNoText("com.example/weather")
	})
}
