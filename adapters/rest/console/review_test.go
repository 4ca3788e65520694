package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestReview submits a document, which a second person rejects and then approves.
func TestReview(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*", "review *")
		bea := e.NewPerson(t, "bea@example.com", "review com.example/*")
		submit := func(version string) {
			ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/weather", version)).WantStatus(t,
				http.StatusOK)
		}
		submit("1.0.0")
		author, b := newBrowser(t, s), newBrowser(t, s)
		author.signIn(ada)
		author.follow("My servers", http.StatusOK)
		author.wantText("Waiting", "com.example/weather 1.0.0")
		author.wantNoText("Decided")
		author.follow("com.example/weather", http.StatusOK)
		author.wantText("You have submitted this document, so somebody else decides about it.")

		b.signIn(bea)
		b.wantText("Reviews 1 waiting")
		b.follow("Reviews 1 waiting", http.StatusOK)
		b.wantText("com.example/weather 1.0.0 New server", "by ada@example.com")
		for query, found := range map[string]bool{
			"submitter=ada@example.com&namespace=com.example&kind=new-server": true, "submitter=bea@example.com": false,
			"submitter=x": false, "namespace=com.exampl": false, "kind=new-version": false, "age=1": false,
		} {
			b.open("/console/reviews?"+query, http.StatusOK)
			if strings.Contains(b.text(), "com.example/weather") != found {
				t.Errorf("filtered by %s: %s", query, b.text())
			}
		}
		b.open("/console/reviews?namespace=a*", http.StatusBadRequest)
		b.open("/console/reviews", http.StatusOK)
		b.follow("com.example/weather", http.StatusOK)
		b.wantText("Pending", "Submitted by ada@example.com")
		b.press("Reject", http.StatusForbidden, "comment", "Say who <b>runs</b> it.")
		b.verify(e, bea, http.StatusOK)
		if b.field("comment") != "Say who <b>runs</b> it." {
			t.Errorf("after the step-up the form has the comment %q", b.field("comment"))
		}
		b.press("Reject", http.StatusOK)
		b.wantText("Rejected. The submitter is told why.", "Decided by bea@example.com", "Say who <b>runs</b> it.")
		author.open("/console/own", http.StatusOK)
		author.wantText("Decided", "com.example/weather 1.0.0 Rejected by bea@example.com", "Say who <b>runs</b> it.")
		author.follow("Publish again", http.StatusOK)
		if text := author.field("document"); !strings.Contains(text, "\n  \"name\": \"com.example/weather\"") {
			t.Errorf("the form has the document %q", text)
		}
		submit("1.0.0")
		b.open("/console/reviews", http.StatusOK)
		b.follow("com.example/weather", http.StatusOK)
		b.press("Approve", http.StatusOK)
		b.wantText("Approved. The document is listed now.")
		apiclient.Call(t, "GET", s.API+"/v0.1/servers/com.example%2Fweather/versions/1.0.0", nil).WantStatus(t,
			http.StatusOK)

		submit("1.1.0")
		for _, sees := range []*browser{author, b} {
			sees.open("/console/servers/com.example/weather", http.StatusOK)
			sees.wantText("Waiting for review: 1.1.0")
		}
		stranger := newBrowser(t, s)
		stranger.open("/console/servers/com.example/weather", http.StatusOK)
		stranger.wantNoText("Waiting", "1.1.0")
		stranger.signIn(e.NewPerson(t, "eve@example.com", "publish com.example/*"))
		stranger.open("/console/servers/com.example/weather", http.StatusOK)
		stranger.wantNoText("Waiting", "1.1.0")
		b.follow("1.1.0", http.StatusOK)
		b.wantText("What changes Changed property version 1.0.0 → 1.1.0", `- "version": " 1.0.0"`, `+ "version": " 1.1.0"`,
			"ada@example.com in this registry: 1 approved 1 pending 1 rejected")
		b.follow("The listed version", http.StatusOK)
		b.wantPath("/console/servers/com.example/weather")
		b.open("/console/reviews?state=rejected", http.StatusOK)
		b.wantText("com.example/weather 1.0.0", "by bea@example.com Say who <b>runs</b> it.")
		b.open("/console/reviews?state=nonsense", http.StatusBadRequest)
		b.open("/console/reviews/00000000-0000-4000-8000-000000000000", http.StatusNotFound)
	})
}

