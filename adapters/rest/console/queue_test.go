package console_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestHarmlessTogether approves what is harmless by one button, of the queue and of the Inbox. What came since, what is
// another document now, and what is dangerous stays, also if the form names it. The answer has the names.
func TestHarmlessTogether(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on")
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
	bea := e.NewWriter(t, s, "bea@example.com", "publish com.example/*", "review *")
	names := []string{"a", "b", "c", "d", "own"}
	for _, name := range names {
		publishVersion(t, s, ada, "com.example/"+name, "1.0.0")
	}
	e.RunCommand(t, "", "review", "approve", "--all-pending")
	for _, name := range names[:3] {
		publishVersion(t, s, ada, "com.example/"+name, "1.1.0")
	}
	publishVersion(t, s, bea, "com.example/own", "1.1.0")
	publishVersion(t, s, ada, "com.example/new", "1.0.0")
	b := openVerified(t, e, s, bea)
	b.Open("/console/inbox", http.StatusOK).WantText("Approve 3 harmless reviews", "Open the first review")
	b.Open("/console/reviews", http.StatusOK).WantText("Approve 3 harmless reviews")
	shown := url.Values{"decision": {"approve"}}
	for _, n := range webtest.All(b.Page.Root, func(n *html.Node) bool {
		return webtest.Attribute(n, "name") == "ids" && webtest.Attribute(n, "type") == "hidden"
	}) {
		shown.Add("ids", webtest.Attribute(n, "value"))
	}
	publishVersion(t, s, ada, "com.example/d", "1.1.0") // it came since
	ada.PostJSON(t, s, "/v0.1/publish", fixture.WithProperty(fixture.NewServerDocument("com.example/a", "1.1.0"), "description", "Another one")).
		WantStatus(t, http.StatusOK)
	b.Submit("/console/reviews", http.StatusUnprocessableEntity, shown)
	b.WantText("1 of 3 were refused: the review is not pending any more: it is superseded", "The others are decided: com.example/b 1.1.0, com.example/c 1.1.0")
	b.Open("/console/inbox", http.StatusOK)
	b.Press("Approve 2 harmless reviews", http.StatusOK)
	b.WantText("Approved. The documents are listed now. com.example/d 1.1.0, com.example/a 1.1.0", "com.example/new 1.0.0 Pending", "1 of 1 waiting")
	dangerous := url.Values{"decision": {"approve"}, "ids": {strings.TrimPrefix(b.Page.URL.Path, "/console/reviews/")}, "stay": {"1"}}
	b.Submit("/console/reviews", http.StatusUnprocessableEntity, dangerous).WantText("new host is not approved together with others")
	b.Open("/console/reviews", http.StatusOK).WantText("Open the first review").WantNoText("harmless")
	b.Follow("Open the first review", http.StatusOK)
	b.Press("Reject", http.StatusUnprocessableEntity).WantText("Comment is filled in from what is dangerous").
		WantFields("comment", "This is dangerous: New host https://com.example.new.")
	b.Press("Reject", http.StatusOK).WantText("Rejected. The submitter is told why. com.example/new 1.0.0. No other review waits for you.")

	for i := range 2 {
		publishVersion(t, s, ada, "com.example/b", "1.2."+strconv.Itoa(i))
	}
	b.Open("/console/reviews", http.StatusOK)
	b.Press("Approve com.example/b 1.2.0", http.StatusOK).WantPath("/console/reviews?done=approved&of=" + b.Page.URL.Query().Get("of"))
	b.WantText("The documents are listed now. com.example/b 1.2.0")
	if focused := webtest.Find(b.Page.Root, func(n *html.Node) bool { return n.Data == "a" && webtest.HasAttribute(n, "autofocus") }); focused == nil ||
		webtest.TextOf(focused) != "com.example/b" {
		t.Error("the next row has not the focus")
	}
	wantVersion(t, s, "com.example/own", "1.1.0", http.StatusNotFound)
}
