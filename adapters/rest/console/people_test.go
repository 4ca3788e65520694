package console_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// buttons returns the names of the acts of operators on an account that the page offers.
func (b *browser) buttons() (names []string) {
	for _, n := range webtest.All(b.Page.Root, func(n *html.Node) bool { return n.Data == "form" }) {
		if _, act, found := strings.Cut(webtest.Attribute(n, "action"), "@example.com/"); found && !strings.HasPrefix(act, "grants") {
			names = append(names, act)
		}
	}
	return names
}

// TestInvitations invites a person, whose link is shown once, finds the person by parts of the
// address and the name, and makes the link dead with another one.
func TestInvitations(t *testing.T) {
	e := newEnvironment(t)
	s := run(t, e, "NOTICE_LOG_FILE="+filepath.Join(e.Dir, "notices"), "OTP_EMAIL_PLUGIN=otp-log")
	b := newOperator(t, e, s)
	b.Follow("People", http.StatusOK)
	b.Submit("/console/operator/people", http.StatusOK, url.Values{
		"email": {"ada@example.com"}, "name": {"<b>Ada</b> Ünal"}, "actions": {"publish", "operate"}, "resource": {"com.example/*"},
	})
	b.WantText("The invitation of ada@example.com", "It was sent to ada@example.com.", "It is good once, until")
	link := b.Secret()
	b.Follow("ada@example.com", http.StatusOK)
	b.WantText("State Invited", "<b>Ada</b> Ünal", "publish com.example/*", "operate *", "Last sign-in never")
	b.WantNoText(link)
	if got := b.buttons(); !slices.Equal(got, []string{"disable", "invitation"}) {
		t.Errorf("an invited person has the acts %v", got)
	}
	for query, found := range map[string]bool{
		"?q=ADA%40": true, "?q=%C3%9Cnal": true, "?q=ada&state=invited": true, "?q=ada&state=active": false, "?q=eve": false,
	} {
		b.Open("/console/operator/people"+query, http.StatusOK)
		if got := strings.Contains(b.Text(), "ada@example.com"); got != found {
			t.Errorf("%s finds the person: %t", query, got)
		}
	}
	b.Open("/console/operator/people/ada@example.com", http.StatusOK)
	b.Press("New invitation", http.StatusOK)
	again := b.Secret()
	newBrowser(t, s).Open(pathOf(t, link), http.StatusNotFound)
	ada := newBrowser(t, s)
	ada.Open(pathOf(t, again), http.StatusOK)
	ada.Press("Set the password", http.StatusOK, "password", "Another-Horse-8-Battery")
	ada.WantPath("/console/invitation/welcome")
	ada.Follow("Set up an authenticator app", http.StatusOK)
	b.Open("/console/operator/people/ada@example.com", http.StatusOK)
	b.WantText("State Active", "Full trust", "Confirmed with a second factor")
	b.Open("/console/operator/people/bea@example.com", http.StatusOK).WantText("Confirmed with a code by e-mail")
}

// TestInviteMany invites people whose addresses are pasted: each has a line in the answer, links are shown once if
// there is no courier, and only what was not invited stays in the form.
func TestInviteMany(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	ada := newVerified(t, e, s, "ada@example.com", "publish com.example/*")
	b.Open("/console/operator/people?new=1", http.StatusOK)
	b.Press("Invite", http.StatusOK, "actions", "publish", "resource", "com.example/*", "email",
		"Ivy Ünal <ivy@example.com>, eve@example.com; eve@example.com\nada@example.com\nno <address>")
	b.WantText("2 of 4 invited.", "ivy@example.com invited, and not sent: hand over the link, which is shown once", "ada@example.com already there",
		"no <address> not invited: email must be an e-mail address", "/console/invitation?code=").WantFields("email", "no <address>")
	if got := strings.Count(b.Text(), "/console/invitation?code="); got != 2 {
		t.Errorf("%d links", got)
	}
	b.Open("/console/operator/people/ivy@example.com", http.StatusOK).WantText("Name Ivy Ünal", "publish com.example/*").
		WantNoText("code=")
	ada.Submit("/console/operator/people", http.StatusForbidden, url.Values{"email": {"x@example.com\nada@example.com"}})
	ada.WantNoText("already there")
	b.Open("/console/operator/people/x@example.com", http.StatusNotFound)
}

func pathOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	must.Succeed(t, err)
	return u.RequestURI()
}

// TestPersonForms changes a person: name, telephone, second factor, and the password by a link.
func TestPersonForms(t *testing.T) {
	e, s := start(t)
	ada := e.NewWriter(t, s, "ada@example.com")
	e.EnrolAuthenticator(t, ada)
	b := newOperator(t, e, s)
	b.Open("/console/operator/people/ada@example.com", http.StatusOK).WantText("Second factor authenticator app")
	b.Press("Save this person", http.StatusOK, "name", "Ada", "phone", "+4930123456")
	b.WantText("The changes are saved.", "Name Ada").WantFields("phone", "+4930123456")
	b.Press("Remove the second factor", http.StatusOK)
	b.WantText("The second factor is removed, and the sessions are ended.", "Second factor no",
		"not signed in anywhere")
	b.Press("Link for a new password", http.StatusOK).WantText("It is not sent: hand it over yourself")
	link := b.Secret()
	other := newBrowser(t, s)
	other.Open(pathOf(t, link), http.StatusOK)
	other.Press("Set the password", http.StatusOK, "newPassword", "Another-Horse-8-Battery")
	other.WantPath("/console/sign-in?set=1")
	newBrowser(t, s).Open(pathOf(t, link), http.StatusNotFound)
	b.Submit("/console/operator/people/nobody@example.com/reset-link", http.StatusNotFound, nil)
}