// TestReviewShowsDanger checks that what a publisher puts into _meta hides no other change, and
// that a document that does not fit on the page cannot be approved there.
func TestReviewShowsDanger(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
		bea := e.NewPerson(t, "bea@example.com", "review com.example/*")
		submit := func(name, version, argument string, arguments, meta int) {
			doc := fixture.NewServerDocument(name, version)
			values := make(map[string]any, meta)
			for i := range meta {
				values[fmt.Sprintf("k%d", i)] = version
			}
			list := make([]any, arguments)
			for i := range list {
				list[i] = map[string]any{"type": "positional", "value": argument}
			}
			doc["_meta"] = map[string]any{"io.modelcontextprotocol.registry/publisher-provided": values}
			doc["packages"] = []any{map[string]any{
				"registryType": "npm", "identifier": "good-pkg", "version": version, "transport": map[string]any{
					"type": "stdio",
				}, "runtimeArguments": list,
			}}
			ada.PostJSON(t, s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
		}
		b := newBrowser(t, s)
		b.signIn(bea)
		b.open("/console/step-up", http.StatusOK)
		b.verify(e, bea, http.StatusOK)
		openReview := func() {
			b.open("/console/reviews", http.StatusOK)
			b.follow("com.example/weather", http.StatusOK)
		}
		submit("com.example/weather", "1.0.0", "serve", 1, 250)
		openReview()
		b.press("Approve", http.StatusOK)
		submit("com.example/weather", "1.0.1", "evil-pkg", 1, 250)
		openReview()
		text := b.text()
		b.wantText(`packages[0].runtimeArguments[0]: "evil-pkg" comes before the package good-pkg, so the command may start something else`)
		b.wantText(`Changed argument "serve" → "evil-pkg"`)
		for _, shown := range []string{`Changed argument "serve"`, `+ "value": " evil-pkg"`} {
			if at := strings.Index(text, shown); at < 0 || at > strings.Index(text, "Changes in _meta") {
				t.Errorf("%s does not come before the changes in _meta", shown)
			}
		}
		if strings.Index(text, "Show _meta") < strings.LastIndex(text, `"evil-pkg"`) {
			t.Error("the page does not have the document in its order")
		}
		b.press("Approve", http.StatusOK)
		submit("com.example/weather", "1.1.0", "a", 2_000, 0)
		openReview()
		b.press("Approve", http.StatusOK) // the whole of a long document is on the page
		submit("com.example/weather", "1.1.1", "b", 16_000, 0)
		openReview()
		b.wantText("it cannot be approved here")
		if body := b.page.body; strings.Contains(body, ">Approve<") || !strings.Contains(body, ">Reject<") {
			t.Error("a document that is not on the page can be approved")
		}
		b.press("Reject", http.StatusOK, "comment", "Too long.")
	})
}

// TestQuarantine puts a server in quarantine and releases it.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish *")
		ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/weather", "1.0.0")).WantStatus(t,
			http.StatusOK)
		bea := e.NewPerson(t, "bea@example.com", "review *")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.wantNoText("Quarantine")
		b.open("/console/quarantine", http.StatusForbidden)
		b.press("Sign out", http.StatusOK)
		b.signIn(bea)
		b.open("/console/servers/com.example/weather", http.StatusOK)
		b.follow("Put in quarantine", http.StatusOK)
		if b.field("name") != "com.example/weather" || b.field("version") != "1.0.0" {
			t.Errorf("the form has %q, %q", b.field("name"), b.field("version"))
		}
		b.press("Put in quarantine", http.StatusForbidden, "version", "", "reason", "It sends data elsewhere.")
		b.verify(e, bea, http.StatusOK)
		b.press("Put in quarantine", http.StatusOK)
		b.wantText("It is in quarantine, and listed nowhere.", "It sends data elsewhere.", "bea@example.com")
		apiclient.Call(t, "GET", s.API+"/v0.1/servers/com.example%2Fweather/versions/1.0.0", nil).WantStatus(t,
			http.StatusNotFound)
		b.press("Put in quarantine", http.StatusUnprocessableEntity, "name", "com.example/unknown", "reason", "x")
		b.wantText("Server: the registry has no such server.")
		b.press("Put in quarantine", http.StatusUnprocessableEntity, "name", "com.example/weather", "version", "9.9.9",
			"reason", "x")
		b.wantText("Version: the registry has no such version of this server.")
		b.press("Put in quarantine", http.StatusUnprocessableEntity, "name", "com.example/weather", "version", "1.0.0",
			"reason", " ")
		b.wantText("The reason must say why, in words.")
		b.open("/console/quarantine", http.StatusOK)
		b.press("Release com.example/weather", http.StatusOK)
		b.wantText("It is released, and listed as before.", "Nothing is in quarantine.")
		apiclient.Call(t, "GET", s.API+"/v0.1/servers/com.example%2Fweather/versions/1.0.0", nil).WantStatus(t,
			http.StatusOK)
	})
}

