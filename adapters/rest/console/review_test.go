package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestReview submits a document, which a second person rejects and then approves.
func TestReview(t *testing.T) {
	e := newEnvironment(t)
	notices := filepath.Join(e.Dir, "notices")
	s := run(t, e, "REGISTRY_REVIEW=on", "NOTICE_LOG_FILE="+notices, "PUBLIC_URL=https://registry.example.com")
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*", "review *")
	bea := e.NewPerson(t, "bea@example.com", "review com.example/*")
	publishVersion(t, s, ada, "com.example/weather", "1.0.0")
	author, b := newBrowser(t, s), newBrowser(t, s)
	author.signIn(ada)
	author.Follow("My servers", http.StatusOK).WantText("Waiting", "com.example/weather 1.0.0").WantNoText("Decided")
	author.Follow("com.example/weather", http.StatusOK)
	author.WantText("You have submitted this document, so somebody else decides about it.")

	b.signIn(bea)
	b.WantText("Inbox 1 waiting")
	b.Follow("Inbox 1 waiting", http.StatusOK).WantText("com.example/weather 1.0.0 New server", "by ada@example.com")
	for query, found := range map[string]bool{
		"submitter=ada@example.com&namespace=com.example&kind=new-server": true, "submitter=bea@example.com": false,
		"submitter=x": false, "namespace=com.exampl": false, "kind=new-version": false, "age=1": false,
	} {
		b.Open("/console/reviews?"+query, http.StatusOK)
		if strings.Contains(b.Text(), "com.example/weather") != found {
			t.Errorf("filtered by %s: %s", query, b.Text())
		}
	}
	b.Open("/console/reviews?namespace=a*", http.StatusBadRequest)
	b.Open("/console/reviews", http.StatusOK)
	b.Follow("com.example/weather", http.StatusOK).WantText("Pending", "Submitted by ada@example.com")
	b.Press("Reject", http.StatusForbidden, "comment", "Say who <b>runs</b> it.")
	b.verify(e, bea, http.StatusOK).WantFields("comment", "Say who <b>runs</b> it.").WantText("Nothing is lost, and nothing is done yet")
	b.Press("Reject", http.StatusOK)
	b.WantText("Rejected. The submitter is told why.", "Decided by bea@example.com", "Say who <b>runs</b> it.")
	awaitNotice(t, notices, "ada@example.com", "rejected", "com.example/weather", "https://registry.example.com/console/reviews/")
	author.Open("/console/own", http.StatusOK)
	author.WantText("Decided", "com.example/weather 1.0.0 Rejected by bea@example.com", "Say who <b>runs</b> it.")
	author.Follow("Publish again", http.StatusOK)
	if text := author.Field("document"); !strings.Contains(text, "\n  \"name\": \"com.example/weather\"") {
		t.Errorf("the form has the document %q", text)
	}
	publishVersion(t, s, ada, "com.example/weather", "1.0.0")
	b.Open("/console/reviews", http.StatusOK)
	b.Follow("com.example/weather", http.StatusOK)
	b.Press("Approve", http.StatusOK).WantText("Approved. The document is listed now.")
	wantVersion(t, s, "com.example/weather", "1.0.0", http.StatusOK)
	b.Open("/console/", http.StatusOK).WantText("approved by bea")
	newBrowser(t, s).Open("/console/", http.StatusOK).WantText("com.example/weather").WantNoText("approved by")
	awaitNotice(t, notices, "ada@example.com", "approved", "com.example/weather")
	olga := newVerified(t, e, s, "olga@example.com", operate)
	olga.Open("/console/operator/log?server=com.example/weather", http.StatusOK)
	olga.WantText("rejected com.example/weather 1.0.0", "approved com.example/weather 1.0.0")

	publishVersion(t, s, ada, "com.example/weather", "1.1.0")
	for _, sees := range []*browser{author, b} {
		sees.Open("/console/servers/com.example/weather", http.StatusOK).WantText("Waiting for review: 1.1.0").WantNoText("without review")
	}
	stranger := newBrowser(t, s)
	stranger.Open("/console/servers/com.example/weather", http.StatusOK).WantNoText("Waiting", "1.1.0")
	stranger.signIn(e.NewPerson(t, "eve@example.com", "publish com.example/*"))
	stranger.Open("/console/servers/com.example/weather", http.StatusOK).WantNoText("Waiting", "1.1.0")
	b.Follow("1.1.0", http.StatusOK)
	b.WantText("What changes Changed property version 1.0.0 → 1.1.0", `- "version": " 1.0.0"`, `+ "version": " 1.1.0"`,
		"ada@example.com in this registry: 1 approved 1 pending 1 rejected")
	b.Follow("The listed version", http.StatusOK).WantPath("/console/servers/com.example/weather")
	b.Open("/console/reviews?state=rejected", http.StatusOK)
	b.WantText("com.example/weather 1.0.0", "by bea@example.com Say who <b>runs</b> it.")
	b.Open("/console/reviews?state=nonsense", http.StatusBadRequest)
	b.Open("/console/reviews/00000000-0000-4000-8000-000000000000", http.StatusNotFound)
}

