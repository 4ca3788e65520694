package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
)

const (
	rightsPage   = "/console/rights"
	requestsPage = "/console/operator/requests"
)

// ask asks for a right in the form.
func (b *browser) ask(status int, action, resource, reason string) {
	b.T.Helper()
	b.Open(rightsPage+"?new=1", http.StatusOK)
	b.Press("Ask for it", status, "action", action, "resource", resource, "reason", reason)
}

// TestAskForRight sends what must not hold first: asking with a password alone, from another site, for too much; deciding
// without the right to, about the own request, with less trust, with more than was asked for, and twice. Then a request is
// granted with less, and one declined.
func TestAskForRight(t *testing.T) {
	e, s := start(t)
	e.WantAuditEvents(t)
	ada := e.NewPerson(t, "ada@example.com")
	b := signedIn(t, s, ada)
	b.Open("/console/publish", http.StatusOK).WantText("You may publish nothing yet")
	b.Follow("Ask for a namespace", http.StatusOK)
	good := []string{"action", "publish", "resource", "com.example/*", "reason", "We <i>draw</i> maps."}
	b.Press("Ask for it", http.StatusForbidden, good...) // a stolen password is not enough
	b.verify(e, ada, http.StatusOK)
	b.Open(rightsPage+"?new=1", http.StatusOK)
	b.Send(webtest.FromElsewhere(b.Submission("Ask for it", good...)), http.StatusForbidden)
	b.Open(rightsPage, http.StatusOK).WantText("You have asked for no right yet.")
	for _, wrong := range [][4]string{
		{"operate", "*", "x", "must be"}, {"publish", "com example", "x", "The pattern of servers"}, {"publish", "", "x", "must not be empty"},
		{"publish", "com.example/*", " ", "The reason is required"}, {"publish", "com.example/*", "a\x00b", "NUL"},
		{"review", "*", strings.Repeat("é", 501), "at most 500 characters"},
	} {
		b.Submit(rightsPage, http.StatusUnprocessableEntity, url.Values{
			"action": {wrong[0]}, "resource": {wrong[1]}, "reason": {wrong[2]},
		}).WantText(wrong[3])
	}
	b.ask(http.StatusOK, "publish", "com.example/*", "We <i>draw</i> maps.")
	b.WantText("The request waits for an operator.", "publish com.example/* We <i>draw</i> maps.", "Waiting")
	b.ask(http.StatusUnprocessableEntity, "publish", "com.example/*", "Again")
	b.WantText("You have asked for this already, or have 5 requests that wait").WantFields("reason", "Again")

	olga := newVerified(t, e, s, "olga@example.com", operate)
	olga.Open("/console/inbox", http.StatusOK).WantText("Inbox 1 waiting", "ada@example.com Request for a right publish com.example/* We <i>draw</i> maps.")
	olga.Follow("ada@example.com", http.StatusOK)
	request := olga.Page.URL.Path
	grant := url.Values{"act": {"granted"}, "resource": {"com.example/*"}, "comment": {""}}
	b.Open(request, http.StatusForbidden).WantNoText("draw")
	b.Open(requestsPage, http.StatusForbidden)
	b.Submit(request, http.StatusForbidden, grant)
	newVerified(t, e, s, "pia@example.com", "publish *", "review *", "edit *").Submit(request, http.StatusForbidden, grant)
	newBrowser(t, s).Submit(request, http.StatusOK, grant).WantText("Sign in")
	weak := signedIn(t, s, e.NewPerson(t, "uma@example.com", operate))
	weak.Open("/console/inbox", http.StatusOK).WantNoText("ada@example.com")
	weak.Submit(request, http.StatusForbidden, grant)
	olga.Send(webtest.FromElsewhere(olga.Submission("Grant it")), http.StatusForbidden)
	for _, none := range []string{"x", "%00", "0e1b8b7a-0000-4000-8000-000000000000"} {
		olga.Open(requestsPage+"/"+none, http.StatusNotFound)
		olga.Submit(requestsPage+"/"+none, http.StatusNotFound, grant)
	}
	for _, wide := range []string{"*", "com.*", "com.example*", "org.example/*", ""} {
		olga.Submit(request, http.StatusUnprocessableEntity, url.Values{"act": {"granted"}, "resource": {wide}}).WantText("The pattern of servers must")
	}
	olga.Submit(request, http.StatusUnprocessableEntity, url.Values{"act": {"declined"}, "comment": {" "}}).WantText("Comment is required: say why, for the person who asked.")
	olga.Submit(request, http.StatusUnprocessableEntity, url.Values{"act": {"x"}}).WantText("Choose to grant or to decline.")
	b.Open("/console/publish", http.StatusOK).WantText("You may publish nothing yet")

	olga.Open(request, http.StatusOK)
	olga.Press("Grant it", http.StatusOK, "resource", "com.example/maps*", "comment", "Maps only.").WantText("The grant is added.", "No request waits.")
	b.Open("/console/publish", http.StatusOK).WantText("You may publish com.example/maps*")
	b.Open(rightsPage, http.StatusOK).WantText("Granted com.example/maps* by olga@example.com", "“Maps only.”")
	b.Open("/console/home", http.StatusOK).WantText("What you have asked for publish com.example/maps* Granted “Maps only.” by olga@example.com")
	olga.Submit(request, http.StatusUnprocessableEntity, grant).WantText("Somebody has decided about this request already.")
	olga.Open("/console/operator/log?type=ACCOUNT_CHANGE", http.StatusOK)
	olga.WantText("ada@example.com asked for the grant publish over com.example/*: We <i>draw</i> maps.", "granted the request of ada@example.com to publish com.example/maps*: Maps only.")
	b.ask(http.StatusUnprocessableEntity, "publish", "com.example/maps-eu", "More")
	b.WantText("You may publish com.example/maps-eu already.")
	b.ask(http.StatusOK, "edit", "com.example/maps", "To mend it")
	olga.Open(requestsPage, http.StatusOK).Follow("ada@example.com", http.StatusOK)
	olga.Press("Decline it", http.StatusOK, "comment", "Publish it again.")
	b.Open("/console/home", http.StatusOK).WantText("edit com.example/maps Declined “Publish it again.” by olga@example.com")
}

