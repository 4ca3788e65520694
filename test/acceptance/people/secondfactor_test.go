package people

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// removedNotice is the beginning of the notice of a second factor that was removed.
const removedNotice = "An operator removed the authenticator app"

// countNotices returns how many notices to an address contain a text.
func (s *site) countNotices(t *testing.T, email, text string) (n int) {
	t.Helper()
	content, err := os.ReadFile(s.notices)
	must.Succeed(t, err)
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, `"recipient":"`+email+`"`) && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestSecondFactorRemoved lets an operator remove a second factor: the person gets one notice, the
// sessions of the API and of the console end, and so does a login that waits for a code.
func TestSecondFactorRemoved(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		s.e.WantAuditEvents(t)
		id, ada := s.add(t, "ada@example.com"), "ada@example.com"
		remove := people + "/" + id + "/remove-second-factor"
		s.wantCode(t, http.StatusConflict, "conflict", "POST", remove, nil)
		app := s.e.EnrolAuthenticator(t, &fixture.Person{Email: ada})
		bearer := s.loginWithCode(t, ada, fixture.Password, app.Recovery[0])
		console := s.newBrowser(t)
		console.signIn(t, ada, fixture.Password, id, app.Recovery[1])
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, bearer...).WantStatus(t, http.StatusOK)
		s.startLogin(t, ada, fixture.Password)

		if got := s.want(t, http.StatusOK, "POST", remove, nil); got["secondFactor"] != false || got["id"] != id {
			t.Errorf("the person is %v", got)
		}
		apiclient.WantAuthError(t, apiclient.Call(t, "GET", s.API+"/auth/session", nil, bearer...).
			WantStatus(t, http.StatusUnauthorized), "invalid_token")
		console.wantSession(t, false)
		apiclient.WantAuthError(t, s.verify(t, id, app.Recovery[2]).WantStatus(t, http.StatusUnauthorized), "invalid_mfa")
		await.Until(t, "the notice", func() bool { return s.countNotices(t, ada, removedNotice) > 0 })
		s.wantCode(t, http.StatusConflict, "conflict", "POST", remove, nil)
		if strings.Contains(string(s.login(t, ada, fixture.Password).WantStatus(t, http.StatusOK).Body), `"requiresMFA":true`) {
			t.Error("a code is still wanted")
		}
		s.Stop() // what was queued is sent
		if n := s.countNotices(t, ada, removedNotice); n != 1 || s.countNotices(t, s.operator.Email, removedNotice) > 0 {
			t.Errorf("the person got %d notices", n)
		}
	}, fixture.RelaxedRiskSettings...)
}

// TestResetKeepsTheSecondFactor sets another password by a link, with the API and on the page: all
// sessions and pending logins end, other links are dead, and the second factor is still wanted.
func TestResetKeepsTheSecondFactor(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		id, ada := s.add(t, "ada@example.com"), "ada@example.com"
		app := s.e.EnrolAuthenticator(t, &fixture.Person{Email: ada})
		present, next := fixture.Password, newPassword
		for i, set := range []func(link, password string) int{
			func(link, password string) int { return s.reset(t, link, password).Status },
			func(link, password string) int { return s.newBrowser(t).submit(t, link, "newPassword", password) },
		} {
			codes := app.Recovery[5*i:]
			bearer := s.loginWithCode(t, ada, present, codes[0])
			console := s.newBrowser(t)
			console.signIn(t, ada, present, id, codes[1])
			s.startLogin(t, ada, present)
			other := s.makeResetLink(t, id)
			s.forgot(t, ada)
			link := s.awaitLink(t, ada, i+1)
			s.wantGood(t, "another link", other)
			if status := set(link, next); status != http.StatusOK {
				t.Fatalf("the reset answers %d", status)
			}
			apiclient.Call(t, "GET", s.API+"/auth/session", nil, bearer...).WantStatus(t, http.StatusUnauthorized)
			console.wantSession(t, false)
			apiclient.WantAuthError(t, s.verify(t, id, codes[2]).WantStatus(t, http.StatusUnauthorized), "invalid_mfa")
			s.wantDead(t, "the used link", link)
			s.wantDead(t, "the other link", other)
			apiclient.WantAuthError(t, s.login(t, ada, present).WantStatus(t, http.StatusUnauthorized), "invalid_credentials")
			s.loginWithCode(t, ada, next, codes[3])
			present, next = next, present
		}
	}, fixture.RelaxedRiskSettings...)
}

// TestLinksEnd makes links to set another password dead by what makes them needless.
func TestLinksEnd(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		ada := s.e.NewWriter(t, s.Service, "ada@example.com")
		_, id := fixture.ReadSession(t, s.Service, ada)
		link := s.makeResetLink(t, id)
		s.forgot(t, ada.Email)
		sent := s.awaitLink(t, ada.Email, 1)
		ada.PostJSON(t, s.Service, "/auth/password", object{"currentPassword": fixture.Password, "newPassword": newPassword}).
			WantStatus(t, http.StatusOK)
		s.wantDead(t, "a link before the password was changed in a session", link)
		s.wantDead(t, "a sent link before the password was changed in a session", sent)

		link = s.makeResetLink(t, id)
		s.e.RunCommand(t, fixture.Password+"\n", "user", "set-password", "--email", ada.Email, "--password-stdin")
		s.wantDead(t, "a link before the password was set by command", link)

		link = s.makeResetLink(t, id)
		bob, invitation := s.invite(t, "bob@example.com")
		for _, one := range []string{id, bob} {
			s.want(t, http.StatusOK, "POST", people+"/"+one+"/disable", nil)
			s.want(t, http.StatusOK, "POST", people+"/"+one+"/enable", nil)
		}
		s.wantDead(t, "a link before the account was disabled", link)
		s.wantDead(t, "an invitation before the account was disabled", invitation)
		s.want(t, http.StatusOK, "POST", people+"/"+bob+"/invitation", nil)
	})
}
