package curation

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestReview checks each rule of reviews on two instances (contract C-10 to C-18).
func TestReview(t *testing.T) {
	checks := []struct {
		name  string
		check func(*testing.T, *site)
	}{
		{"a new server", checkNewServer},
		{"a replacement", checkReplacement},
		{"a rejection", checkRejection},
		{"errors", checkErrors},
		{"visible reviews", checkVisible},
		{"remote URLs", checkRemoteURLs},
		{"rules", checkRules},
		{"the limit of a submitter", checkLimit},
		{"many reviewers", checkManyReviewers},
		{"commands", checkCommands},
		{"notices", checkNotices},
		{"high risk", checkHighRisk},
	}
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t, "com.example/race-")
		s := openSite(t, e, "REVIEW_PENDING_MAX=20")
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) { c.check(t, s) })
		}
	})
}

// checkHighRisk checks that a session at HIGH_RISK reads neither what waits nor why something is in
// quarantine (contract C-12, C-20).
func checkHighRisk(t *testing.T, s *site) {
	id := s.submit(t, s.ada, titled("com.example/risky", "1.0.0", "title"))
	dan := s.newRisky(t)
	for _, path := range []string{"reviews", "reviews/" + id, "quarantine"} {
		a := s.send(t, dan, "GET", "/v0.1/x/dev.tollgate/"+path, nil).WantStatus(t, http.StatusForbidden)
		if challenge := a.Header.Get("WWW-Authenticate"); !strings.Contains(challenge,
			`error="insufficient_user_authentication"`) {
			t.Errorf("%s: the challenge is %q", path, challenge)
		}
	}
}

func checkNewServer(t *testing.T, s *site) {
	const name = "com.example/new-one"
	a := s.send(t, s.ada, "POST", "/v0.1/publish", titled(name, "1.0.0", "first-title"))
	id := pendingID(t, a)
	if a.Header.Get("ETag") != "" || strings.Contains(string(a.Body), `"isLatest":true`) {
		t.Errorf("a pending version has an ETag or is the latest: %s", a.Body)
	}
	s.wantHidden(t, name, "new-one")
	for method, path := range map[string]string{
		"PATCH": fixture.ServerPath(name, "1.0.0") + "/status", "DELETE": fixture.ServerPath(name, "1.0.0"),
	} {
		s.send(t, s.ada, method, "/v0.1"+path, `{"status":"deprecated"}`).WantStatus(t, http.StatusNotFound)
	}
	s.send(t, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name)+"/status", `{"status":"deprecated"}`).WantStatus(t,
		http.StatusNotFound)
	_, user := fixture.ReadSession(t, s.one, s.ada)
	r := s.review(t, s.bea, id)
	if r.ServerName != name || r.Version != "1.0.0" || r.State != "pending" || r.Kind != "new-server" ||
		r.Replaces != nil || len(r.Diff) != 0 ||
		len(r.Checks) != 0 || r.SubmittedBy != user || r.SubmitterEmail != s.ada.Email || r.Policy != nil || r.DecidedBy != nil || r.Rule != nil ||
		r.Document["title"] != "first-title" {
		t.Errorf("the review is %+v", r)
	}
	again := s.submit(t, s.ada, titled(name, "1.0.0", "second-title"))
	third := pendingID(t,
		s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"), titled(name, "1.0.0", "third-title")))
	for _, old := range []string{id, again} {
		if r := s.review(t, s.bea, old); r.State != "superseded" {
			t.Errorf("review %s is %s, want superseded", old, r.State)
		}
	}
	s.wantHidden(t, name, "new-one")
	_, reviewer := fixture.ReadSession(t, s.one, s.bea)
	var decided reviewEntry
	s.decide(t, s.bea, third, "approve", `{"comment":"fine"}`).WantStatus(t, 200).Decode(t, &decided)
	if decided.State != "approved" || *decided.DecidedBy != reviewer || *decided.Comment != "fine" ||
		decided.DecidedAt == nil {
		t.Errorf("the decided review is %+v", decided)
	}
	s.wantShown(t, name, "latest", "third-title")
	s.send(t, s.ada, "POST", "/v0.1/publish", titled(name, "1.0.0", "fourth-title")).WantStatus(t, http.StatusConflict)
	if r := s.review(t, s.bea, third); r.State != "approved" || r.Kind != "new-server" {
		t.Errorf("the review is %+v", r)
	}
	var shown fixture.ServerRecord
	apiclient.Call(t, "GET", s.one.API+"/v0.1"+fixture.ServerPath(name, "1.0.0"), nil).Decode(t, &shown)
	if state := shown.Official(); state.PublishedAt != *decided.DecidedAt || !state.IsLatest {
		t.Errorf("published %s, latest %v; want the time of the approval %s", state.PublishedAt, state.IsLatest,
			*decided.DecidedAt)
	}
}

