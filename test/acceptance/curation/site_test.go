package curation

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const reviewsPath = "/v0.1/x/dev.tollgate/reviews"

// site is a registry with review on two instances. ada publishes; bea and cem review what begins
// with com.example; eve has no grant.
type site struct {
	e          *fixture.Environment
	one, other *fixture.Service

	ada, bea, cem, eve *fixture.Person
}

// openSite starts the instances and signs the people in with full trust.
func openSite(t *testing.T, e *fixture.Environment, environ ...string) *site {
	t.Helper()
	e.Environ = append(append(e.Environ, fixture.RegistrySettings()...), "REMOTE_URL_UNIQUE=true")
	e.Environ = append(e.Environ, "REGISTRY_REVIEW=on", "NOTICE_LOG_FILE="+e.Dir+"/notices.jsonl")
	e.Environ = append(e.Environ, environ...)
	s := &site{e: e, one: e.Start(t), other: e.Start(t)}
	s.ada = e.NewWriter(t, s.one, "ada@example.com", "publish *", "edit *", "review com.example/*")
	s.bea = e.NewWriter(t, s.one, "bea@example.com", "review com.example/*")
	s.cem = e.NewWriter(t, s.one, "cem@example.com", "review com.example*", "publish *", "edit *")
	s.eve = e.NewWriter(t, s.one, "eve@example.com")
	return s
}

// send sends a request of a person to the first instance.
func (s *site) send(t *testing.T, by *fixture.Person, method, path string, body any) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, s.one.API+path, body, by.Bearer()...)
}

// submit publishes a document that must be pending then, and returns the ID of its review.
func (s *site) submit(t *testing.T, by *fixture.Person, doc map[string]any) string {
	t.Helper()
	return pendingID(t, s.send(t, by, "POST", "/v0.1/publish", doc))
}

// pendingID returns the ID in the mark of a document that waits for review.
func pendingID(t *testing.T, a apiclient.Response) string {
	t.Helper()
	var got struct {
		Meta struct {
			Review *struct{ ID, State string } `json:"dev.tollgate/review"`
		} `json:"_meta"`
	}
	a.WantStatus(t, http.StatusOK).Decode(t, &got)
	if got.Meta.Review == nil || got.Meta.Review.State != "pending" || got.Meta.Review.ID == "" {
		t.Fatalf("%s has no mark of a review", a.Body)
	}
	return got.Meta.Review.ID
}

// reviewEntry is a review as the API shows it.
type reviewEntry struct {
	ID, ServerName, Version, State, Kind string
	Document, Replaces                   map[string]any
	Diff                                 []struct {
		Path          string
		Before, After any
	}
	Checks                                      []struct{ RegistryType, Identifier, State, Message string }
	SubmittedBy, SubmitterEmail, SubmittedAt    string
	Policy, DecidedBy, DecidedAt, Comment, Rule *string
}

// review reads a review by the other instance.
func (s *site) review(t *testing.T, by *fixture.Person, id string) reviewEntry {
	t.Helper()
	var r reviewEntry
	apiclient.Call(t, "GET", s.other.API+reviewsPath+"/"+id, nil, by.Bearer()...).WantStatus(t,
		http.StatusOK).Decode(t, &r)
	return r
}

// decide approves or rejects a review by the other instance.
func (s *site) decide(t *testing.T, by *fixture.Person, id, verdict string, body any) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", s.other.API+reviewsPath+"/"+id+"/"+verdict, body, by.Bearer()...)
}

// approve approves a review.
func (s *site) approve(t *testing.T, by *fixture.Person, id string) reviewEntry {
	t.Helper()
	var r reviewEntry
	s.decide(t, by, id, "approve", nil).WantStatus(t, http.StatusOK).Decode(t, &r)
	return r
}

// reads are the paths of all reads that could show a server.
func reads(name string) []string {
	return []string{
		"/v0.1/servers?limit=100", "/v0/servers?limit=100&version=latest",
		"/v0.1/servers?search=" + name[strings.Index(name, "/")+1:],
		"/v0.1/servers?limit=100&include_deleted=true", "/v0.1/servers?limit=100&updated_since=2020-01-01T00:00:00Z",
		"/v0.1" + fixture.ServerPath(name) + "/versions?include_deleted=true",
		"/v0.1" + fixture.ServerPath(name, "latest"), "/v0.1" + fixture.ServerPath(name, "1.0.0"),
		"/registries/all/allowlist/claude.json", "/registries/all/allowlist/kiro.json",
		"/registries/all/install?client=claude&server=" + name,
	}
}

// wantHidden checks that no read of an instance has a text.
func (s *site) wantHidden(t *testing.T, name, text string) {
	t.Helper()
	for _, instance := range []*fixture.Service{s.one, s.other} {
		for _, path := range reads(name) {
			if a := apiclient.Call(t, "GET", instance.API+path, nil); strings.Contains(string(a.Body), text) {
				t.Errorf("%s shows %q: %s", path, text, a.Body)
			}
		}
	}
	if stdout := s.e.RunCommand(t, "", "registry", "export"); strings.Contains(stdout, text) {
		t.Errorf("the export shows %q", text)
	}
}

// wantShown checks that each instance returns a version with a text by name within its time.
func (s *site) wantShown(t *testing.T, name, version, text string) {
	t.Helper()
	for _, instance := range []*fixture.Service{s.one, s.other} {
		await.Until(t, name+" "+version+" with "+text, func() bool {
			a := apiclient.Call(t, "GET", instance.API+"/v0.1"+fixture.ServerPath(name, version), nil)
			return a.Status == http.StatusOK && strings.Contains(string(a.Body), text) &&
				!strings.Contains(string(a.Body), "dev.tollgate/review")
		})
	}
}

// titled returns a document with a title.
func titled(name, version, title string) map[string]any {
	return fixture.WithProperty(fixture.NewServerDocument(name, version), "title", title)
}
