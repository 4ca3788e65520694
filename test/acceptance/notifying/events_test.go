package notifying

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestEvents checks what each event contains, and which webhook gets it (contract C-50 to C-53).
func TestEvents(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := openSite(t, e, "REGISTRY_REVIEW=on")
		for name, check := range map[string]func(*testing.T, *site){
			"reviews": checkReviews, "a rule": checkRule, "statuses": checkStatuses, "quarantine": checkQuarantine,
			"many large versions":  checkLarge,
			"import and commands":  checkCommandsOfRegistry,
			"what does not happen": checkNothing,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				check(t, s)
			})
		}
	})
}

func checkReviews(t *testing.T, s *site) {
	const name = "com.example.reviews/one"
	r := newReceiver(t)
	r.add(s.e, allEvents, "com.example.reviews/*")
	doc := fixture.WithProperty(fixture.NewServerDocument(name, "1.0.0"), "title", "<b> & ü")
	approved := s.decide(t, s.submit(t, "POST", "/v0.1/publish", doc), "approve")
	published := read(t, s.other, name, "1.0.0")
	replaced := fixture.WithProperty(doc, "title", "another")
	approvedAgain := s.decide(t, s.submit(t, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"), replaced), "approve")
	served := read(t, s.other, name, "1.0.0")
	id := s.submit(t, "POST", "/v0.1/publish", fixture.NewServerDocument(name, "2.0.0"))
	rejected := s.decide(t, id, "reject")
	changes := s.decide(t, s.submit(t, "POST", "/v0.1/publish", fixture.NewServerDocument(name, "2.0.0")), "request-changes")
	got := r.awaitEvents("approved one 1.0.0", "published one 1.0.0", "approved one 1.0.0", "replaced one 1.0.0",
		"rejected one 2.0.0", "changes_requested one 2.0.0")
	wantBody(t, got[5], "changes_requested", name, "2.0.0", changes)
	wantBody(t, got[0], "approved", name, "1.0.0", approved)
	wantBody(t, got[1], "published", name, "1.0.0", published)
	wantBody(t, got[2], "approved", name, "1.0.0", approvedAgain)
	wantBody(t, got[3], "replaced", name, "1.0.0", served)
	wantBody(t, got[4], "rejected", name, "2.0.0", rejected)
	wantBody(t, got[4], "rejected", name, "2.0.0",
		string(send(t, s.one, s.bea, "GET", reviewsPath+"/"+id, nil).WantStatus(t, 200).Body))
}

func checkRule(t *testing.T, s *site) {
	const name = "com.example.rules/one"
	s.e.RunCommand(t, "", "review", "rule", "add", "--pattern", "com.example.rules/*", "--when", "any")
	r := newReceiver(t)
	r.add(s.e, allEvents, "com.example.rules/*")
	published := send(t, s.one, s.ada, "POST", "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).
		WantStatus(t, 200)
	got := r.awaitEvents("approved one 1.0.0", "published one 1.0.0")
	wantBody(t, got[1], "published", name, "1.0.0", string(published.Body))
	var review struct{ ID string }
	must.Succeed(t, json.Unmarshal(got[0].event.Data, &review))
	shown := send(t, s.one, s.bea, "GET", reviewsPath+"/"+review.ID, nil).WantStatus(t, 200)
	wantBody(t, got[0], "approved", name, "1.0.0", string(shown.Body))
}

// checkStatuses uses servers that need no review, because a command has imported them.
func checkStatuses(t *testing.T, s *site) {
	const name = "com.example.statuses/one"
	importServers(t, s, fixture.NewServerDocument(name, "1.0.0"), fixture.NewServerDocument(name, "2.0.0"))
	r := newReceiver(t)
	r.add(s.e, allEvents, "com.example.statuses/*")
	path := "/v0.1" + fixture.ServerPath(name, "1.0.0")
	one := send(t, s.one, s.ada, "PATCH", path+"/status", `{"status":"deprecated","statusMessage":"<old>"}`).
		WantStatus(t, 200)
	all := send(t, s.other, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name)+"/status",
		`{"status":"deprecated","statusMessage":"all \"old\""}`).WantStatus(t, 200)
	deleted := send(t, s.one, s.ada, "DELETE", path, nil).WantStatus(t, 200)
	got := r.awaitEvents("status one 1.0.0", "status one -", "status one 1.0.0")
	wantBody(t, got[0], "status", name, "1.0.0", string(one.Body))
	wantBody(t, got[1], "status", name, "", string(all.Body))
	wantBody(t, got[2], "status", name, "1.0.0", string(deleted.Body))
	if !strings.HasPrefix(string(got[1].event.Data), `{"updatedCount":2,`) {
		t.Errorf("the data of a server is %s", got[1].event.Data)
	}
}

// checkLarge changes versions whose documents have more than 4 MiB together (contract C-52).
func checkLarge(t *testing.T, s *site) {
	const name, versions = "com.example.large/one", 7
	docs := make([]map[string]any, versions)
	for i := range docs {
		docs[i] = fixture.NewServerDocument(name, fmt.Sprintf("1.0.%d", i))
		docs[i]["remotes"].([]any)[0].(map[string]any)["headers"] = []any{
			map[string]any{"name": "X-Text", "description": strings.Repeat("some text ", 80_000)},
		}
	}
	importServers(t, s, docs...)
	r := newReceiver(t)
	r.add(s.e, "status", name)
	send(t, s.one, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name)+"/status", `{"status":"deprecated"}`).
		WantStatus(t, 200)
	one := send(t, s.one, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name, "1.0.0")+"/status", `{"status":"active"}`).
		WantStatus(t, 200)
	got := r.awaitEvents("status one -", "status one 1.0.0")
	wantBody(t, got[0], "status", name, "", fmt.Sprintf(`{"updatedCount":%d}`, versions))
	wantBody(t, got[1], "status", name, "1.0.0", string(one.Body))
}