func checkReplacement(t *testing.T, s *site) {
	const name = "com.example/replaced"
	s.approve(t, s.bea, s.submit(t, s.ada, titled(name, "1.0.0", "old-title")))
	s.wantShown(t, name, "1.0.0", "old-title")
	next := s.submit(t, s.ada, titled(name, "2.0.0", "next-title"))
	if r := s.review(t, s.bea,
		next); r.Kind != "new-version" || r.Replaces["title"] != "old-title" || len(r.Diff) != 2 ||
		r.Diff[0].Path != "/title" || r.Diff[1].After != "2.0.0" {
		t.Errorf("the review of a new version is %+v", r)
	}
	var before, after fixture.ServerRecord
	apiclient.Call(t, "GET", s.one.API+"/v0.1"+fixture.ServerPath(name, "latest"), nil).Decode(t, &before)
	id := pendingID(t,
		s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"), titled(name, "1.0.0", "new-title")))
	s.wantHidden(t, name, "new-title")
	s.wantShown(t, name, "latest", "old-title")
	if r := s.review(t, s.bea,
		id); r.Kind != "replacement" || r.Replaces["title"] != "old-title" || len(r.Diff) != 1 ||
		r.Diff[0].Before != "old-title" || r.Diff[0].After != "new-title" {
		t.Errorf("the review of a replacement is %+v", r)
	}
	// without review
	s.send(t, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name, "1.0.0")+"/status", `{"status":"deprecated"}`).
		WantStatus(t, 200)
	s.approve(t, s.bea, id)
	s.wantShown(t, name, "1.0.0", "new-title")
	apiclient.Call(t, "GET", s.other.API+"/v0.1"+fixture.ServerPath(name, "1.0.0"), nil).Decode(t, &after)
	if b, a := before.Official(),
		after.Official(); a.PublishedAt != b.PublishedAt || a.UpdatedAt <= b.UpdatedAt || a.Status != "deprecated" {
		t.Errorf("the replacement changed %+v to %+v, want the same publication and a later update", b, a)
	}
	late := pendingID(t, s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"), titled(name, "1.0.0", "x")))
	s.send(t, s.ada, "DELETE", "/v0.1"+fixture.ServerPath(name, "1.0.0"), nil).WantStatus(t, 200)
	s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"), titled(name, "1.0.0", "x")).WantStatus(t, 404)
	if _, stderr, code := s.e.TryCommand(t, "", "review", "approve", "--all-pending"); code != 1 ||
		!strings.Contains(stderr, name+" 1.0.0: the version was deleted meanwhile") {
		t.Errorf("approving a replacement of a deleted version: exit %d, %s", code, stderr)
	}
	s.decide(t, s.bea, late, "approve", nil).WantStatus(t, http.StatusConflict)
	s.decide(t, s.bea, late, "reject", `{"comment":"deleted"}`).WantStatus(t, 200)
}

func checkRejection(t *testing.T, s *site) {
	const name = "com.example/rejected"
	id := s.submit(t, s.ada, titled(name, "1.0.0", "first"))
	for _, body := range []any{
		nil, `{}`, `{"comment":""}`, `{"comment":" "}`, `{"comment":null}`, `{"comment":7}`, `[]`,
		`{"comment":"` + strings.Repeat("x", 2001) + `"}`,
	} {
		if a := s.decide(t, s.bea, id, "reject", body).WantStatus(t, 400); body != "[]" &&
			!strings.Contains(apiclient.WantRegistryError(t, a), "comment") {
			t.Errorf("%v: %s, want an error that names comment", body, a.Body)
		}
	}
	var r reviewEntry
	s.decide(t, s.bea, id, "reject", `{"comment":"not ours"}`).WantStatus(t, 200).Decode(t, &r)
	if r.State != "rejected" || *r.Comment != "not ours" {
		t.Errorf("the review is %+v", r)
	}
	s.wantHidden(t, name, "com.example/rejected")
	changed := s.submit(t, s.ada, titled(name, "1.0.0", "another"))
	s.decide(t, s.bea, changed, "request-changes", `{}`).WantStatus(t, 400)
	s.decide(t, s.bea, changed, "request-changes", `{"comment":"another title"}`).WantStatus(t, 200).Decode(t, &r)
	if r.State != "changes_requested" || *r.Comment != "another title" {
		t.Errorf("the review is %+v", r)
	}
	s.wantHidden(t, name, "com.example/rejected")
	s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"), titled(name, "1.0.0", "x")).WantStatus(t, 404)
	s.approve(t, s.cem, s.submit(t, s.ada, titled(name, "1.0.0", "second")))
	s.wantShown(t, name, "1.0.0", "second")
}

func checkErrors(t *testing.T, s *site) {
	const unknown = "3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c"
	id := s.submit(t, s.ada, titled("com.example/errors", "1.0.0", "x"))
	low := *s.bea
	low.Device = map[string]string{
		"userAgent": "curl/8.0", "screenResolution": "1x1", "timezone": "UTC", "language": "en",
	}
	low.DeviceToken = ""
	low.Login(t, s.one)
	for _, verdict := range []string{"approve", "reject", "request-changes"} {
		path := reviewsPath + "/" + id + "/" + verdict
		for _, c := range []struct {
			label  string
			a      apiclient.Response
			status int
		}{
			{"no token", apiclient.Call(t, "POST", s.one.API+path, `{"comment":"x"}`), 401},
			{"no object", s.send(t, s.bea, "POST", path, `[]`), 400},
			{"unknown", s.decide(t, s.bea, unknown, verdict, `{"comment":"x"}`), 404},
			{"no grant", s.decide(t, s.eve, id, verdict, `{"comment":"x"}`), 403},
			{"own", s.decide(t, s.ada, id, verdict, `{"comment":"x"}`), 403},
			{"no trust", s.decide(t, &low, id, verdict, `{"comment":"x"}`), 403},
			{"too large", s.send(t, s.bea, "POST", path, `{"comment":"`+strings.Repeat("x", 2<<20)+`"}`), 413},
			{
				"not JSON",
				apiclient.Call(t, "POST", s.one.API+path, "comment",
					append(s.bea.Bearer(), "Content-Type", "text/plain")...), 415,
			},
		} {
			if c.a.Status != c.status {
				t.Errorf("%s, %s: status %d, want %d: %s", verdict, c.label, c.a.Status, c.status, c.a.Body)
			}
		}
	}
	s.approve(t, s.bea, id)
	for _, verdict := range []string{"approve", "reject", "request-changes"} {
		s.decide(t, s.cem, id, verdict, `{"comment":"x"}`).WantStatus(t, 409)
	}
	apiclient.Call(t, "GET", s.one.API+reviewsPath, nil).WantStatus(t, 401)
	apiclient.Call(t, "GET", s.one.API+reviewsPath+"/"+id, nil).WantStatus(t, 401)
	s.send(t, s.eve, "GET", reviewsPath+"/"+id, nil).WantStatus(t, 403)
	s.send(t, s.bea, "GET", reviewsPath+"/"+unknown, nil).WantStatus(t, 404)
	for query, word := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "state=open": "state", "cursor=x": "cursor",
	} {
		if a := s.send(t, s.bea, "GET", reviewsPath+"?"+query, nil).WantStatus(t,
			400); !strings.Contains(apiclient.WantRegistryError(t, a), word) {
			t.Errorf("%s: %s, want an error that names %s", query, a.Body, word)
		}
	}
}

