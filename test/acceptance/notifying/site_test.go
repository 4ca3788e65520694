package notifying

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	reviewsPath    = "/v0.1/x/dev.tollgate/reviews"
	quarantinePath = "/v0.1/x/dev.tollgate/quarantine"
)

// site is a registry on two instances. ada publishes, bea reviews.
type site struct {
	e          *fixture.Environment
	one, other *fixture.Service
	ada, bea   *fixture.Person
}

// openSite starts the instances and signs the people in.
func openSite(t *testing.T, e *fixture.Environment, environ ...string) *site {
	t.Helper()
	e.Environ = append(append(e.Environ, fixture.RegistrySettings()...), environ...)
	s := &site{e: e, one: e.Start(t), other: e.Start(t)}
	s.ada = e.NewWriter(t, s.one, "ada@example.com", "publish *", "edit *")
	s.bea = e.NewWriter(t, s.one, "bea@example.com", "review *")
	return s
}

// send sends a request of a person to an instance.
func send(t *testing.T, at *fixture.Service, by *fixture.Person, method, path string, body any) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, at.API+path, body, by.Bearer()...)
}

// publish publishes versions of a server at the first instance.
func (s *site) publish(t *testing.T, name string, versions ...string) {
	t.Helper()
	for _, v := range versions {
		send(t, s.one, s.ada, "POST", "/v0.1/publish", fixture.NewServerDocument(name, v)).WantStatus(t, http.StatusOK)
	}
}

// submit sends a document that waits for review, and returns the ID of its review.
func (s *site) submit(t *testing.T, method, path string, doc map[string]any) string {
	t.Helper()
	var got struct {
		Meta struct {
			Review struct{ ID string } `json:"dev.tollgate/review"`
		} `json:"_meta"`
	}
	send(t, s.one, s.ada, method, path, doc).WantStatus(t, http.StatusOK).Decode(t, &got)
	if got.Meta.Review.ID == "" {
		t.Fatal("the document does not wait for review")
	}
	return got.Meta.Review.ID
}

// decide decides a review at the other instance and returns the answer.
func (s *site) decide(t *testing.T, id, verdict string) string {
	t.Helper()
	return string(send(t, s.other, s.bea, "POST", reviewsPath+"/"+id+"/"+verdict, `{"comment":"<fine> & done"}`).
		WantStatus(t, http.StatusOK).Body)
}

// read returns a version as an instance answers with it.
func read(t *testing.T, at *fixture.Service, name, version string) string {
	t.Helper()
	return string(apiclient.Call(t, "GET", at.API+"/v0.1"+fixture.ServerPath(name, version)+"?include_deleted=true",
		nil).WantStatus(t, http.StatusOK).Body)
}

// quarantineQuery returns the path of what is in quarantine.
func quarantineQuery(name, version string) string {
	return quarantinePath + "?serverName=" + url.QueryEscape(name) + "&version=" + url.QueryEscape(version)
}

// wantBody checks a body byte for byte, with the values of the event for what cannot be known, and
// the forms of those. The data is an answer without the addresses of people.
func wantBody(t *testing.T, got received, kind, name, version, data string) {
	t.Helper()
	quoted, err := json.Marshal(name)
	must.Succeed(t, err)
	shown := "null"
	if version != "" {
		shown = `"` + version + `"`
	}
	want := `{"id":"` + got.event.ID + `","type":"` + kind + `","time":"` + got.event.Time + `","serverName":` +
		string(quoted) + `,"version":` + shown + `,"data":` + strings.ReplaceAll(strings.TrimSpace(data), `"submitterEmail":"ada@example.com",`, "") + `}`
	if got.body != want {
		t.Errorf("the body is\n%s\nwant\n%s", got.body, want)
	}
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", got.event.Time)
	if err != nil || time.Since(at).Abs() > 2*time.Minute ||
		len(got.event.ID) != len("8a4f1c6e-0b7d-4e2a-9c35-6d1f2e3b4a50") {
		t.Errorf("the event has the time %s and the id %s, %v", got.event.Time, got.event.ID, err)
	}
}