// awaitNotice waits for a notice in a file that has all the texts.
func awaitNotice(t *testing.T, file string, texts ...string) {
	t.Helper()
	await.Until(t, "the notice of "+texts[0], func() bool {
		content, _ := os.ReadFile(file) // there is none before the first notice
		for line := range strings.Lines(string(content)) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return true
			}
		}
		return false
	})
}

// TestReviewShowsDanger checks that what a publisher puts into _meta hides no other change, and
// that a document that does not fit on the page cannot be approved there.
func TestReviewShowsDanger(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on")
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
	b := openVerified(t, e, s, bea)
	openReview := func() {
		b.Open("/console/reviews", http.StatusOK)
		b.Follow("com.example/weather", http.StatusOK)
	}
	submit("com.example/weather", "1.0.0", "serve", 1, 250)
	openReview()
	b.Press("Approve", http.StatusOK)
	submit("com.example/weather", "1.0.1", "evil-pkg", 1, 250)
	openReview()
	text := b.Text()
	b.WantText(`packages[0].runtimeArguments[0]: "evil-pkg" comes before the package good-pkg, so the command may start something else`)
	b.WantText(`Changed argument "serve" → "evil-pkg"`)
	for _, shown := range []string{`Changed argument "serve"`, `+ "value": " evil-pkg"`} {
		if at := strings.Index(text, shown); at < 0 || at > strings.Index(text, "Changes in _meta") {
			t.Errorf("%s does not come before the changes in _meta", shown)
		}
	}
	if strings.Index(text, "Show _meta") < strings.LastIndex(text, `"evil-pkg"`) {
		t.Error("the page does not have the document in its order")
	}
	b.Press("Approve", http.StatusOK)
	submit("com.example/weather", "1.1.0", "a", 2_000, 0)
	openReview()
	b.Press("Approve", http.StatusOK) // the whole of a long document is on the page
	submit("com.example/weather", "1.1.1", "b", 16_000, 0)
	openReview()
	b.WantText("it cannot be approved here")
	if body := b.Page.Body; strings.Contains(body, ">Approve<") || !strings.Contains(body, ">Reject<") {
		t.Error("a document that is not on the page can be approved")
	}
	b.Press("Reject", http.StatusOK, "comment", "Too long.")
}

// TestQuarantine puts a server in quarantine and releases it.
func TestQuarantine(t *testing.T) {
	e, s := start(t)
	ada := e.NewWriter(t, s, "ada@example.com", "publish *")
	publishVersion(t, s, ada, "com.example/weather", "1.0.0")
	bea := e.NewPerson(t, "bea@example.com", "review *")
	b := signedIn(t, s, bea)
	b.Open("/console/servers/com.example/weather", http.StatusOK).WantText("by ada@example.com without review")
	b.Follow("Put in quarantine", http.StatusOK).WantFields("name", "com.example/weather", "version", "1.0.0")
	b.Press("Put in quarantine", http.StatusForbidden, "version", "", "reason", "It sends data elsewhere.")
	b.verify(e, bea, http.StatusOK)
	b.Press("Put in quarantine", http.StatusOK)
	b.WantText("It is in quarantine, and listed nowhere.", "It sends data elsewhere.", "bea@example.com")
	wantVersion(t, s, "com.example/weather", "1.0.0", http.StatusNotFound)
	b.Open("/console/quarantine", http.StatusOK)
	b.Press("Release com.example/weather", http.StatusOK)
	b.WantText("It is released, and listed as before.", "Nothing is in quarantine.")
	wantVersion(t, s, "com.example/weather", "1.0.0", http.StatusOK)
}