// list reads all reviews in a state that a person sees, two at a time.
func (s *site) list(t *testing.T, by *fixture.Person, state string) (all []reviewEntry) {
	t.Helper()
	for cursor := ""; ; {
		var page struct {
			Reviews  []reviewEntry
			Metadata struct {
				NextCursor string
				Count      int
			}
		}
		s.send(t, by, "GET", reviewsPath+"?limit=2&state="+state+"&cursor="+cursor, nil).WantStatus(t, 200).
			Decode(t, &page)
		if page.Metadata.Count != len(page.Reviews) || len(page.Reviews) > 2 {
			t.Fatalf("%d reviews, count %d", len(page.Reviews), page.Metadata.Count)
		}
		all = append(all, page.Reviews...)
		if cursor = page.Metadata.NextCursor; cursor == "" {
			return all
		}
	}
}

func checkVisible(t *testing.T, s *site) {
	inside, outside := s.submit(t, s.ada, titled("com.example/visible", "1.0.0", "x")),
		s.submit(t, s.cem, titled("com.examples/visible", "1.0.0", "x"))
	for _, c := range []struct {
		by              *fixture.Person
		inside, outside bool
	}{{s.ada, true, false}, {s.bea, true, false}, {s.cem, true, true}, {s.eve, false, false}} {
		seen := map[string]bool{}
		last := ""
		for _, r := range s.list(t, c.by, "pending") {
			if seen[r.ID] = true; r.SubmittedAt < last {
				t.Errorf("%s was submitted before the review before it", r.ID)
			}
			last = r.SubmittedAt
		}
		if seen[inside] != c.inside || seen[outside] != c.outside {
			t.Errorf("%s sees %v and %v, want %v and %v", c.by.Email, seen[inside], seen[outside], c.inside, c.outside)
		}
	}
	for state := range map[string]bool{"approved": true, "rejected": true, "changes_requested": true, "superseded": true} {
		if len(s.list(t, s.bea, state)) == 0 {
			t.Errorf("no review is %s", state)
		}
	}
	s.decide(t, s.bea, inside, "reject", `{"comment":"x"}`).WantStatus(t, 200)
	s.decide(t, s.cem, outside, "approve", nil).WantStatus(t, 403) // an own one
	s.e.RunCommand(t, "", "review", "reject", outside, "--comment", "x")
}