// leave stores that a company has refused the person since the last sign-in.
func leave(t *testing.T, e *fixture.Environment, email string) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO company_identities (id, user_id, issuer, subject, email, linked_at, last_used_at, groups_by)
			SELECT id, id, 'https://corp.example', email, email, created_at, created_at, 'corp' FROM accounts WHERE email = $1`,
		`UPDATE sessions SET ended_at = created_at, end_reason = 'ended_by_company'
			WHERE user_id = (SELECT id FROM accounts WHERE email = $1)`,
	} {
		_, err := e.OpenDatabase(t).ExecContext(t.Context(), statement, email)
		must.Succeed(t, err)
	}
}

// TestLeavers: a person whom the company lets in no more is marked in the list, on the page and in the Inbox until the
// account is disabled, and no other person is. Only an operator with full trust sees it.
func TestLeavers(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	newVerified(t, e, s, "ada@example.com", "publish com.example/*")
	newVerified(t, e, s, "dan@example.com")
	b.Open("/console/operator/people?state=left", http.StatusOK).WantText("No person matches.")
	leave(t, e, "ada@example.com")
	leave(t, e, "dan@example.com")
	weak := signedIn(t, s, e.NewPerson(t, "uma@example.com", operate))
	weak.Open("/console/inbox", http.StatusOK).WantNoText("Leaver", "ada@example.com")
	weak.Submit("/console/operator/people/ada@example.com/disable", http.StatusForbidden, nil)
	b.Open("/console/inbox", http.StatusOK).WantText("ada@example.com Leaver Left corp; still active, with 1 grant ",
		"dan@example.com Leaver Left corp; still active, with no grants")
	b.Element("span", "point danger")
	b.Follow("ada@example.com", http.StatusOK).WantText("State Active Left corp,", "The company does not let this person in any more")
	b.Open("/console/operator/people?state=left", http.StatusOK).WantText("ada@example.com", "dan@example.com", "Active Left corp,").WantNoText("uma@")
	b.Press("Disable ada@example.com", http.StatusOK).WantPath("/console/operator/people/ada@example.com?done=disabled")
	b.WantText("State Disabled").WantNoText("Left corp")
	b.Open("/console/operator/people?state=left", http.StatusOK).WantText("dan@example.com").WantNoText("ada@example.com")
	b.Open("/console/inbox", http.StatusOK).WantNoText("ada@example.com")
}

// TestLastOperator: the last person who can operate stays one, and the page says why.
func TestLastOperator(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	for _, button := range []string{"Lock", "Disable", "Remove the grant to operate *"} {
		b.Open("/console/operator/people/bea@example.com", http.StatusOK)
		b.Press(button, http.StatusConflict).WantText("There is a problem", "last")
		b.Follow("Cancel", http.StatusOK).WantPath("/console/operator/people/bea@example.com")
	}
	b.WantText("State Active", "operate *")
	b.Submit("/console/operator/people/bea@example.com/invitation", http.StatusConflict, nil)
	b.WantText("The account is active, not invited.")
}

// TestManagedTokens: tokens of views and service accounts that a file manages are made and removed by
// hand, because no file has tokens.
func TestManagedTokens(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	pages := map[string]url.Values{
		"views/data":            {"token": {"other"}},
		"service-accounts/data": {"name": {"other"}, "scopes": {"registry:read"}},
	}
	b.Open("/console/operator/views?new=1", http.StatusOK)
	b.Press("Add this view", http.StatusOK, "name", "data")
	b.Open("/console/operator/service-accounts?new=1", http.StatusOK)
	b.Press("Add this service account", http.StatusOK, "name", "data")
	removals := map[string]string{}
	for page, fields := range pages {
		b.Submit("/console/operator/"+page+"/tokens", http.StatusOK, fields)
		b.Open("/console/operator/"+page, http.StatusOK)
		form := webtest.Find(b.Page.Root, func(n *html.Node) bool {
			return n.Data == "form" && strings.Contains(webtest.Attribute(n, "action"), "/tokens/")
		})
		removals[page] = webtest.Attribute(form, "action")
	}
	e.RunCommand(t, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "data", "access": "token"}],
		"serviceAccounts": [{"name": "data"}]}`, "apply", "-f", "-", "--owner", "platform", "--adopt")
	for page, fields := range pages {
		b.Open("/console/operator/"+page, http.StatusOK).WantText("managed by platform", "other", "Make this token")
		b.WantNoText("Save this")
		fields.Set("name", "third")
		fields.Set("token", "third")
		b.Submit("/console/operator/"+page+"/tokens", http.StatusOK, fields)
		b.Submit(removals[page], http.StatusOK, nil)
		b.Open("/console/operator/"+page, http.StatusOK).WantText("third").WantNoText("other")
	}
	apiclient.Call(t, "GET", s.API+"/registries/data/v0.1/servers", nil).WantStatus(t, http.StatusUnauthorized)
}