// TestQuarantineOfOneVersion checks that the pages say what stays listed with the same remote, and
// what is in quarantine and why, to reviewers, publishers and everybody.
func TestQuarantineOfOneVersion(t *testing.T) {
	e, s := start(t)
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
	b.Open("/console/servers/com.example/weather/versions/1.2.0", http.StatusOK)
	b.Follow("Put in quarantine", http.StatusOK).WantNoText("the same stays listed")
	b.Open("/console/quarantine?name=com.example/weather&version=1.1.0", http.StatusOK)
	b.WantText("Without 1.1.0 the same stays listed, by other versions of com.example/weather: 1.0.0 https://a.example/mcp")
	b.Press("Put in quarantine", http.StatusForbidden, "reason", "It sends data elsewhere.")
	b.verify(e, bea, http.StatusOK).WantText("Without 1.1.0 the same stays listed")
	b.Press("Put in quarantine", http.StatusOK)
	b.WantText("It is in quarantine, and listed nowhere.",
		"1.1.0 is hidden, but the same stays listed, by other versions of com.example/weather: 1.0.0 https://a.example/mcp")
	for _, sees := range []*browser{b, author, anybody} {
		sees.Open("/console/servers/com.example/weather", http.StatusOK).WantText("1.1.0", "Quarantined")
		sees.Open("/console/servers/com.example/weather/versions/1.1.0", http.StatusOK)
		sees.WantText("Quarantined", "It sends data elsewhere.").WantNoText("Install")
	}
	author.Open("/console/own", http.StatusOK)
	author.WantText("com.example/weather Version 1.2.0", "1.1.0 is in quarantine since", "It sends data elsewhere.")
	author.Open("/console/own/com.example/weather", http.StatusOK)
	author.WantText("1.1.0 is in quarantine since", "cannot be changed until a reviewer releases it")

	b.Open("/console/quarantine?done=hidden&name=com.example/weather&version=1.1.0&reason=It+sends+data+elsewhere.",
		http.StatusOK)
	b.Follow("Take the whole server", http.StatusOK)
	if b.Field("name") != "com.example/weather" || b.Field("version") != "" || b.Field("reason") == "" {
		t.Errorf("the form has %q, %q, %q", b.Field("name"), b.Field("version"), b.Field("reason"))
	}
	b.Press("Put in quarantine", http.StatusOK).WantNoText("the same stays listed")
	b.Open("/console/quarantine", http.StatusOK)
	b.Press("Release com.example/weather 1.1.0", http.StatusOK).WantText("It is released").WantNoText("Nothing is in quarantine.")
	author.Open("/console/own", http.StatusOK)
	author.WantText("com.example/weather Quarantined", "The whole server is in quarantine since")
	anybody.Open("/console/?status=deleted", http.StatusOK).WantText("com.example/weather Quarantined")
}

// TestSelectedReviews approves and rejects several documents at once, each as if it were alone. Only what is harmless
// is approved so: texts, and versions of packages.
func TestSelectedReviews(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on")
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
	bea := e.NewWriter(t, s, "bea@example.com", "publish com.example/*", "review *")
	publishVersion(t, s, ada, "com.example/b", "1.0.0")
	e.RunCommand(t, "", "review", "approve", "--all-pending")
	publishVersion(t, s, ada, "com.example/b", "1.1.0")
	for name, p := range map[string]*fixture.Person{"a": ada, "c": ada, "own": bea} {
		publishVersion(t, s, p, "com.example/"+name, "1.0.0")
	}
	b := openVerified(t, e, s, bea)
	b.Open("/console/reviews", http.StatusOK).WantText("com.example/c 1.0.0 New server New host https://com.example.c",
		"com.example/b 1.1.0 New version Changed property version")
	ids := map[string]string{}
	for _, n := range webtest.All(b.Page.Root, func(n *html.Node) bool { return webtest.Attribute(n, "type") == "checkbox" }) {
		ids[strings.Fields(webtest.Attribute(n, "aria-label"))[1]] = webtest.Attribute(n, "value")
	}
	for _, c := range []struct {
		decision, comment string
		names             []string
		status            int
		text              string
	}{
		{"approve", "", nil, http.StatusUnprocessableEntity, "Select 1 to 30 reviews."},
		{"reject", "", []string{"a"}, http.StatusUnprocessableEntity, "Comment is required"},
		{"reject", "Not ours.", []string{"a"}, http.StatusOK, "Rejected. The submitters are told why."},
		{"approve", "", []string{"c"}, http.StatusUnprocessableEntity, "new host is not approved together with others"},
		{"approve", "", []string{"b", "own"}, http.StatusUnprocessableEntity, "1 of 2 were refused"}, // not the own one
	} {
		form := url.Values{"decision": {c.decision}, "comment": {c.comment}}
		for _, name := range c.names {
			form.Add("ids", ids["com.example/"+name])
		}
		b.Submit("/console/reviews", c.status, form).WantText(c.text)
	}
	b.WantText("The others are decided: com.example/b 1.1.0")
	for name, want := range map[string]int{
		"a/1.0.0": http.StatusNotFound, "b/1.1.0": http.StatusOK, "c/1.0.0": http.StatusNotFound, "own/1.0.0": http.StatusNotFound,
	} {
		name, version, _ := strings.Cut(name, "/")
		wantVersion(t, s, "com.example/"+name, version, want)
	}
	form := url.Values{"decision": {"approve"}, "ids": {ids["com.example/own"]}}
	b.Send(webtest.FromElsewhere(b.Form("/console/reviews", form)), http.StatusForbidden)
}