// TestRightRequestsAreBounded checks what is broad, the number that waits, and hostile texts.
func TestRightRequestsAreBounded(t *testing.T) {
	e, s := start(t)
	b, olga := newVerified(t, e, s, "ada@example.com"), newVerified(t, e, s, "olga@example.com", operate)
	for _, r := range [][2]string{{"publish", "*"}, {"edit", "com.*"}, {"review", "com*"}, {"publish", "com.example.*"}} {
		b.ask(http.StatusOK, r[0], r[1], hostile)
	}
	b.ask(http.StatusOK, "edit", "com.example/a", hostile)
	b.ask(http.StatusUnprocessableEntity, "edit", "com.example/b", "One more")
	b.WantText("have 5 requests that wait")
	olga.Open(requestsPage, http.StatusOK)
	olga.WantText("publish * All servers", "edit com.* A whole top-level domain", "review com* A whole top-level domain").
		WantNoText("com.example.* A whole")
	olga.Follow("ada@example.com", http.StatusOK).WantText("publish * All servers")
	first := olga.Page.URL.Path
	olga.wantHarmless(requestsPage, first, "/console/inbox", "/console/home", "/console/operator/log")
	olga.Open(first, http.StatusOK)
	olga.Press("Decline it", http.StatusOK, "comment", hostile).WantText("The request is declined.")
	b.wantHarmless(rightsPage, "/console/home")
	olga.wantHarmless(first)
	b.ask(http.StatusOK, "edit", "com.example/b", "One more")

	olga.Open(requestsPage, http.StatusOK).Follow("ada@example.com", http.StatusOK)
	grant := olga.Submission("Grant it")
	e.RunCommand(t, "", "user", "disable", "--email", "ada@example.com")
	olga.Send(grant, http.StatusUnprocessableEntity).WantText("The person is disabled: enable the account first, or decline the request.")
	if held := e.RunCommand(t, "", "grant", "list"); strings.Contains(held, "com.") {
		t.Errorf("a disabled person got a grant: %s", held)
	}
	olga.Open(olga.Page.URL.Path, http.StatusOK).Press("Decline it", http.StatusOK, "comment", "Gone.")
}

// TestOwnRightRequest checks that no operator decides about the own request, and that of two at once one decides.
func TestOwnRightRequest(t *testing.T) {
	e, s := start(t)
	olga, oli := newVerified(t, e, s, "olga@example.com", operate), newVerified(t, e, s, "oli@example.com", operate)
	olga.ask(http.StatusOK, "publish", "com.example/*", "Mine")
	olga.Open("/console/inbox", http.StatusOK).WantText("Nothing waits for you")
	olga.Open(requestsPage, http.StatusOK).Follow("olga@example.com", http.StatusOK)
	olga.WantText("This is your own request: another operator decides about it.").WantNoText("Grant it")
	request := olga.Page.URL.Path
	for _, act := range []string{"granted", "declined"} {
		olga.Submit(request, http.StatusForbidden, url.Values{"act": {act}, "resource": {"com.example/*"}, "comment": {"x"}}).
			WantText("This is your own request: another operator decides about it.")
	}
	third := newVerified(t, e, s, "third@example.com", operate)
	var wg sync.WaitGroup
	won := make([]int, 2)
	for i, b := range []*browser{oli, third} {
		r := b.Request(http.MethodPost, request, []byte(url.Values{"act": {"granted"}, "resource": {"com.example/*"}}.Encode()), "application/x-www-form-urlencoded")
		wg.Go(func() { won[i] = b.Try(r) })
	}
	wg.Wait()
	if won[0]+won[1] != http.StatusOK+http.StatusUnprocessableEntity {
		t.Errorf("the two get %v", won)
	}
	if held := e.RunCommand(t, "", "grant", "list"); strings.Count(held, "com.example/*") != 1 {
		t.Errorf("the grants are %s", held)
	}
}
