package console_test

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"
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
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com", "publish com.example/*", "edit com.example/*")
	b := signedIn(t, s, ada)
	b.Follow("Publish", http.StatusOK)
	many := `{"remotes":[` + strings.Repeat(`{"type":"x"},`, 3000) + `1]}`
	b.Press("Publish", http.StatusUnprocessableEntity, "document", many)
	b.WantText("Line 1, column 25", "more, which you see after you have mended these.")
	if size := len(b.Page.Body) - len(html.EscapeString(many)); size > largePage {
		t.Errorf("the page has %d bytes around the document", size)
	}
	b.Press("Publish", http.StatusUnprocessableEntity, "document", documentWithMistakes)
	b.WantText("Line 3, column 11: name", "Line 7, column 41: remotes[0].url",
		"Line 8, column 5: remotes[1].url is required", "The document breaks 3 rules")
	b.Press("Check only", http.StatusOK, "document", goodDocument)
	b.WantText("The document of com.example/weather 1.0.0 keeps all rules. Nothing that was checked prevents the publication.")
	wantVersion(t, s, "com.example/weather", "1.0.0", http.StatusNotFound)
	b.Press("Publish", http.StatusForbidden)
	b.WantText("To go on with Publish, enter a one-time code. What you typed is kept.")
	b.verify(e, ada, http.StatusOK).WantPath("/console/publish").WantFields("document", goodDocument)
	b.Press("Publish", http.StatusOK).WantPath("/console/servers/com.example/weather/versions/1.0.0?done=published").WantText("Published. Programs see it now.")
	b.WantText("<script>alert(1)</script>", "Weather for <b>everybody</b>", "Latest")
	for _, markup := range []string{"<script>alert", "<b>everybody"} {
		if strings.Contains(b.Page.Body, markup) {
			t.Errorf("the page has the published markup %s", markup)
		}
	}
	b.Open("/console/publish", http.StatusOK)
	b.Press("Publish", http.StatusForbidden, "document",
		strings.Replace(goodDocument, "com.example/", "org.example/", 1))
	b.WantText("You have no publish permission for org.example/weather.", "You may publish com.example/*")
	if !strings.Contains(b.Field("document"), "org.example/weather") {
		t.Errorf("after the refusal the form has the document %q", b.Field("document"))
	}
	b.Press("Check only", http.StatusOK)
	b.WantText("But it cannot be published as it is.", "Refused your permission: You have no publish permission",
		"Passed remote addresses")
	b.Press("Check only", http.StatusOK, "document", goodDocument)
	b.WantText("Refused the version is new: Version 1.0.0 of com.example/weather already exists")
	b.Press("Check only", http.StatusOK, "document", strings.Replace(goodDocument, `"version": "1.0.0"`, `"version": "1.2.0"`, 1))
	b.WantText("Nothing that was checked prevents the publication.", "Passed your permission")
	b.Follow("Begin with a template", http.StatusOK)
	if !strings.Contains(b.Field("document"), `"name": "com.example/my-server"`) {
		t.Errorf("the template is %q", b.Field("document"))
	}
}

// TestPublishAFile checks that a chosen file takes the place of the text.
func TestPublishAFile(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com", "publish *")
	b := openVerified(t, e, s, ada)
	b.Open("/console/publish", http.StatusOK)
	b.Press("Publish", http.StatusOK, "file", goodDocument)
	b.WantPath("/console/servers/com.example/weather/versions/1.0.0?done=published").WantText("Published. Programs see it now.")
	b.Open("/console/publish", http.StatusOK)
	r := b.Submission("Publish", "document", strings.Repeat("x", 1<<20))
	b.Send(r, http.StatusRequestEntityTooLarge).WantText("Not possible", "Body is larger than 1048576 bytes.")
}

// TestOwnServers checks the list of the person's servers, and changes of status.
func TestOwnServers(t *testing.T) {
	e, s := start(t)
	root := e.NewWriter(t, s, "root@example.com", "publish *")
	for _, name := range []string{"com.example/weather", "com.example/news", "org.example/other"} {
		publishVersion(t, s, root, name, "1.0.0")
	}
	publishVersion(t, s, root, "com.example/weather", "1.1.0")
	ada := e.NewPerson(t, "ada@example.com", "publish com.example/*", "edit com.example/weather")
	nobody := e.NewPerson(t, "nobody@example.com")
	b := signedIn(t, s, nobody)
	b.Follow("My servers", http.StatusOK).WantText("None is published yet.")
	b.Press("Sign out", http.StatusOK)
	b.signIn(ada)
	b.Follow("My servers", http.StatusOK).WantText("com.example/news", "com.example/weather")
	b.WantNoText("org.example/other")
	b.Follow("com.example/weather", http.StatusOK).WantNoText("Change the status")
	b.Open("/console/own/com.example/weather?version=1.0.0", http.StatusOK).WantText("Change 1.0.0, which is active")
	b.WantFields("status", "")
	b.Press("Change the status", http.StatusForbidden, "status", "deprecated", "message", "Use 1.1.0 <i>instead</i>.")
	b.verify(e, ada, http.StatusOK).WantPath("/console/own/com.example/weather/status")
	b.WantFields("version", "1.0.0", "status", "deprecated", "message", "Use 1.1.0 <i>instead</i>.")
	b.Press("Change the status", http.StatusOK).WantText("The status is changed.", "1.0.0 deprecated")
	b.Open("/console/own/com.example/weather?version=1.0.0", http.StatusOK)
	b.Press("Change the status", http.StatusUnprocessableEntity, "status", "active", "message", "x")
	b.WantText("Message is allowed with deprecated and deleted only")
	b.Press("Change the status", http.StatusUnprocessableEntity, "status", "deleted", "message", "Gone.").WantText("Say that you are sure")
	b.Open("/console/own/com.example/weather", http.StatusOK)
	b.Follow("Change all versions", http.StatusOK)
	for _, status := range []string{"deprecated", "deleted"} {
		b.Press("Change the status", http.StatusUnprocessableEntity, "status", status, "message", "Gone.")
		b.WantText("Say that you are sure", "Yes, change every version")
	}
	b.Press("Change the status", http.StatusOK, "sure", "yes")
	b.Open("/console/servers/com.example/weather/versions/1.0.0", http.StatusOK).WantText("Deleted", "Gone.")
	b.WantNoText("Install")
	b.Open("/console/", http.StatusOK).WantNoText("com.example/weather")
}