// TestReviewsFollow checks that after a decision the next review follows, the dangerous first, until none waits; and
// that a document that comes again shows the rejection before it, and what differs since.
func TestReviewsFollow(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on")
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
	publishVersion(t, s, ada, "com.example/text", "1.0.0")
	e.RunCommand(t, "", "review", "approve", "--all-pending")
	publishVersion(t, s, ada, "com.example/text", "1.1.0") // the oldest, and harmless
	for _, name := range []string{"com.example/one", "com.example/two"} {
		publishVersion(t, s, ada, name, "1.0.0")
	}
	b := newVerified(t, e, s, "bea@example.com", "review *")
	b.Open("/console/reviews", http.StatusOK)
	b.Follow("com.example/one", http.StatusOK).WantText("3 waiting")
	b.Press("Reject", http.StatusOK, "comment", "Which host is that?")
	b.WantText("Rejected. The submitter is told why. com.example/one 1.0.0", "com.example/two 1.0.0 Pending", "2 waiting")
	b.Press("Approve", http.StatusOK).WantNoText("No other review").WantText("Approved. The document is listed now. com.example/two 1.0.0", "com.example/text 1.1.0 Pending")
	b.Press("Approve", http.StatusOK).WantText("com.example/text 1.1.0 Approved")
	b.Open("/console/reviews?done=approved&of="+strings.TrimPrefix(b.Page.URL.Path, "/console/reviews/")+",none", http.StatusOK)
	b.WantText("The documents are listed now. com.example/text 1.1.0", "Nothing waits for you.")
	b.Open("/console/reviews?state=rejected", http.StatusOK)
	rejected := b.Follow("com.example/one", http.StatusOK).Page.URL.Path
	b.Open("/console/reviews?done=approved&of="+strings.TrimPrefix(rejected, "/console/reviews/"), http.StatusOK)
	b.WantNoText("com.example/one") // an address cannot say what was not decided

	d := fixture.NewServerDocument("com.example/one", "1.0.0")
	d["description"] = "Says which host it is"
	ada.PostJSON(t, s, "/v0.1/publish", d).WantStatus(t, http.StatusOK)
	b.Open("/console/reviews", http.StatusOK)
	b.Follow("com.example/one", http.StatusOK)
	b.WantText("What came before", "by bea@example.com: “Which host is that?”", "Since then:", "Changed property description")
}

