package administration

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRegistryByFile plays docs/registry-by-file.md: from the link in the log of an empty service to a
// curated registry of five invited people, by one apply and HTTP.
func TestRegistryByFile(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(e.Environ, fixture.RegistrySettings()...)
		s := &site{e: e, one: e.Start(t, "REGISTRY_REVIEW=on")}
		const setup = "/console/setup?code="
		s.one.AwaitLog(setup)
		_, after, _ := strings.Cut(s.one.Process.Log(), setup)
		s.olga = s.join(t, "olga@example.com", setup+after[:strings.IndexAny(after, "\" \n\\")])
		links := map[string]string{}
		for _, name := range []string{"bea", "cem", "dan", "eve", "fay"} {
			var made struct{ Invitation struct{ URL string } }
			s.want(t, 201, "POST", "/people", object{"email": name + "@example.com", "name": name}).Decode(t, &made)
			links[name] = made.Invitation.URL
		}
		s.wantApplied(t, "create")
		people := map[string]*fixture.Person{}
		for name, link := range links {
			people[name] = s.join(t, name+"@example.com", link)
		}
		s.wantApplied(t, "none")
		s.checkCuration(t, people)
	})
}

// join sends the form of the page of a link, as curl does, and signs the person in with full trust.
func (s *site) join(t *testing.T, email, link string) *fixture.Person {
	t.Helper()
	u, err := url.Parse(link)
	must.Succeed(t, err)
	form := url.Values{
		"code": {u.Query().Get("code")}, "email": {email}, "name": {"A Person"}, "password": {fixture.Password},
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.one.API+u.Path, strings.NewReader(form.Encode()))
	must.Succeed(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.one.API)
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the form of %s: %s", u.Path, response.Status)
	}
	p := &fixture.Person{Email: email, Device: map[string]string{
		"userAgent": "curl", "screenResolution": "1920x1080", "timezone": "Europe/Berlin", "language": "en",
	}}
	p.Login(t, s.one)
	p.StepUp(t, s.e, s.one)
	return p
}

// wantApplied applies the file, and checks that each of its objects changes in the same way.
func (s *site) wantApplied(t *testing.T, change string) {
	t.Helper()
	text, err := os.ReadFile(fixture.Root + "/docs/examples/first-registry/state.yaml")
	must.Succeed(t, err)
	const secret = "64-random-characters-that-only-the-receiver-knows"
	var got struct {
		Changes []struct{ Kind, Key, Change string }
	}
	a := s.want(t, 200, "POST", "/apply?owner=platform", strings.ReplaceAll(string(text), "{env: HOOK_SECRET}", secret),
		"Content-Type", "application/yaml")
	a.Decode(t, &got)
	kinds := map[string]int{}
	for _, c := range got.Changes {
		kinds[c.Kind]++
		if c.Change != change {
			t.Errorf("%s %s: %s, want %s", c.Kind, c.Key, c.Change, change)
		}
	}
	if len(got.Changes) != 13 || len(kinds) != 7 || strings.Contains(string(a.Body), secret) {
		t.Errorf("the answer is %s", a.Body)
	}
}

// checkCuration checks who may publish, what waits, and who reads the view.
func (s *site) checkCuration(t *testing.T, people map[string]*fixture.Person) {
	t.Helper()
	token := decode(t, s.want(t, 201, "POST", "/views/data/tokens", object{"name": "ci"})).text("token")
	release := decode(t, s.want(t, 201, "POST", "/service-accounts/release/tokens",
		object{"name": "pipeline", "scopes": []string{"registry:publish"}})).text("token")
	view := s.one.API + "/registries/data/v0.1/servers"
	apiclient.Call(t, "GET", view, nil).WantStatus(t, http.StatusUnauthorized)
	read := func() string {
		return string(apiclient.Call(t, "GET", view, nil, "Authorization", "Bearer "+token).WantStatus(t, http.StatusOK).Body)
	}
	publish := func(bearer, name string) apiclient.Response {
		return apiclient.Call(t, "POST", s.one.API+"/v0.1/publish", fixture.NewServerDocument(name, "1.0.0"),
			"Authorization", "Bearer "+bearer)
	}
	publish(people["bea"].AccessToken, "com.example/weather").WantStatus(t, http.StatusOK)
	publish(release, "com.example/maps").WantStatus(t, http.StatusOK)
	publish(people["fay"].AccessToken, "com.example.news/today").WantStatus(t, http.StatusOK)
	publish(people["dan"].AccessToken, "com.example/other").WantStatus(t, http.StatusForbidden)
	apiclient.Call(t, "GET", fixture.ServerURL(s.one, "com.example.news/today", "/versions/latest"), nil).
		WantStatus(t, http.StatusOK)
	if got := read(); strings.Contains(got, "com.example/") {
		t.Errorf("the view has what waits for review: %s", got)
	}
	var list struct {
		Reviews []struct{ ID, ServerName string }
	}
	apiclient.Call(t, "GET", s.one.API+"/v0.1/x/dev.tollgate/reviews", nil, people["cem"].Bearer()...).
		WantStatus(t, http.StatusOK).Decode(t, &list)
	if len(list.Reviews) != 2 {
		t.Fatalf("%+v wait, want those of bea and of the service account", list.Reviews)
	}
	ids := []string{list.Reviews[0].ID, list.Reviews[1].ID}
	approval := object{"ids": ids, "comment": "Fine."}
	s.callAs(t, people["cem"], "POST", "/reviews/approve", approval).WantStatus(t, http.StatusForbidden)
	a := s.callAs(t, people["eve"], "POST", "/reviews/approve", approval).WantStatus(t, http.StatusOK)
	if strings.Count(string(a.Body), `"outcome":"approved"`) != 2 {
		t.Errorf("eve approves: %s", a.Body)
	}
	await.Until(t, "the view has both servers", func() bool {
		got := read()
		return strings.Contains(got, "com.example/weather") && strings.Contains(got, "com.example/maps")
	})
}
