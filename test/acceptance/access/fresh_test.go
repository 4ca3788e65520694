package access

import (
	"net/http"
	"net/http/cookiejar"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestFreshWhileKilled: a changed rule, a removed group, an ended session, quarantine and a leaver hold at
// another instance within a second, although the instance that has made the change is killed at once.
func TestFreshWhileKilled(t *testing.T) {
	t.Parallel()
	s := openSite(t, fixture.NewProduction(t), (*fixture.Environment).StartProcess)
	p := s.addProvider(t)
	s.setRule(t, "devs", object{"effect": "allow", "subjects": []string{"group:acme/devs"}, "tools": []string{"deploy"}})
	p.SignIn("u1", s.ada.Email, "groups", []string{"devs"})
	signIn(t, s.one)
	s.until(t, "the group", newCall(s.ada, "deploy"), http.StatusOK)
	for _, c := range []struct {
		what, tool string
		status     int // after the change
		change     func()
		undo       func() // at a new instance
	}{
		{"a rule", "forecast", http.StatusForbidden, func() {
			s.setRule(t, "late", object{"effect": "deny", "subjects": []string{"anyone"}, "tools": []string{"forecast"}})
		}, func() {}},
		{"a removed group", "deploy", http.StatusForbidden, func() {
			p.SignIn("u1", s.ada.Email, "groups", []string{"ops"})
			signIn(t, s.one)
		}, func() {}},
		{"quarantine", "read_mail", http.StatusForbidden, func() { s.quarantine(t) }, func() { s.endQuarantine(t) }},
		{"an ended session", "read_mail", http.StatusUnauthorized, func() { s.endSession(t) }, func() { s.ada.Login(t, s.one) }},
		{"a leaver", "read_mail", http.StatusUnauthorized, func() {
			_, id := fixture.ReadSession(t, s.one, s.ada)
			s.want(t, http.StatusOK, "POST", "/people/"+id+"/disable", nil)
		}, func() {}},
	} {
		asked := newCall(s.ada, c.tool)
		s.until(t, "before "+c.what, asked, http.StatusOK) // what it keeps in memory is young now
		c.change()
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			s.one.Process.Kill()
		}()
		stale := fixture.AwaitFresh(t, c.what, func() bool { return ask(t, s.other, asked).status == c.status })
		t.Logf("%s: the last answer of before was to a call after %s", c.what, stale.Round(time.Millisecond))
		<-killed
		s.one = s.e.StartProcess(t)
		c.undo()
	}
}

// signIn signs the person of the provider acme in, with a browser.
func signIn(t *testing.T, at *fixture.Service) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must.Succeed(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "GET", at.API+"/console/sign-in/company/acme?return=/console/account", nil)
	must.Succeed(t, err)
	response, err := (&http.Client{Jar: jar}).Do(r)
	must.Succeed(t, err)
	if _ = response.Body.Close(); response.StatusCode != http.StatusOK || response.Request.URL.Path != "/console/account" {
		t.Fatalf("the sign-in ends at %s with %d", response.Request.URL, response.StatusCode)
	}
}