func checkRemoteURLs(t *testing.T, s *site) {
	remote := []any{map[string]any{"type": "sse", "url": "https://one-remote.example/mcp"}}
	doc := func(name string) map[string]any {
		return fixture.WithProperty(fixture.NewServerDocument(name, "1.0.0"), "remotes", remote)
	}
	first, second := s.submit(t, s.ada, doc("com.example/remote-a")), s.submit(t, s.ada, doc("com.example/remote-b"))
	s.approve(t, s.bea, first)
	if a := s.decide(t, s.bea, second, "approve", nil).WantStatus(t, 409); !strings.Contains(string(a.Body),
		"https://one-remote.example/mcp") {
		t.Errorf("the error is %s, want the URL in it", a.Body)
	}
	if r := s.review(t, s.bea, second); r.State != "pending" {
		t.Errorf("after a refused approval it is %s, want pending", r.State)
	}
	s.send(t, s.ada, "POST", "/v0.1/publish", doc("com.example/remote-c")).WantStatus(t, 409)
	s.decide(t, s.bea, second, "reject", `{"comment":"x"}`).WantStatus(t, 200)
}

func checkRules(t *testing.T, s *site) {
	const name = "com.example/by-rule"
	s.approve(t, s.bea, s.submit(t, s.ada, titled(name, "1.0.0", "x")))
	var added []struct{ ID, Pattern, When string }
	s.e.ReadCommand(t, &added, "review", "rule", "add", "--pattern", "com.example/by-*", "--when", "same-origins",
		"--output", "json")
	a := s.send(t, s.ada, "POST", "/v0.1/publish", titled(name, "1.1.0", "by-the-rule")).WantStatus(t, 200)
	if strings.Contains(string(a.Body), "dev.tollgate/review") || a.Header.Get("ETag") == "" {
		t.Errorf("a version with the same origins has a mark: %s", a.Body)
	}
	s.wantShown(t, name, "latest", "by-the-rule")
	found := false
	for _, r := range s.list(t, s.bea, "approved") {
		if r.ServerName == name && r.Version == "1.1.0" {
			found = true
			if r.Rule == nil || *r.Rule != added[0].ID || r.DecidedBy != nil || r.DecidedAt == nil ||
				r.Replaces["version"] != "1.0.0" {
				t.Errorf("the review of the rule is %+v", r)
			}
		}
	}
	if !found {
		t.Error("an approval by a rule is no review")
	}
	s.submit(t, s.ada,
		fixture.WithProperty(titled(name, "1.2.0", "x"), "remotes", []any{
			map[string]any{"type": "sse", "url": "https://elsewhere.example/mcp"},
		}))
	s.e.RunCommand(t, "", "review", "rule", "remove", added[0].ID)
	s.submit(t, s.ada, titled(name, "1.3.0", "x"))
	s.e.RunCommand(t, "", "review", "approve", "--all-pending")
}

