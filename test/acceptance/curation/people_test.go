package curation

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestViewsOfPeople: who may read a view for people, on two instances and both databases (contract
// C-36). Groups are tested in test/acceptance/companies.
func TestViewsOfPeople(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e, "REGISTRY_REVIEW=off", "PUBLIC_URL=https://tools.example.com")
		s.send(t, s.ada, "POST", "/v0.1/publish", newEntry("com.example/a", "1.0.0")).WantStatus(t, http.StatusOK)
		e.RunCommand(t, "", "view", "add", "everyone", "--access", "people")
		e.RunCommand(t, "", "view", "add", "some", "--access", "people", "--person", "Eve@example.com", "--group", "acme/devs")
		secret := strings.TrimSpace(e.RunCommand(t, "", "view", "token", "add", "some"))
		var reading, editing struct{ Token string }
		for scope, made := range map[string]any{"registry:read": &reading, "registry:edit": &editing} {
			s.send(t, s.eve, "POST", "/admin/v1/me/tokens", map[string]any{
				"name": strings.ReplaceAll(scope, ":", "-"), "scopes": []string{scope},
			}).WantStatus(t, http.StatusCreated).Decode(t, made)
		}
		dan := s.newRisky(t)
		for _, c := range []struct {
			who, place, token string
			want              int
		}{
			{"no one", "everyone", "", 401}, {"no one", "some", "", 401}, {"no one", "none", "", 404},
			{"no one", "some/t/x", "", 401}, {"a token of the view", "some/t/" + secret, "", 200},
			{"a token of the view", "some", secret, 200}, {"a token of another view", "everyone", secret, 401},
			{"eve", "everyone", s.eve.AccessToken, 200}, {"eve", "some", s.eve.AccessToken, 200},
			{"bea", "everyone", s.bea.AccessToken, 200}, {"bea", "some", s.bea.AccessToken, 404},
			{"a token of eve", "some", reading.Token, 200}, {"a token of eve to edit", "some", editing.Token, 403},
			{"dan at HIGH_RISK", "everyone", dan.AccessToken, 403}, {"dan at HIGH_RISK", "some", dan.AccessToken, 403},
		} {
			for _, instance := range []*fixture.Service{s.one, s.other} {
				for _, path := range readsOfView(c.place, "com.example/a", "1.0.0") {
					status := 0
					await.Until(t, c.who+" reads "+path, func() bool { // a view is known within a second
						status = apiclient.Call(t, "GET", instance.API+path, nil, bearer(c.token)...).Status
						return status == c.want || c.want == 200 && status == 404 && strings.Contains(path, "/install")
					})
				}
			}
		}
		s.wantOneBody(t, "/registries/everyone/v0.1/servers", s.ada, s.eve)
		s.checkEndOfPeople(t)
	})
}

// bearer returns the header with a token; nothing for an empty one.
func bearer(token string) []string {
	if token == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + token}
}

// newRisky returns a person whose session is at HIGH_RISK: two sessions within a minute and a failure
// on an unknown device.
func (s *site) newRisky(t *testing.T) *fixture.Person {
	t.Helper()
	dan := s.e.NewPerson(t, "dan@example.com", "review com.example/*")
	dan.Login(t, s.one)
	dan.Login(t, s.one)
	apiclient.Call(t, "POST", s.one.API+"/auth/login", map[string]any{
		"email": dan.Email, "password": "wrong", "deviceInfo": dan.Device,
	}).WantStatus(t, http.StatusUnauthorized)
	if dan.Login(t, s.one); dan.TrustLevel != "HIGH_RISK" {
		t.Fatalf("the session is at %s", dan.TrustLevel)
	}
	return dan
}

// wantOneBody: the callers of a view get one body, which no one else gets, not even by its tag.
func (s *site) wantOneBody(t *testing.T, path string, callers ...*fixture.Person) {
	t.Helper()
	tags := map[string]bool{}
	for _, p := range callers {
		a := s.send(t, p, "GET", path, nil).WantStatus(t, http.StatusOK)
		tags[a.Header.Get("ETag")] = true
		if a.Header.Get("Cache-Control") != "private, no-cache" || !strings.Contains(a.Header.Get("Vary"), "Authorization") {
			t.Errorf("the headers are %v", a.Header)
		}
	}
	for tag := range tags {
		if a := apiclient.Call(t, "GET", s.one.API+path, nil, "If-None-Match", tag); a.Status != 401 || len(tags) != 1 {
			t.Errorf("with a tag of %d: %d", len(tags), a.Status)
		}
	}
}

// checkEndOfPeople: a person who is taken from a view, and one who is disabled, are refused by the
// other instance within a second.
func (s *site) checkEndOfPeople(t *testing.T) {
	t.Helper()
	status := func(p *fixture.Person, view string) int {
		return apiclient.Call(t, "GET", s.other.API+"/registries/"+view+"/v0.1/servers", nil, p.Bearer()...).Status
	}
	s.e.RunCommand(t, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [
		{"name": "some", "access": "people", "people": ["bea@example.com"], "groups": ["acme/ops"]}]}`, "apply", "-f", "-", "--adopt")
	await.Until(t, "the view has another person", func() bool {
		return status(s.eve, "some") == 404 && status(s.bea, "some") == 200
	})
	s.e.RunCommand(t, "", "user", "disable", "--email", "bea@example.com")
	await.Until(t, "who is disabled", func() bool { return status(s.bea, "some") == 401 && status(s.bea, "everyone") == 401 })
}