// TestQuarantineOfOneVersion checks that the pages say what stays listed with the same remote, and
// what is in quarantine and why, to reviewers, publishers and everybody.
func TestQuarantineOfOneVersion(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish *")
		bea := e.NewWriter(t, s, "bea@example.com", "review *")
		for version, host := range map[string]string{"1.0.0": "a", "1.1.0": "a", "1.2.0": "b"} {
			ada.PostJSON(t, s, "/v0.1/publish", fixture.WithProperty(fixture.NewServerDocument("com.example/weather", version),
				"remotes", []any{map[string]any{"type": "streamable-http", "url": "https://" + host + ".example/mcp"}})).WantStatus(t,
				http.StatusOK)
		}
		b, author, anybody := newBrowser(t, s), newBrowser(t, s), newBrowser(t, s)
		author.signIn(ada)
		b.signIn(bea)
		b.open("/console/servers/com.example/weather/versions/1.2.0", http.StatusOK)
		b.follow("Put in quarantine", http.StatusOK)
		b.wantNoText("the same stays listed")
		b.open("/console/quarantine?name=com.example/weather&version=1.1.0", http.StatusOK)
		b.wantText("Without 1.1.0 the same stays listed, by other versions of com.example/weather: 1.0.0 https://a.example/mcp")
		b.press("Put in quarantine", http.StatusForbidden, "reason", "It sends data elsewhere.")
		b.verify(e, bea, http.StatusOK)
		b.wantText("Without 1.1.0 the same stays listed")
		b.press("Put in quarantine", http.StatusOK)
		b.wantText("It is in quarantine, and listed nowhere.",
			"1.1.0 is hidden, but the same stays listed, by other versions of com.example/weather: 1.0.0 https://a.example/mcp")
		for _, sees := range []*browser{b, author, anybody} {
			sees.open("/console/servers/com.example/weather", http.StatusOK)
			sees.wantText("1.1.0", "Quarantined")
			sees.open("/console/servers/com.example/weather/versions/1.1.0", http.StatusOK)
			sees.wantText("Quarantined", "It sends data elsewhere.")
			sees.wantNoText("Install")
		}
		author.open("/console/own", http.StatusOK)
		author.wantText("com.example/weather Version 1.2.0", "1.1.0 is in quarantine since", "It sends data elsewhere.")
		author.open("/console/own/com.example/weather", http.StatusOK)
		author.wantText("1.1.0 is in quarantine since", "cannot be changed until a reviewer releases it")

		b.open("/console/quarantine?done=hidden&name=com.example/weather&version=1.1.0&reason=It+sends+data+elsewhere.",
			http.StatusOK)
		b.follow("Take the whole server", http.StatusOK)
		if b.field("name") != "com.example/weather" || b.field("version") != "" || b.field("reason") == "" {
			t.Errorf("the form has %q, %q, %q", b.field("name"), b.field("version"), b.field("reason"))
		}
		b.press("Put in quarantine", http.StatusOK)
		b.wantNoText("the same stays listed")
		author.open("/console/own", http.StatusOK)
		author.wantText("com.example/weather Quarantined", "The whole server is in quarantine since")
		anybody.open("/console/?status=deleted", http.StatusOK)
		anybody.wantText("com.example/weather Quarantined")
	})
}
