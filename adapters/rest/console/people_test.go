package console

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// submit sends a form with fields that no page offers.
func (b *browser) submit(path string, status int, fields url.Values) {
	b.t.Helper()
	b.send(b.request(http.MethodPost, path, []byte(fields.Encode()), "application/x-www-form-urlencoded"), status)
}

// buttons returns the names of the acts of operators on an account that the page offers.
func (b *browser) buttons() (names []string) {
	for _, n := range all(b.page.root, func(n *html.Node) bool { return n.Data == "form" }) {
		if _, act, found := strings.Cut(attribute(n, "action"), "@example.com/"); found && !strings.HasPrefix(act, "grants") {
			names = append(names, act)
		}
	}
	return names
}

// TestInvitations invites a person, whose link is shown once, finds the person by parts of the
// address and the name, and makes the link dead with another one.
func TestInvitations(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), "NOTICE_LOG_FILE="+filepath.Join(e.Dir, "notices"),
			"OTP_EMAIL_PLUGIN=otp-log")...)
		b := newOperator(t, e, s)
		b.follow("People", http.StatusOK)
		for _, wrong := range [][]string{
			{"email", "ada", "name", "Ada", "E-mail address must be an e-mail address."},
			{"email", "ada@example.com", "name", "", "Name must not be empty."},
			{"email", "ada@example.com", "name", "Ada", "actions", "publish", "The pattern of servers"},
			{"email", "bea@example.com", "name", "Bea", "resource", "*", "This e-mail address has an account."},
		} {
			text := wrong[len(wrong)-1]
			b.press("Invite this person", http.StatusUnprocessableEntity, wrong[:len(wrong)-1]...)
			b.wantText(text)
		}
		b.submit("/console/operator/people", http.StatusOK, url.Values{
			"email": {"ada@example.com"}, "name": {"<b>Ada</b> Ünal"}, "actions": {"publish", "operate"}, "resource": {"com.example/*"},
		})
		b.wantText("The invitation of ada@example.com", "It was sent to ada@example.com.", "It is good once, until")
		link := b.secret()
		b.follow("ada@example.com", http.StatusOK)
		b.wantText("State Invited", "<b>Ada</b> Ünal", "publish com.example/*", "operate *", "Last sign-in never")
		b.wantNoText(link)
		if got := b.buttons(); !slices.Equal(got, []string{"disable", "invitation"}) {
			t.Errorf("an invited person has the acts %v", got)
		}
		for query, found := range map[string]bool{
			"?q=ADA%40": true, "?q=%C3%9Cnal": true, "?q=ada&state=invited": true, "?q=ada&state=active": false, "?q=eve": false,
		} {
			b.open("/console/operator/people"+query, http.StatusOK)
			if got := strings.Contains(b.text(), "ada@example.com"); got != found {
				t.Errorf("%s finds the person: %t", query, got)
			}
		}
		b.open("/console/operator/people/ada@example.com", http.StatusOK)
		b.press("New invitation", http.StatusOK)
		again := b.secret()
		newBrowser(t, s).open(pathOf(t, link), http.StatusNotFound)
		ada := newBrowser(t, s)
		ada.open(pathOf(t, again), http.StatusOK)
		ada.press("Set the password", http.StatusOK, "password", "Another-Horse-8-Battery")
		ada.wantPath("/console/invitation/welcome")
		ada.follow("Set up an authenticator app", http.StatusOK)
		b.open("/console/operator/people/ada@example.com", http.StatusOK)
		b.wantText("State Active", "Full trust", "Confirmed with a code")
		b.wantForeign("/console/operator/people", url.Values{"email": {"eve@example.com"}, "name": {"Eve"}})
	})
}

func pathOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return u.RequestURI()
}