func checkLimit(t *testing.T, s *site) {
	for n := range 20 {
		s.submit(t, s.ada, titled("com.example/many", fmt.Sprintf("1.%d.0", n), "x"))
	}
	a := s.send(t, s.ada, "POST", "/v0.1/publish", titled("com.example/many", "2.0.0", "x")).WantStatus(t,
		http.StatusTooManyRequests)
	if !strings.Contains(apiclient.WantRegistryError(t, a), "20 documents") {
		t.Errorf("the error is %s, want a sentence with the number", a.Body)
	}
	s.submit(t, s.ada, titled("com.example/many", "1.0.0", "replaced"))
	s.submit(t, s.cem, titled("com.example/many", "2.0.0", "x"))
	s.e.RunCommand(t, "", "review", "approve", "--all-pending", "--comment", "enough")
	s.wantShown(t, "com.example/many", "latest", "2.0.0")
}

// checkManyReviewers decides each of some reviews by 20 reviewers at once, on two instances, while
// publishers replace what is pending and people read. Each review is decided once, and readers get
// only what was approved.
func checkManyReviewers(t *testing.T, s *site) {
	const rounds, reviewers = 5, 20
	for round := range rounds {
		name, first := fmt.Sprintf("com.example/race-%d", round), fmt.Sprintf("race-first-%d", round)
		id := s.submit(t, s.ada, titled(name, "1.0.0", first))
		var counted atomic.Int64
		var all sync.WaitGroup
		for n := range reviewers {
			all.Go(func() {
				instance, by, verdict := []*fixture.Service{s.one, s.other}[n%2], []*fixture.Person{
					s.bea, s.cem,
				}[n/2%2], []string{"approve", "reject"}[n/4%2]
				a, err := apiclient.TryCall("POST", instance.API+reviewsPath+"/"+id+"/"+verdict, `{"comment":"x"}`,
					by.Bearer()...)
				switch {
				case err != nil:
					t.Error(err)
				case a.Status == http.StatusOK:
					counted.Add(1)
				case a.Status != http.StatusConflict:
					t.Errorf("%s: status %d: %s", verdict, a.Status, a.Body)
				}
			})
		}
		for n, path := range reads(name) {
			all.Go(func() {
				instance := []*fixture.Service{s.one, s.other}[n%2]
				if a, err := apiclient.TryCall("GET", instance.API+path, nil); err != nil ||
					strings.Contains(string(a.Body), "race-later") {
					t.Errorf("%s shows what is pending, or fails: %s, %v", path, a.Body, err)
				}
			})
		}
		replaced := make([]apiclient.Response, 3)
		for n := range replaced {
			all.Go(func() {
				var err error
				if replaced[n], err = apiclient.TryCall("POST", s.other.API+"/v0.1/publish",
					titled(name, "1.0.0", "race-later"), s.ada.Bearer()...); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		r := s.review(t, s.bea, id)
		if want := int64(1); r.State == "pending" || r.State != "superseded" && counted.Load() != want ||
			r.State == "superseded" && counted.Load() != 0 {
			t.Errorf("%d decisions count, and the review is %s", counted.Load(), r.State)
		}
		s.wantHidden(t, name, "race-later")
		for _, a := range replaced {
			if a.Status != http.StatusOK && (a.Status != http.StatusConflict || r.State != "approved") {
				t.Errorf("a publication while the review is decided: status %d: %s", a.Status, a.Body)
			}
		}
		if r.State == "approved" {
			s.wantShown(t, name, "latest", first)
		} else {
			s.wantHidden(t, name, first)
		}
	}
}

// checkCommands checks that what a command approves is listed, and what it shows of a replacement. What
// commands print otherwise is tested in cmd/tollgate/operator.
func checkCommands(t *testing.T, s *site) {
	const name = "com.example/commands"
	s.approve(t, s.bea, s.submit(t, s.ada, titled(name, "1.0.0", "before-title")))
	id := pendingID(t,
		s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"), titled(name, "1.0.0", "after-title")))
	if stdout := s.e.RunCommand(t, "", "review", "show", id); !strings.Contains(stdout,
		`"before-title" → "after-title"`) {
		t.Errorf("the review is shown as %s", stdout)
	}
	local := s.e.Environ
	s.e.Environ = append(slices.Clone(local), "TOLLGATE_TOKEN="+s.bea.AccessToken)
	for _, command := range [][]string{{"review", "list"}, {"review", "show", id}} {
		if out := s.e.RunCommand(t, "", append(command, "--server", s.one.API)...); !strings.Contains(out, s.ada.Email) {
			t.Errorf("a reviewer without the right to operate does not see who submitted: %s", out)
		}
	}
	s.e.Environ = local
	var decided []reviewEntry
	s.e.ReadCommand(t, &decided, "review", "approve", strings.ToUpper(id), "--comment", "ok")
	if len(decided) != 1 || decided[0].State != "approved" || *decided[0].DecidedBy != "operator" {
		t.Errorf("decided is %+v", decided)
	}
	s.wantShown(t, name, "1.0.0", "after-title")
}

// passMinute makes a minute pass since the decisions of operators, and since their submitters were
// notified last. They are notified some time after a decision.
func (s *site) passMinute(t *testing.T) {
	t.Helper()
	earlier := " - 60000000"
	if s.e.Shared {
		earlier = " - interval '1 minute'"
	}
	tx, err := s.e.OpenDatabase(t).BeginTx(t.Context(), nil)
	must.Succeed(t, err)
	for _, statement := range []string{
		"UPDATE review_notices SET sent_at = sent_at" + earlier + " WHERE reviewer = 'operator'",
		"UPDATE quarantine SET since = since" + earlier + " WHERE added_by = ''",
		"UPDATE reviews SET decided_at = decided_at" + earlier + " WHERE decided_by = 'operator'",
	} {
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	must.Succeed(t, tx.Commit())
}

// checkNotices checks that people get notices. "com.examples/visible 1.0.0" was rejected by a
// command. New instances look at once for what waits, those that run every ten seconds.
func checkNotices(t *testing.T, s *site) {
	s.submit(t, s.ada, titled("com.example/waiting", "1.0.0", "x"))
	s.passMinute(t)
	for _, at := range []*fixture.Service{s.e.Start(t), s.e.Start(t)} {
		await.Until(t, "the metrics count what waits", func() bool { return at.Metric("tollgate_reviews_pending") > 0 })
	}
	for _, words := range []string{
		"They are not listed until you or another reviewer approves them", "A reviewer has approved what you submitted",
		"A reviewer has rejected what you submitted", "com.example/rejected 1.0.0", "com.examples/visible 1.0.0",
		`Comment:\n\u003e `, `\n\nThe review\n/console/reviews/`,
	} {
		await.Until(t, words, func() bool {
			text, err := os.ReadFile(s.e.Dir + "/notices.jsonl")
			return err == nil && strings.Contains(string(text), words)
		})
	}
}

// TestReviewSwitched switches review on and off: what is listed stays listed, and what is pending
// waits for the operator (contract C-18).
func TestReviewSwitched(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(e.Environ, fixture.RegistrySettings()...)
		off := e.Start(t)
		s := &site{e: e, one: off, other: off}
		s.ada = e.NewWriter(t, off, "ada@example.com", "publish *", "edit *")
		s.send(t, s.ada, "POST", "/v0.1/publish", titled("com.example/before", "1.0.0", "listed-before")).
			WantStatus(t, 200)
		off.Stop()
		s.one = e.Start(t, "REGISTRY_REVIEW=on")
		s.other = s.one
		s.wantShown(t, "com.example/before", "latest", "listed-before")
		s.submit(t, s.ada, titled("com.example/between", "1.0.0", "between-a"))
		overtaken := s.submit(t, s.ada, titled("com.example/overtaken", "1.0.0", "overtaken-a"))
		s.one.Stop()
		s.one = e.Start(t)
		s.other = s.one
		s.wantHidden(t, "com.example/between", "between-a")
		s.send(t, s.ada, "POST", "/v0.1/publish", titled("com.example/overtaken", "1.0.0", "overtaken-b")).
			WantStatus(t, 200)
		var approved []reviewEntry
		e.ReadCommand(t, &approved, "review", "approve", "--all-pending", "--output", "json")
		if len(approved) != 1 || approved[0].ServerName != "com.example/between" {
			t.Errorf("approved %+v, want what was pending", approved)
		}
		s.wantShown(t, "com.example/between", "latest", "between-a")
		s.wantShown(t, "com.example/overtaken", "latest", "overtaken-b")
		if r := s.review(t, s.ada, overtaken); r.State != "superseded" {
			t.Errorf("the review of an overtaken document is %s, want superseded", r.State)
		}
	})
}