// TestRequestChanges follows what changes are requested of, until it is approved.
func TestRequestChanges(t *testing.T) {
	e := newEnvironment(t)
	notices := filepath.Join(e.Dir, "notices")
	s := run(t, e, "REGISTRY_REVIEW=on", "NOTICE_LOG_FILE="+notices)
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
	publishVersion(t, s, ada, "com.example/one", "1.0.0")
	publishVersion(t, s, ada, "com.example/two", "1.0.0")
	b := newVerified(t, e, s, "bea@example.com", "review *")
	b.Open("/console/reviews", http.StatusOK)
	b.Follow("com.example/one", http.StatusOK)
	b.Press("Request changes", http.StatusUnprocessableEntity).WantText("Comment is filled in from what is dangerous")
	b.Press("Request changes", http.StatusOK, "comment", "Say <b>what</b> it does.")
	b.WantText("Changes requested. The submitter is told which. com.example/one 1.0.0", "com.example/two 1.0.0 Pending")
	wantVersion(t, s, "com.example/one", "1.0.0", http.StatusNotFound)
	b.Open("/console/reviews?state=changes_requested", http.StatusOK).WantText("com.example/one 1.0.0", "Say <b>what</b> it does.")
	awaitNotice(t, notices, "ada@example.com", "requests changes", "com.example/one")

	author := newBrowser(t, s)
	author.signIn(ada)
	author.Follow("My servers", http.StatusOK).WantText("com.example/one 1.0.0 Changes requested by bea@example.com", "Say <b>what</b> it does.")
	author.Follow("Publish again", http.StatusOK).WantText("Changes requested: “Say <b>what</b> it does.”")
	if text := author.Field("document"); !strings.Contains(text, "\n  \"name\": \"com.example/one\"") {
		t.Errorf("the form has the document %q", text)
	}
	d := fixture.NewServerDocument("com.example/one", "1.0.0")
	d["description"] = "It says what it does"
	ada.PostJSON(t, s, "/v0.1/publish", d).WantStatus(t, http.StatusOK)
	for n := range 25 { // what is superseded hides no past
		d["description"] = fmt.Sprint("It says what it does ", n)
		ada.PostJSON(t, s, "/v0.1/publish", d).WantStatus(t, http.StatusOK)
	}
	b.Open("/console/reviews", http.StatusOK)
	b.Follow("com.example/one", http.StatusOK)
	b.WantText("What came before Changes requested", "by bea@example.com: “Say <b>what</b> it does.”", "Since then:", "Changed property description")
	b.Press("Approve", http.StatusOK)
	wantVersion(t, s, "com.example/one", "1.0.0", http.StatusOK)
	olga := newVerified(t, e, s, "olga@example.com", operate)
	olga.Open("/console/operator/log?server=com.example/one", http.StatusOK).WantText("requested changes of com.example/one 1.0.0")
}

// TestTwoReviewers approves what is dangerous by two people.
func TestTwoReviewers(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on", "REVIEW_DANGEROUS=two")
	e.WantAuditEvents(t)
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
	publishVersion(t, s, ada, "com.example/one", "1.0.0")
	publishVersion(t, s, ada, "com.example/two", "1.0.0")
	b, c := newVerified(t, e, s, "bea@example.com", "review *"), newVerified(t, e, s, "cem@example.com", "review com.example/*")
	b.Open("/console/reviews", http.StatusOK)
	b.Follow("com.example/one", http.StatusOK).WantText("It is dangerous, so two reviewers approve it.",
		"Reviewers of *: bea@example.com", "Reviewers of com.example/*: cem@example.com")
	one := b.Page.URL.Path
	b.Press("Approve", http.StatusOK).WantText("Your approval is the first of two.", "com.example/one 1.0.0", "com.example/two 1.0.0 Pending")
	wantVersion(t, s, "com.example/one", "1.0.0", http.StatusNotFound)
	b.Open(one, http.StatusOK).WantText("1 of 2 approvals: bea@example.com", "Request changes").WantNoText("Approve Request changes")
	b.Open("/console/reviews", http.StatusOK).WantText("New server, 1 of 2 approvals: bea@example.com")
	c.Open("/console/inbox", http.StatusOK).WantText("New server, by ada@example.com. It needs a second approval")
	b.Open("/console/inbox", http.StatusOK).WantNoText("second approval")
	c.Open(one, http.StatusOK).WantText("1 of 2 approvals: bea@example.com")
	c.Press("Approve", http.StatusOK).WantText("Approved. The document is listed now. com.example/one 1.0.0")
	c.Open(one, http.StatusOK).WantText("Decided by bea@example.com and cem@example.com")
	wantVersion(t, s, "com.example/one", "1.0.0", http.StatusOK)
	olga := newVerified(t, e, s, "olga@example.com", operate)
	olga.Open("/console/operator/log?server=com.example/one", http.StatusOK)
	olga.WantText("approved com.example/one 1.0.0 as the first of two")
}