// TestPersonForms changes a person: name, telephone, grants, second factor, and the password by a
// link.
func TestPersonForms(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewWriter(t, s, "ada@example.com")
		e.EnrolAuthenticator(t, ada)
		b := newOperator(t, e, s)
		b.open("/console/operator/people/ada@example.com", http.StatusOK)
		b.wantText("Second factor authenticator app")
		b.press("Save this person", http.StatusUnprocessableEntity, "name", " ", "phone", "123")
		b.wantText("Name must not be empty.")
		b.press("Save this person", http.StatusUnprocessableEntity, "name", "Ada", "phone", "123")
		b.wantText("Telephone must be an international number")
		b.press("Save this person", http.StatusOK, "phone", "+4930123456")
		b.wantText("The changes are saved.", "Name Ada")
		if b.field("phone") != "+4930123456" {
			t.Errorf("the form has the number %q", b.field("phone"))
		}
		b.press("Add this grant", http.StatusUnprocessableEntity, "action", "publish", "resource", "com example")
		b.press("Add this grant", http.StatusOK, "resource", "com.example/*")
		b.wantText("The grant is added.")
		b.press("Remove the grant to publish com.example/*", http.StatusOK)
		b.wantPath("/console/operator/people/ada@example.com?done=revoked")
		b.wantText("This person has no grants")
		b.press("Remove the second factor", http.StatusOK)
		b.wantText("The second factor is removed, and the sessions are ended.", "Second factor no",
			"not signed in anywhere")
		b.press("Link for a new password", http.StatusOK)
		b.wantText("It is not sent: hand it over yourself")
		link := b.secret()
		other := newBrowser(t, s)
		other.open(pathOf(t, link), http.StatusOK)
		other.press("Set the password", http.StatusOK, "newPassword", "Another-Horse-8-Battery")
		other.wantPath("/console/sign-in?set=1")
		newBrowser(t, s).open(pathOf(t, link), http.StatusNotFound)
		b.submit("/console/operator/people/nobody@example.com/reset-link", http.StatusNotFound, nil)
	})
}

// TestLastOperator: the last person who can operate stays one, and the page says why.
func TestLastOperator(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		b := newOperator(t, e, s)
		for _, button := range []string{"Lock", "Disable", "Remove the grant to operate *"} {
			b.open("/console/operator/people/bea@example.com", http.StatusOK)
			b.press(button, http.StatusConflict)
			b.wantText("There is a problem", "last")
			b.follow("Cancel", http.StatusOK)
			b.wantPath("/console/operator/people/bea@example.com")
		}
		b.wantText("State Active", "operate *")
		b.submit("/console/operator/people/bea@example.com/invitation", http.StatusConflict, nil)
		b.wantText("The account is active, not invited.")
	})
}

// TestManagedTokens: tokens of views and service accounts that a file manages are made and removed by
// hand, because no file has tokens.
func TestManagedTokens(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		b := newOperator(t, e, s)
		pages := map[string]url.Values{
			"views/data":            {"token": {"other"}},
			"service-accounts/data": {"name": {"other"}, "scopes": {"registry:read"}},
		}
		b.open("/console/operator/views", http.StatusOK)
		b.press("Add this view", http.StatusOK, "name", "data")
		b.open("/console/operator/service-accounts", http.StatusOK)
		b.press("Add this service account", http.StatusOK, "name", "data")
		removals := map[string]string{}
		for page, fields := range pages {
			b.submit("/console/operator/"+page+"/tokens", http.StatusOK, fields)
			b.open("/console/operator/"+page, http.StatusOK)
			form := find(b.page.root, func(n *html.Node) bool {
				return n.Data == "form" && strings.Contains(attribute(n, "action"), "/tokens/")
			})
			removals[page] = attribute(form, "action")
		}
		e.RunCommand(t, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "data", "access": "token"}],
			"serviceAccounts": [{"name": "data"}]}`, "apply", "-f", "-", "--owner", "platform", "--adopt")
		for page, fields := range pages {
			b.open("/console/operator/"+page, http.StatusOK)
			b.wantText("managed by platform", "other", "Make this token")
			b.wantNoText("Save this")
			fields.Set("name", "third")
			fields.Set("token", "third")
			b.submit("/console/operator/"+page+"/tokens", http.StatusOK, fields)
			b.submit(removals[page], http.StatusOK, nil)
			b.open("/console/operator/"+page, http.StatusOK)
			b.wantText("third")
			b.wantNoText("other")
		}
		apiclient.Call(t, "GET", s.API+"/registries/data/v0.1/servers", nil).WantStatus(t, http.StatusUnauthorized)
	})
}
