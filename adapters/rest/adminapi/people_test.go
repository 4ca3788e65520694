package adminapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestPeople invites a person, and changes those who have joined.
func TestPeople(t *testing.T) {
	s := openSite(t)
	s.e.WantAuditEvents(t)
	draft := object{"email": "New@Example.com", "name": "New", "grants": []object{{"action": "publish",
		"resource": everyName}}}
	made := decode(t, s.want(t, http.StatusCreated, "POST", "/people", draft))
	link, _ := made["invitation"].(object)
	s.keep(t, text(link, "url"))
	one := "/people/" + text(made, "id")
	s.play(t, "people", "{one}", one)
	again := decode(t, s.want(t, http.StatusOK, "POST", one+"/invitation", nil))
	s.keep(t, text(again, "url"))
	first := decode(t, s.want(t, http.StatusOK, "GET", "/people?limit=2", nil))
	cursor := text(first["metadata"].(object), "nextCursor")
	s.want(t, http.StatusOK, "GET", "/people?limit=2&cursor="+cursor, nil)
	s.changeProfile(t)
	s.actOnPeople(t)
}

// changeProfile changes the name and the phone of a person.
func (s *site) changeProfile(t *testing.T) {
	t.Helper()
	_, id := fixture.ReadSession(t, s.Service, s.eve)
	one := "/people/" + id
	tag := s.want(t, http.StatusOK, "GET", one, nil).Header.Get("ETag")
	s.eve.Login(t, s.Service) // it changes nothing that an operator could change
	s.want(t, http.StatusPreconditionFailed, "PATCH", one, object{"name": "Eve"}, "If-Match", `"stale"`)
	changed := s.want(t, http.StatusOK, "PATCH", one, object{"name": "Eve"}, "If-Match", tag).Header.Get("ETag")
	s.want(t, http.StatusPreconditionFailed, "PATCH", one, object{"name": "Eve"}, "If-Match", tag)
	s.want(t, http.StatusOK, "PATCH", one, object{"phone": "+441632960961"}, "If-Match", changed)
	s.play(t, "profile", "{one}", one)
}

// actOnPeople locks and disables a person, ends the sessions and removes the second factor.
func (s *site) actOnPeople(t *testing.T) {
	t.Helper()
	_, id := fixture.ReadSession(t, s.Service, s.eve)
	one := "/people/" + id
	wantSession := func(status int) {
		t.Helper()
		s.wantAs(t, s.eve.Bearer(), status, "GET", "/me", nil)
	}
	for _, list := range []string{"sessions", "devices", "identities"} {
		a := s.read(t, one+"/"+list).WantStatus(t, http.StatusOK)
		if all, _ := decode(t, a)[list].([]any); len(all) == 0 && list != "identities" {
			t.Errorf("the list of %s is %s", list, a.Body)
		}
		s.wantWrong(t, "limit", "GET", one+"/"+list+"?limit=x", nil)
	}
	wantSession(http.StatusOK)
	s.want(t, http.StatusOK, "POST", one+"/end-sessions", nil)
	wantSession(http.StatusUnauthorized)
	s.eve.Login(t, s.Service)
	for _, act := range []struct {
		do, undo string
		session  int
	}{{"lock", "unlock", http.StatusOK}, {"disable", "enable", http.StatusUnauthorized}} {
		s.want(t, http.StatusOK, "POST", one+"/"+act.do, nil)
		wantSession(act.session)
		signIn := object{"email": s.eve.Email, "password": fixture.Password, "deviceInfo": s.eve.Device}
		if a := apiclient.Call(t, "POST", s.API+"/auth/login", signIn); a.Status == http.StatusOK {
			t.Errorf("after %s a person signs in: %s", act.do, a.Body)
		}
		s.want(t, http.StatusOK, "GET", "/people?q=eve", nil)
		s.want(t, http.StatusOK, "POST", one+"/"+act.undo, nil)
		s.eve.Login(t, s.Service)
		wantSession(http.StatusOK)
	}
	s.play(t, "person without", "{one}", one)
	s.e.EnrolAuthenticator(t, s.eve)
	s.want(t, http.StatusOK, "GET", one, nil)
	s.want(t, http.StatusOK, "POST", one+"/remove-second-factor", nil)
	s.keep(t, text(decode(t, s.want(t, http.StatusOK, "POST", one+"/reset-link", nil)), "url"))
	for _, path := range []string{
		"GET ", "PATCH ", "GET /sessions", "GET /devices", "GET /identities", "POST /lock", "POST /unlock",
		"POST /disable",
		"POST /enable", "POST /end-sessions", "POST /remove-second-factor", "POST /invitation", "POST /reset-link",
	} {
		method, below, _ := strings.Cut(path, " ")
		var body any
		if method == "PATCH" {
			body = object{"name": "x"}
		}
		s.want(t, http.StatusNotFound, method, "/people/"+unknownID+below, body)
		s.wantWrong(t, "id", method, "/people/x"+below, body)
	}
}