func checkQuarantine(t *testing.T, s *site) {
	const name = "com.example.quarantine/one"
	importServers(t, s, fixture.NewServerDocument(name, "1.0.0"))
	r := newReceiver(t)
	r.add(s.e, allEvents, name)
	version := send(t, s.one, s.bea, "POST", quarantinePath, map[string]any{
		"serverName": name, "version": "1.0.0", "reason": `it "sends" <mail>`,
	}).WantStatus(t, 200)
	server := send(t, s.other, s.bea, "POST", quarantinePath, map[string]any{
		"serverName": name, "reason": "all of it",
	}).WantStatus(t, 200)
	send(t, s.one, s.bea, "DELETE", quarantineQuery(name, "1.0.0"), nil).WantStatus(t, http.StatusNoContent)
	send(t, s.other, s.bea, "DELETE", quarantineQuery(name, ""), nil).WantStatus(t, http.StatusNoContent)
	got := r.awaitEvents("quarantined one 1.0.0", "quarantined one -", "released one 1.0.0", "released one -")
	wantBody(t, got[0], "quarantined", name, "1.0.0", string(version.Body))
	wantBody(t, got[1], "quarantined", name, "", string(server.Body))
	wantBody(t, got[2], "released", name, "1.0.0", "null")
	wantBody(t, got[3], "released", name, "", "null")
}

func checkCommandsOfRegistry(t *testing.T, s *site) {
	const name = "com.example.commands/one"
	r := newReceiver(t)
	r.add(s.e, allEvents, "com.example.commands/*")
	importServers(t, s, fixture.NewServerDocument(name, "1.0.0"), fixture.NewServerDocument(name, "1.1.0"))
	first := read(t, s.one, name, "1.0.0")
	importServers(t, s, fixture.NewServerDocument(name, "1.0.0")) // it is there already
	id := s.submit(t, "POST", "/v0.1/publish", fixture.NewServerDocument(name, "1.2.0"))
	s.e.RunCommand(t, "", "review", "approve", id)
	approved := read(t, s.other, name, "1.2.0")
	s.e.RunCommand(t, "", "registry", "quarantine", name, "--reason", "x")
	s.e.RunCommand(t, "", "registry", "release", name)
	got := r.awaitEvents("published one 1.0.0", "published one 1.1.0", "approved one 1.2.0", "published one 1.2.0",
		"quarantined one -", "released one -")
	wantBody(t, got[3], "published", name, "1.2.0", approved)
	wantBody(t, got[0], "published", name, "1.0.0", first)
}

// checkNothing makes changes that fail, of which some fail in their transaction, and then one that
// succeeds.
func checkNothing(t *testing.T, s *site) {
	const name = "com.example.nothing/one"
	importServers(t, s, fixture.NewServerDocument(name, "1.0.0"))
	s.e.RunCommand(t, "", "review", "rule", "add", "--pattern", name, "--when", "any")
	r := newReceiver(t)
	r.add(s.e, allEvents, "com.example.nothing/*")
	path := "/v0.1" + fixture.ServerPath(name, "1.0.0")
	for _, c := range []struct {
		method, path string
		body         any
		status       int
	}{
		{"POST", "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0"), 409},
		{
			"POST", "/v0.1/publish",
			fixture.WithProperty(fixture.NewServerDocument(name, "1.1.0"), "description", ""), 422,
		},
		{"PATCH", path + "/status", `{"status":"unknown"}`, 400},
		{"PUT", "/v0.1" + fixture.ServerPath(name, "9.0.0"), fixture.NewServerDocument(name, "9.0.0"), 404},
		{"DELETE", "/v0.1" + fixture.ServerPath(name, "9.0.0"), nil, 404},
	} {
		send(t, s.one, s.ada, c.method, c.path, c.body).WantStatus(t, c.status)
	}
	stale := append(s.ada.Bearer(), "If-Match", `"0"`)
	apiclient.Call(t, "DELETE", s.one.API+path, nil, stale...).WantStatus(t, http.StatusPreconditionFailed)
	send(t, s.one, s.bea, "DELETE", quarantineQuery(name, ""), nil).WantStatus(t, http.StatusNotFound)
	answers := fixture.CallInParallel(t, 20, func(i int) (apiclient.Response, error) {
		at := []*fixture.Service{s.one, s.other}[i%2]
		return apiclient.TryCall("POST", at.API+"/v0.1/publish", fixture.NewServerDocument(name, "2.0.0"),
			s.ada.Bearer()...)
	})
	done := 0
	for _, a := range answers {
		if a.Status == http.StatusOK {
			done++
		}
	}
	if done != 1 {
		t.Errorf("%d of 20 equal publications succeeded", done)
	}
	send(t, s.one, s.ada, "DELETE", path, nil).WantStatus(t, http.StatusOK)
	r.awaitEvents("approved one 2.0.0", "published one 2.0.0", "status one 1.0.0")
}

// importServers adds versions without review.
func importServers(t *testing.T, s *site, docs ...map[string]any) {
	t.Helper()
	var records []any
	for _, doc := range docs {
		records = append(records, map[string]any{"server": doc})
	}
	text, err := json.Marshal(map[string]any{"servers": records})
	must.Succeed(t, err)
	file := filepath.Join(t.TempDir(), "servers.json")
	fixture.WriteFile(t, file, string(text))
	s.e.RunCommand(t, "", "registry", "import", file)
}
